"""The nerve: carries nudges, never what was said. Delivery is at most once."""
