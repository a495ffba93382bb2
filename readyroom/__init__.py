"""The program `readyroom`: command groups, each imported only when it is called. No logic of its own."""

__version__ = "0.1.0"
