"""What the nerve knows of one connection."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from broker_bridge.chunks import Transfers
from broker_bridge.limits import Bucket
from broker_bridge.nerve import Admission, Credential
from broker_bridge.subscriptions import ANY_PRODUCER, Subscription


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame as it came in, and when; `ref` is the caller's own mark of it."""

    event: object
    payload: object
    ref: Any
    at: float


@dataclass(frozen=True, slots=True)
class Producer:
    """A producer's name as one connection holds it.

    Attributes:
        id: what its notices are named after.
        until: when it has to be claimed again before more is produced under it, for it may be another's.
    """

    name: str
    id: str
    until: float = math.inf

    @property
    def is_claimed(self) -> bool:
        """Whether it is its own only because the store said so."""
        return self.until != math.inf


@dataclass(slots=True)
class Connection:
    """One connection, from socket.io CONNECT to its end.

    Attributes:
        id: the socket.io session id.
        bucket: its allowance of frames.
        transfers: what has come of messages in pieces.
        admission: None until a login succeeded.
        asking: what a login is being looked up by, while `held` waits for the answer.
        login: the frame that asked for it.
        storing: the store, or the door, is asked, and `held` waits for the answer.
        consumers: name -> id that notices are named after.
        producers: folded name -> producer.
        subscriptions: by their pair.
    """

    id: str
    bucket: Bucket
    transfers: Transfers
    admission: Admission | None = None
    asking: Credential | None = None
    login: Frame | None = None
    storing: bool = False
    held: deque[Frame] = field(default_factory=deque)
    consumers: dict[str, str] = field(default_factory=dict)
    producers: dict[str, Producer] = field(default_factory=dict)
    subscriptions: dict[tuple[str, str, bool], Subscription] = field(default_factory=dict)
    failed_logins: int = 0
    dropped: int = 0
    told_limited_at: float = float("-inf")

    @property
    def realm(self) -> str | None:
        """The realm that its token decides."""
        return self.admission.realm if self.admission else None

    @property
    def waits(self) -> bool:
        """Whether the frames that come now have to wait."""
        return self.asking is not None or self.storing

    def may(self, event: str) -> bool:
        """Whether its role allows to send `event`."""
        if self.admission is None:
            return event == "AUTHENTICATION"
        if event in CONSUMING:
            return self.admission.role in ("consumer", "both")
        return event not in PRODUCING or self.admission.role in ("producer", "both")

    def consumer_id(self, name: str) -> str:
        """The id of one of its consumers; the connection's own id for a name that was not registered."""
        return self.consumers.get(name, self.id)

    def hears(self, producer: str, event: str) -> list[Subscription]:
        """Its subscriptions to a pair in lower case; clients rely on their order."""
        matching = [s for s in self.subscriptions.values() if s.matches(producer, event)]
        return sorted(matching, key=lambda s: (s.topic, s.producer == ANY_PRODUCER))


CONSUMING = frozenset({"CONSUMER", "SUBSCRIBE", "UNSUBSCRIBE", "ACK"})
PRODUCING = frozenset({"PRODUCER", "PRODUCE", "PRODUCE_CHUNK"})
