"""How this box is woken, as those read it who start something: a slip is told at once."""

from __future__ import annotations

from dataclasses import dataclass

from notifier.inbox import WakeRules, read_rules
from notifier.settings import Settings, SettingsError, Ways


@dataclass(frozen=True, slots=True)
class Waking:
    """What the environment says, or else the configuration file.

    Attributes:
        only: what the ladder is confined to.
        rules: which unread messages wake.
        bell: whether a person is told beside every wake.
    """

    only: Ways | None
    rules: WakeRules
    bell: bool


def waking(settings: Settings) -> Waking:
    """Read it.

    Raises:
        SettingsError: nobody can tell.
    """
    config = settings.config()
    bell = config.bell if settings.bell is None else settings.bell
    source = "READYROOM_WAKE_ON" if settings.wake_on else f"`wake_on` of {settings.config_file}"
    try:
        rules = read_rules(settings.wake_on or config.wake_on or "all")
    except ValueError as error:
        raise SettingsError(f"{source} will not do: {error}.") from None
    return Waking(settings.wake or config.wake, rules, bell)
