"""The rules, one use case a function; no HTTP, no SQL."""
