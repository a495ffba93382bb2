"""The notifier: one per user and box; hears nudges and wakes idle sessions, harming none."""
