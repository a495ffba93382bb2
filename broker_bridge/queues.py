"""What is kept for durable subscribers, and the seam to whatever keeps it."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from broker_bridge import frames
from broker_bridge.subscriptions import Subscription

WINDOW = 32
"""Messages of a queue that are out at once, unacknowledged."""
WINDOW_SIZE = 4 * 1024 * 1024
"""Characters of them; one message may be larger."""
QUEUED = 10_000
"""Messages that wait in a queue, at most."""
QUEUED_SIZE = 64 * 1024 * 1024
"""Characters that wait in a queue, at most."""
QUEUES = 64
"""Queues of one holder."""
SENDINGS = 20
"""How often a message is sent at most, whatever became of the links that it went over."""
KEPT_SECONDS = 24 * 3600.0
"""How long a message is kept whose producer gives no `ttl`."""
LONGEST_SECONDS = 7 * 24 * 3600.0
"""How long it is kept at most; and how long a queue is that nobody comes for."""


class Unkept(Exception):
    """The store cannot be asked now; whether the last call took effect is not known."""


@dataclass(frozen=True, slots=True)
class Retry:
    """When a message that is not acknowledged comes again.

    Attributes:
        ack_seconds: how long an acknowledgement is waited for.
        attempts: how often that runs out before the message is a dead letter.
        delay_seconds: the pause behind it, doubled each time where `exponential`.
        exponential: whether it is.
    """

    ack_seconds: float = 30.0
    attempts: int = 3
    delay_seconds: float = 5.0
    exponential: bool = False

    @classmethod
    def read(cls, body: frames.Body) -> Retry | None:
        """Read a SUBSCRIBE; None where it wants no acknowledgements."""
        if not any(body.get(key) for key in ("ack", "require_ack", "manual_ack", "manualAck")):
            return None
        retry = body.get("retry")
        wanted = retry if isinstance(retry, dict) else {}
        attempts = wanted.get("max_attempts")
        return cls(
            max(0.05, _seconds(body.get("ack_timeout"), ONCE_MORE.ack_seconds)),
            min(max(attempts, 1), SENDINGS) if type(attempts) is int else ONCE_MORE.attempts,
            _seconds(wanted.get("delay"), ONCE_MORE.delay_seconds),
            wanted.get("backoff") == "exponential",
        )


ONCE_MORE = Retry()
"""How it is for who does not say."""


@dataclass(frozen=True, slots=True)
class Queue:
    """A subscription that outlives its connection.

    Realm, holder, consumer's id and pair name it. What is not `durable` is only remembered for a short while,
    for messages whose producer insists.

    Attributes:
        holder: the name of whose token it was made with; nobody else's subscription is ever meant.
        retry: None where a message is done with when it has been sent.
    """

    realm: str
    holder: str
    consumer_id: str
    subscription: Subscription
    durable: bool
    retry: Retry | None


@dataclass(frozen=True, slots=True)
class Kept:
    """A message of a queue, to be sent for the `attempt`th time."""

    id: int
    envelope: frames.Body
    attempt: int


@dataclass(frozen=True, slots=True)
class Batch:
    """What is to be sent now.

    Attributes:
        more: whether there is more that waits for the acknowledgement of what is out.
        seconds: until there may be something again; None: not before something new is kept.
    """

    messages: Sequence[Kept] = ()
    more: bool = False
    seconds: float | None = None


Verdict = Literal["acknowledged", "unknown", "anothers"]


class Store(Protocol):
    """Keeps queues, each for the holder of a token in a realm. Every method may raise `Unkept`.

    Nothing that was kept is lost with the process. What was sent and neither dropped nor acknowledged comes
    again: when its time is over, or at once when another connection opens the queue.
    """

    async def open(self, queue: Queue, *, connection: str) -> int | None:
        """Make the queue, or change its options, for a connection to take from; its id.

        None when the holder has too many of them.
        """

    async def forget(self, realm: str, queue: int) -> None:
        """Delete the queue with what is in it."""

    async def matching(self, realm: str, *, producer: str, event: str) -> Sequence[tuple[int, Queue]]:
        """The queues that may match a pair in lower case, the oldest first; some of them may not."""

    async def keep(
        self, realm: str, queues: Collection[int], envelope: frames.Body, *, seconds: float
    ) -> Collection[int]:
        """Put a message into queues, for so long; returns those that had room, or are gone."""

    async def take(self, realm: str, queue: int, *, connection: str) -> Batch:
        """What is to be sent over a connection now; from then on it is out."""

    async def drop(self, realm: str, queue: int, ids: Collection[int]) -> None:
        """Messages are done with."""

    async def acknowledged(self, realm: str, holder: str, id: int, *, connection: str) -> tuple[Verdict, int]:
        """A connection has done what a message said, which is then done with; its queue's id, or 0.

        Only the connection that it was sent over last can say so.
        """


def lifetime(ttl: object) -> float:
    """Seconds that a message is kept, by its producer's `ttl`."""
    if isinstance(ttl, int | float) and not isinstance(ttl, bool) and ttl > 0:
        return float(min(ttl, LONGEST_SECONDS))
    return KEPT_SECONDS


def _seconds(value: object, default: float) -> float:
    """Seconds as clients give them: a number, `500ms`, `30s`, `2m`; an hour at most."""
    if isinstance(value, str) and (match := re.fullmatch(r"(\d{1,9})(ms|s|m)?", value)):
        value = int(match[1]) * {"ms": 0.001, "s": 1, "m": 60, None: 1}[match[2]]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(min(max(value, 0), 3600))
    return default
