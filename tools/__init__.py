"""Tools that make what the app ships or fetches."""
