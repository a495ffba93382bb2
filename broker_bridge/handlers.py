"""What each event of the protocol does, once its sender is known and its role allows it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

from broker_bridge import frames, presence
from broker_bridge.actions import Action, Answer, Ask, Emit, HangUp
from broker_bridge.connection import Connection, Frame, Producer
from broker_bridge.nerve import ANY_REALM, Admission
from broker_bridge.nudge import EVENT, PRODUCER, Nudge
from broker_bridge.registry import Registry
from broker_bridge.subscriptions import ANY_PRODUCER, Subscription, fold, reserved

Handler = Callable[[Registry, Connection, Frame], Iterator[Action]]


def auth_fail(connection: Connection, code: int, message: str) -> Emit:
    """A refusal; the connection stays open."""
    return Emit(connection.id, "AUTH_FAIL", {"code": code, "message": message})


def error(connection: Connection, code: int, message: str) -> Emit:
    """An error notice; the connection stays open."""
    return Emit(connection.id, "ERROR", {"message": message, "code": code})


def authentication(registry: Registry, connection: Connection, frame: Frame) -> Iterator[Action]:
    """Ask who bears the token; only a token counts, whatever realm or role is claimed beside it."""
    body = frames.body(frame.payload)
    if connection.admission is not None:
        yield auth_fail(connection, 403, "Socket is already authenticated")
    elif body is None:
        yield auth_fail(connection, 401, "Invalid authentication payload")
    elif not body.get("token"):
        yield auth_fail(connection, 401, "Missing authentication token")
    elif (token := _token(body["token"], limit=registry.limits.text)) is None:
        yield auth_fail(connection, 401, "Invalid authentication token")
    else:
        connection.asking = True
        yield Ask(connection.id, token)


def consumer(registry: Registry, connection: Connection, frame: Frame) -> Iterator[Action]:
    """Register a consumer's name. An earlier connection of the same owner under this name is let go of."""
    body = frames.body(frame.payload) or {}
    name = frames.text(body.get("name"), limit=registry.limits.text)
    if name is None or not _room(connection.consumers, name, registry):
        yield error(connection, -1, "Incorrect consumer's name")
        return
    if _anonymous(name):
        yield from _no_anonymous(connection, "consumers")
        return
    assert connection.admission is not None
    id = frames.text(body.get("id"), limit=registry.limits.text) or connection.id
    earlier = registry.claim_consumer(connection, connection.admission, name, id)
    if earlier is not None:
        yield error(
            earlier,
            -3,
            f"Duplicate consumer name: '{name}' is already registered. "
            "Use a unique app_id per broker/instance.",
        )
        yield HangUp(earlier.id)


def producer(registry: Registry, connection: Connection, frame: Frame) -> Iterator[Action]:
    """Register a producer's name, and tell it of its subscribers."""
    body = frames.body(frame.payload) or {}
    name = frames.text(body.get("name"), limit=registry.limits.text)
    if name is None:
        yield error(connection, -1, "Incorrect producer's name")
    elif _anonymous(name):
        yield from _no_anonymous(connection, "producers")
    elif not _may_produce_as(registry, connection, name, event=""):
        yield auth_fail(connection, 403, f"The producer's name '{name}' is not yours")
    else:
        id = frames.text(body.get("id"), limit=registry.limits.text) or connection.id
        connection.producers[fold(name)] = registered = Producer(name, id)
        yield from presence.registered(connection, registered, registry.realm(connection.realm))


def subscribe(registry: Registry, connection: Connection, frame: Frame) -> Iterator[Action]:
    """Hear a pair from now on; again for the same pair changes its options."""
    body = frames.body(frame.payload)
    subscription = Subscription.read(body, limit=registry.limits.text) if body is not None else None
    if subscription is None:
        yield Emit(connection.id, "ERROR", "Message name should be a object")
        return
    key = (subscription.key, subscription.topic)
    if key not in connection.subscriptions and len(connection.subscriptions) >= registry.limits.subscriptions:
        yield error(connection, -5, "Too many subscriptions on this connection")
        return
    connection.subscriptions[key] = subscription
    yield from presence.subscribed(connection, subscription, registry.realm(connection.realm))


