"""The bench: the product beside its baselines, in the same run, on the same machine."""
