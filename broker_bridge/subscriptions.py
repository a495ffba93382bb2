"""What a consumer asked to hear, and the event name under which it hears it."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from broker_bridge import frames
from broker_bridge.nudge import DELIVERED, EVENT, PRODUCER

ANY_PRODUCER = "tyo-mq-all"
ANY_EVENT = "TM-ALL"
RESERVED = f"{PRODUCER}-{EVENT}"


def fold(name: str) -> str:
    """Names that differ in case alone are one name on the wire."""
    return name.lower()


def reserved(producer: str, event: str) -> bool:
    """Whether only the record may produce this: its own name, or a pair that reads like its own."""
    return _read(producer) == PRODUCER or _read(f"{producer}-{event}") == RESERVED


def like_the_records(key: str) -> bool:
    """Whether a pair begins like those that the record is heard under."""
    return _read(key).startswith(f"{PRODUCER}-")


def _read(name: str) -> str:
    """A name as people read it: other forms of a letter, and blanks, make no other name."""
    return "".join(unicodedata.normalize("NFKC", name).casefold().split())


@dataclass(frozen=True, slots=True)
class Subscription:
    """One SUBSCRIBE of one connection.

    Attributes:
        producer: folded name, or `tyo-mq-all`.
        event: folded name, a topic pattern, or `tm-all` for every event of the producer.
        consumer: the consumer's name as it was given.
        topic: whether `event` is a pattern; then every producer's events match.
        group: whose members share what is produced; nudges are never shared.
        queue: the id of its queue, where it has one.
        acknowledged: whether the queue's messages are to be acknowledged.
    """

    producer: str
    event: str
    consumer: str
    topic: bool
    group: str | None = None
    queue: int | None = None
    acknowledged: bool = False

    @classmethod
    def read(cls, body: frames.Body, *, limit: int) -> Subscription | None:
        """Read a SUBSCRIBE; None when its event or producer is no name."""
        event = frames.text(body.get("event"), limit=limit)
        producer = frames.text(body.get("producer", "ANONYMOUS"), limit=limit)
        if event is None or producer is None:
            return None
        if body.get("scope") == "all":
            event = ANY_EVENT
        consumer = frames.text(body.get("consumer"), limit=limit) or "ANONYMOUS"
        group = frames.text(body.get("group"), limit=limit)
        return cls(fold(producer), fold(event), consumer, body.get("mode") == "topic", group)

    @property
    def key(self) -> str:
        """The pair as the protocol writes it in notices and in UNSUBSCRIBE."""
        return f"{self.producer}-{self.event}"

    @property
    def pair(self) -> tuple[str, str, bool]:
        """What is subscribed to. Two pairs that read alike, `a-b` + `c` and `a` + `b-c`, are two."""
        return self.producer, self.event, self.topic

    @property
    def delivered(self) -> str:
        """The socket.io event of a delivery; clients listen for every event of one producer in capitals."""
        if self.event == fold(ANY_EVENT) and not self.topic:
            return f"CONSUME-{self.producer}-{ANY_EVENT}"
        return f"CONSUME-{self.key}"

    def matches(self, producer: str, event: str) -> bool:
        """Whether this hears `event` of `producer`, both folded. Only the record is heard as the record."""
        if self.delivered == DELIVERED and (producer, event) != (PRODUCER, EVENT):
            return False
        if self.topic:
            return topic_matches(self.event, event)
        return self.producer in (producer, ANY_PRODUCER) and self.event in (event, fold(ANY_EVENT))


def topic_matches(pattern: str, event: str) -> bool:
    """`/` parts levels, `+` is any one level, `#` at the end any rest, none included."""
    wanted, levels = pattern.split("/"), event.split("/")
    if wanted[-1] == "#":
        wanted.pop()
        levels = levels[: len(wanted)]
    return len(wanted) == len(levels) and all(
        want in ("+", level) for want, level in zip(wanted, levels, strict=True)
    )