def unsubscribe(registry: Registry, connection: Connection, frame: Frame) -> Iterator[Action]:
    """Hear a pair no longer, named as `producer-event` or as it was subscribed to."""
    body = frames.body(frame.payload)
    named = Subscription.read(body, limit=registry.limits.text) if body is not None else None
    if named is not None:
        key = named.key
    elif isinstance(frame.payload, str):
        key = fold(frame.payload)
    else:
        return
    for topic in (False, True):
        connection.subscriptions.pop((key, topic), None)
    yield from ()


def produce(registry: Registry, connection: Connection, frame: Frame) -> Iterator[Action]:
    """Deliver to every subscriber of the pair; what reads like a nudge, only from the record."""
    body = frames.body(frame.payload) or {}
    event = frames.text(body.get("event"), limit=registry.limits.text)
    name = frames.text(body.get("from", "ANONYMOUS"), limit=registry.limits.text)
    if event is None or name is None:
        yield error(connection, -2, "PRODUCE needs an event and, where given, a producer's name in from")
    elif _anonymous(name):
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


def ack(_: Registry, connection: Connection, frame: Frame) -> Iterator[Action]:
    """Nothing is delivered for acknowledgement yet, so nothing can be pending."""
    body = frames.body(frame.payload) or {}
    named = next((body[key] for key in ("msgId", "msg_id", "id") if body.get(key)), None)
    code, message = (404, "Pending ACK not found") if named else (400, "ACK requires msgId")
    answer = {"ok": False, "code": code, "message": message}
    yield Emit(connection.id, "ACK_FAIL", answer)
    yield Answer(frame.ref, answer)


def ping(_: Registry, __: Connection, frame: Frame) -> Iterator[Action]:
    """A barrier: every earlier frame of this connection is dealt with. Costs no echo of large payloads."""
    body = frames.body(frame.payload)
    if body is not None and len(body) <= 16 and all(isinstance(v, str | int | float) for v in body.values()):
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        pong = {**body, "pong": "PONG", "timestamp": now}
        yield Answer(frame.ref, json.dumps(pong, separators=(",", ":")))


def chunk(_: Registry, connection: Connection, __: Frame) -> Iterator[Action]:
    """Large messages in pieces are not carried."""
    yield error(connection, -2, "Messages in pieces are not carried; keep PRODUCE under the frame's limit")


def not_offered(_: Registry, __: Connection, frame: Frame) -> Iterator[Action]:
    """What the original offers beside publishing and subscribing; whoever asks must not wait in vain."""
    yield Answer(frame.ref, {"ok": False, "code": 501, "message": f"{frame.event} is not offered here"})


def quit_(_: Registry, connection: Connection, frame: Frame) -> Iterator[Action]:
    """Hang up on the sender, who names its own connection."""
    if frame.payload == connection.id:
        yield HangUp(connection.id)


HANDLERS: Mapping[str, Handler] = {
    "AUTHENTICATION": authentication,
    "CONSUMER": consumer,
    "PRODUCER": producer,
    "SUBSCRIBE": subscribe,
    "UNSUBSCRIBE": unsubscribe,
    "PRODUCE": produce,
    "PRODUCE_CHUNK": chunk,
    "ACK": ack,
    "PING": ping,
    "QUIT": quit_,
    **dict.fromkeys(
        (
            "KEY_PUBLISH",
            "KEY_LOOKUP",
            "PREKEY_PUBLISH",
            "PREKEY_TAKE",
            "SEALED_CERT_REQUEST",
            "PUSH_REGISTER",
            "PUSH_UNREGISTER",
            "REMOTE_TICKET_REQUEST",
            "AUTHORIZATION_REQUEST",
            "AUTH_MANAGEMENT_COMMAND",
        ),
        not_offered,
    ),
}
"""Anything else (HELLO, DEBUG, …) is let pass without an answer."""


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
        and _room(connection.producers, fold(name), registry)
        and not registry.producer_is_anothers(connection.admission, fold(name))
    )


def _token(value: object, *, limit: int) -> str | None:
    token = frames.text(value, limit=limit)
    return token if token is not None and token.isprintable() else None


def _room(names: Mapping[str, object], name: str, registry: Registry) -> bool:
    return name in names or len(names) < registry.limits.names


def _anonymous(name: str) -> bool:
    return name == "ANONYMOUS" or name.startswith("ANONYMOUS-")


def _no_anonymous(connection: Connection, kind: str) -> Iterator[Action]:
    yield error(
        connection,
        -4,
        f"Anonymous {kind} are not allowed in realm '{connection.realm}'. "
        "Set a unique app_id per broker/instance.",
    )
    yield HangUp(connection.id)
