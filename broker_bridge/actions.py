"""What the protocol asks of whoever holds the sockets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from broker_bridge.connection import Frame
from broker_bridge.names import Name
from broker_bridge.nerve import Credential
from broker_bridge.outbox import Parcel
from broker_bridge.queues import Queue
from broker_bridge.said import Said


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
    """Find out whom a credential admits, then come back with `admitted`."""

    connection: str
    credential: Credential


@dataclass(frozen=True, slots=True)
class LookAgain:
    """Find out who may stay."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A frame is dealt with. `ack` is what its socket.io acknowledgement says; None: it gets none."""

    frame: Any
    ack: Any = None


@dataclass(frozen=True, slots=True)
class PassOn:
    """Tell the other replicas of this nerve, if there are any; here it has been delivered."""

    parcel: Parcel


@dataclass(frozen=True, slots=True)
class Open:
    """Ask the store to open a queue for a connection, then come back with `answered`."""

    connection: str
    frame: Frame
    queue: Queue


@dataclass(frozen=True, slots=True)
class Find:
    """Ask the store for the queues that a message may be for, then come back with `answered`."""

    connection: str
    frame: Frame
    realm: str
    said: Said


@dataclass(frozen=True, slots=True)
class Keep:
    """Have the store keep a message in some queues, then come back with `answered`.

    Attributes:
        copies: what is sent to those who have none.
    """

    connection: str
    frame: Frame
    realm: str
    said: Said
    copies: tuple[Emit, ...]
    queues: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """Tell the store that a message is done with, then come back with `answered`."""

    connection: str
    frame: Frame
    realm: str
    holder: str
    id: int


@dataclass(frozen=True, slots=True)
class Claim:
    """Ask the store for a producer's name, then come back with `answered`.

    Attributes:
        until: how long the answer is gone by.
    """

    connection: str
    frame: Frame
    name: Name
    until: float


@dataclass(frozen=True, slots=True)
class Release:
    """Tell the store that the connection is gone which went by these names."""

    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class Attach:
    """From now on send over this connection what the queue holds; over no other."""

    connection: str
    realm: str
    queue: int
    acknowledged: bool


@dataclass(frozen=True, slots=True)
class Detach:
    """Send nothing more of the queue over this connection."""

    connection: str
    queue: int


@dataclass(frozen=True, slots=True)
class Forget:
    """Have the store delete a queue."""

    realm: str
    queue: int


@dataclass(frozen=True, slots=True)
class Whose:
    """Ask the door whether a nerve token bears a name that another one wants to produce under."""

    connection: str
    frame: Frame
    realm: str
    name: str


Question = Open | Find | Keep | Acknowledge | Whose | Claim
"""Asks the store, or the door. The frame behind it is answered when that has answered."""

Action = Emit | HangUp | Ask | LookAgain | Answer | Question | Attach | Detach | Forget | Release | PassOn
