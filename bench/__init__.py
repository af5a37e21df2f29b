"""Speed, peers and project side by side: `make bench`."""
