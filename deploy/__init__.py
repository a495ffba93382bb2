"""How Readyroom runs: the one-machine supervisor, images and unit files."""
