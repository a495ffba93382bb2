"""SQL, one statement a function."""
