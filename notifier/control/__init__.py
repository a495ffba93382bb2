"""The notifier's door: one JSON object a line over a unix socket that only this user can reach."""
