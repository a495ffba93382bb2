"""Which unread messages may wake: a word for all rooms, and words for single rooms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

WakeOn = Literal["all", "addressed", "none"]
"""`all`: any unread message. `addressed`: only what is written to the session. `none`: nothing."""


@dataclass(frozen=True, slots=True)
class WakeRules:
    """Which word holds where.

    Attributes:
        rooms: room -> its word; elsewhere `default` holds.
    """

    default: WakeOn = "all"
    rooms: Mapping[str, WakeOn] = field(default_factory=dict)

    def of(self, room: str) -> WakeOn:
        """The word that holds in a room."""
        return self.rooms.get(room, self.default)


def read_rules(text: str, *, default: WakeOn = "all") -> WakeRules:
    """Read `addressed, ops=none`: words by commas, each with the room that it is for, or for all others.

    Raises:
        ValueError: it is not written so; says what is expected.
    """
    rooms: dict[str, WakeOn] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        room, _, word = (each.strip() for each in part.rpartition("="))
        known = next((each for each in get_args(WakeOn) if each == word), None)
        if known is None:
            raise ValueError(f"{part!r} is none of all, addressed, none, or ROOM= and one of these")
        if room:
            rooms[room] = known
        else:
            default = known
    return WakeRules(default, rooms)
