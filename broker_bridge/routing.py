"""To whom what other programs produce goes: subscribers, one member of each group, or everybody at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from broker_bridge import frames
from broker_bridge.actions import Emit
from broker_bridge.registry import Registry
from broker_bridge.subscriptions import ANY_EVENT, ANY_PRODUCER, fold, like_the_records


@dataclass(frozen=True, slots=True)
class Said:
    """What a producer produced: the pair in lower case, and the envelope as it is delivered."""

    producer: str
    event: str
    envelope: frames.Body

    @classmethod
    def read(cls, body: frames.Body, *, name: str, event: str) -> Said:
        """Read a PRODUCE: the message as it came, absent where it was."""
        message = {"message": body["message"]} if "message" in body else {}
        marks = {"enc": body.get("enc"), "to": body.get("to"), "content_type": body.get("contentType")}
        marked = {key: mark for key, mark in marks.items() if mark}
        return cls(fold(name), fold(event), {"event": event, **message, "from": name, **marked})


def to_subscribers(registry: Registry, realm: str | None, said: Said) -> Iterator[Emit]:
    """One copy for each subscription of the pair, and for one member of each group in turn."""
    groups: dict[str, list[Emit]] = {}
    for listener in registry.realm(realm):
        for subscription in listener.hears(said.producer, said.event):
            copy = Emit(listener.id, subscription.delivered, said.envelope)
            if subscription.group is None:
                yield copy
            else:
                groups.setdefault(subscription.group, []).append(copy)
    for group, copies in groups.items():
        yield copies[registry.turn(realm, group) % len(copies)]


def to_group(registry: Registry, realm: str | None, group: str, said: Said) -> Iterator[Emit]:
    """One copy for each member, whatever it subscribed to; but nothing is heard as the record."""
    for listener in registry.realm(realm):
        for subscription in listener.subscriptions.values():
            if subscription.group == group and not like_the_records(subscription.key):
                yield Emit(listener.id, subscription.delivered, said.envelope)
                break


def to_realm(registry: Registry, realm: str | None, said: Said) -> Iterator[Emit]:
    """A copy under each name that a client may listen for, to whoever registered, the producer included."""
    event, name = said.envelope["event"], said.envelope["from"]
    everybody = [c.id for c in registry.realm(realm) if c.consumers or c.producers]
    for delivered in (
        f"{name}-{ANY_EVENT}-CONSUME",
        f"CONSUME-{event}",
        f"CONSUME-{said.producer}-{said.event}",
        f"CONSUME-{ANY_PRODUCER}-{said.event}",
        f"CONSUME-{said.producer}-{ANY_EVENT}",
    ):
        for id in everybody:
            yield Emit(id, delivered, said.envelope)
