"""READYROOM_WAKE_ON, as those read it who start something: a slip is told at once."""

from __future__ import annotations

from notifier.inbox import WakeRules, read_rules
from notifier.settings import Settings, SettingsError


def wake_rules(settings: Settings) -> WakeRules:
    """Which unread messages wake.

    Raises:
        SettingsError: nobody can tell.
    """
    try:
        return read_rules(settings.wake_on or "all")
    except ValueError as error:
        raise SettingsError(f"READYROOM_WAKE_ON will not do: {error}.") from None
