"""Terminals that a line can be typed into, and everything that must be true before a key is sent."""
