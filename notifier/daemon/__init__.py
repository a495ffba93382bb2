"""The notifier's process: hears, asks, decides through the inbox, and wakes."""

from notifier.daemon.app import Daemon, Parts

__all__ = ["Daemon", "Parts"]
