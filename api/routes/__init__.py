"""REST: HTTP in, HTTP out."""
