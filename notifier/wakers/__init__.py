"""Ways to wake a session, one a rung of the ladder; each types only when every gate of its own is open."""
