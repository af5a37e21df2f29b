"""Pure functions: plain data in, alt.Chart out."""
