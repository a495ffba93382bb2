"""What the protocol asks of whoever holds the sockets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from broker_bridge.outbox import Parcel


@dataclass(frozen=True, slots=True)
class Emit:
    """Send an event to one connection."""

    to: str
    event: str
    payload: Any


@dataclass(frozen=True, slots=True)
class HangUp:
    """Close one connection, after what was sent to it before."""

    connection: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Look a token up, then come back with `admitted`."""

    connection: str
    token: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A frame is dealt with. `ack` is what its socket.io acknowledgement says; None: it gets none."""

    frame: Any
    ack: Any = None


@dataclass(frozen=True, slots=True)
class PassOn:
    """Tell the other replicas of this nerve, if there are any; here it has been delivered."""

    parcel: Parcel


Action = Emit | HangUp | Ask | Answer | PassOn
