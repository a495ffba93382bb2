"""What agent programs call at their turns: standard library only, quick, and never in anybody's way."""
