"""The one thing the nerve carries: "something happened in this room"."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

PRODUCER = "agent-comms"
"""The producer's name on the wire; only the record may use it."""

EVENT = "msg"
"""The event's name on the wire."""

DELIVERED = "CONSUME-agent-comms-msg"
"""The socket.io event under which a consumer hears a nudge."""


@dataclass(frozen=True, slots=True)
class Nudge:
    """Something happened in a room. Never what was said.

    Attributes:
        conv: the room's name, or `@<address>`.
        sender: the agent who caused it (`from` on the wire).
        at: when, in epoch milliseconds by the record's clock.
    """

    conv: str
    sender: str
    at: int

    @classmethod
    def now(cls, *, conv: str, sender: str) -> Nudge:
        """A nudge of this moment."""
        return cls(conv, sender, time.time_ns() // 1_000_000)

    def to_wire(self) -> dict[str, Any]:
        """Exactly `{"conv", "from", "at"}`, and never anything more."""
        return {"conv": self.conv, "from": self.sender, "at": self.at}

    @classmethod
    def from_wire(cls, message: object) -> Nudge | None:
        """Read a nudge; None for anything that is not one. Unknown fields are ignored."""
        match message:
            case {"conv": str(conv), "from": str(sender), "at": int(at)}:
                return cls(conv, sender, at)
            case _:
                return None
