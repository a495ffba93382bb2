"""What producers do, and to whom it goes: only the record is ever heard as the record."""

from __future__ import annotations

from collections.abc import Iterator

from broker_bridge import frames, presence
from broker_bridge.actions import Action, Emit
from broker_bridge.connection import Connection, Frame, Producer
from broker_bridge.nerve import ANY_REALM, Admission
from broker_bridge.nudge import EVENT, PRODUCER, Nudge
from broker_bridge.refusals import auth_fail, error, is_anonymous, no_anonymous
from broker_bridge.registry import Registry
from broker_bridge.subscriptions import ANY_PRODUCER, fold, reserved


def producer(registry: Registry, connection: Connection, frame: Frame) -> Iterator[Action]:
    """Register a producer's name, and tell it of its subscribers."""
    body = frames.body(frame.payload) or {}
    name = frames.text(body.get("name"), limit=registry.limits.text)
    if name is None:
        yield error(connection, -1, "PRODUCER needs a name")
    elif is_anonymous(name):
        yield from no_anonymous(connection, "producers")
    elif not _may_produce_as(registry, connection, name, event=""):
        yield auth_fail(connection, 403, f"The producer's name '{name}' is not yours")
    else:
        id = frames.text(body.get("id"), limit=registry.limits.text) or connection.id
        connection.producers[fold(name)] = registered = Producer(name, id)
        yield from presence.registered(connection, registered, registry.realm(connection.realm))


def produce(registry: Registry, connection: Connection, frame: Frame) -> Iterator[Action]:
    """Deliver to every subscriber of the pair; what reads like a nudge, only from the record."""
    body = frames.body(frame.payload) or {}
    event = frames.text(body.get("event"), limit=registry.limits.text)
    name = frames.text(body.get("from", "ANONYMOUS"), limit=registry.limits.text)
    if event is None or name is None:
        yield error(connection, -2, "PRODUCE needs an event and, where given, a producer's name in from")
    elif is_anonymous(name):
        yield error(connection, -4, "Name the producer in from")
    elif not _may_produce_as(registry, connection, name, event):
        yield auth_fail(connection, 403, f"'{name}' with event '{event}' is not yours to produce")
    elif reserved(name, event):
        yield from _relay_nudge(registry, connection, body)
    else:
        connection.producers.setdefault(fold(name), Producer(name, connection.id))
        envelope = _envelope(body, event, name)
        for listener in registry.realm(connection.realm):
            yield from deliveries(listener, fold(name), fold(event), envelope)


def deliveries(listener: Connection, name: str, event: str, envelope: frames.Body) -> Iterator[Emit]:
    """One copy for each subscription that matches, under that subscription's own event name."""
    matching = [s for s in listener.subscriptions.values() if s.matches(name, event)]
    for subscription in sorted(matching, key=lambda s: (s.topic, s.producer == ANY_PRODUCER)):
        yield Emit(listener.id, subscription.delivered, envelope)


def nudge_deliveries(registry: Registry, nudge: Nudge, realm: str, names: frozenset[str]) -> Iterator[Emit]:
    """Deliver a nudge to the subscribers among `names`."""
    envelope = {"event": EVENT, "message": nudge.to_wire(), "from": PRODUCER}
    for listener in registry.realm(realm):
        if listener.admission is not None and listener.admission.name in names:
            yield from deliveries(listener, PRODUCER, EVENT, envelope)


def is_record(admission: Admission | None) -> bool:
    """Whether this is the record: whoever was admitted as producer under its reserved name."""
    return admission is not None and admission.name == PRODUCER and admission.role in ("producer", "both")


def _relay_nudge(registry: Registry, connection: Connection, body: frames.Body) -> Iterator[Emit]:
    nudge = Nudge.from_wire(body.get("message"))
    realm = body.get("realm") if connection.realm == ANY_REALM else connection.realm
    if nudge is None or not isinstance(realm, str):
        yield error(connection, -2, "A nudge is exactly conv, from and at, with the names to tell in to")
    else:
        yield from nudge_deliveries(registry, nudge, realm, frozenset(frames.names(body.get("to"))))


def _envelope(body: frames.Body, event: str, name: str) -> frames.Body:
    """What other programs' messages are delivered as: the message as it came, absent where it was."""
    message = {"message": body["message"]} if "message" in body else {}
    marks = {"enc": body.get("enc"), "to": body.get("to"), "content_type": body.get("contentType")}
    return {"event": event, **message, "from": name, **{key: mark for key, mark in marks.items() if mark}}


def _may_produce_as(registry: Registry, connection: Connection, name: str, event: str) -> bool:
    """Names are their holder's while it is connected; what reads like the record's is the record's."""
    assert connection.admission is not None
    if is_record(connection.admission):
        return fold(name) == PRODUCER and event in ("", EVENT)
    return (
        not reserved(name, event)
        and registry.limits.has_room(connection.producers, fold(name))
        and not registry.producer_is_anothers(connection.admission, fold(name))
    )
