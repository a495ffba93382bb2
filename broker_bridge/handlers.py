"""What each event of the protocol does, once its sender is known and its role allows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

from broker_bridge import durable, frames
from broker_bridge.actions import Action, Answer, Ask, HangUp, LookAgain
from broker_bridge.chunks import BadPiece
from broker_bridge.connection import Connection, Frame
from broker_bridge.nerve import Credential
from broker_bridge.publishing import is_record, produce, producer
from broker_bridge.refusals import REFUSED, auth_fail, error, is_anonymous, no_anonymous
from broker_bridge.registry import Registry
from broker_bridge.subscriptions import Subscription, fold

Handler = Callable[[Registry, Connection, Frame], Iterator[Action]]


def authentication(registry: Registry, connection: Connection, frame: Frame) -> Iterator[Action]:
    """Ask whom the token, or the ticket, admits, whatever realm or role is claimed beside it.

    Without either, a realm may be named that lets anonymous listeners in; they only listen.
    """
    body = frames.body(frame.payload)
    if connection.admission is not None:
        yield auth_fail(connection, 403, "This connection is logged in already")
    elif body is None:
        yield auth_fail(connection, 401, "AUTHENTICATION needs an object with a token")
    elif (by := _named(body)) is None:
        yield auth_fail(connection, 401, REFUSED["realm"])
    elif by == "realm" and (role := body.get("role", "consumer")) != "consumer":
        code = 403 if role in ("producer", "both") else 401
        yield auth_fail(connection, code, "Without a token one can only listen, with the role consumer")
    elif (value := frames.text(body[by], limit=registry.limits.text)) is None:
        yield auth_fail(connection, 401, REFUSED[by])
    else:
        connection.asking, connection.login = Credential(by, value), frame
        yield Ask(connection.id, connection.asking)


def consumer(registry: Registry, connection: Connection, frame: Frame) -> Iterator[Action]:
    """Register a consumer's name. An earlier connection of the same owner under this name is let go of."""
    body = frames.body(frame.payload) or {}
    name = frames.text(body.get("name"), limit=registry.limits.text)
    if name is None or not registry.limits.has_room(connection.consumers, name):
        yield error(connection, -1, "CONSUMER needs a name, and a connection holds few of them")
        return
    assert connection.admission is not None
    if is_anonymous(name) and connection.admission.kind != "anonymous":
        yield from no_anonymous(connection, "consumers")
        return
    id = frames.text(body.get("id"), limit=registry.limits.text) or connection.id
    earlier = registry.claim_consumer(connection, connection.admission, name, id)
    if earlier is not None:
        yield error(earlier, -3, f"A newer connection of yours took the consumer's name '{name}' over")
        yield HangUp(earlier.id)


def subscribe(registry: Registry, connection: Connection, frame: Frame) -> Iterator[Action]:
    """Hear a pair from now on; again for the same pair changes its options."""
    body = frames.body(frame.payload)
    subscription = Subscription.read(body, limit=registry.limits.text) if body is not None else None
    if subscription is None:
        yield error(connection, -2, "SUBSCRIBE needs an event and, where given, a producer's name")
        return
    key = subscription.pair
    if key not in connection.subscriptions and len(connection.subscriptions) >= registry.limits.subscriptions:
        yield error(connection, -5, "Too many subscriptions on this connection")
        return
    yield from durable.subscribe(registry, connection, frame, body or {}, subscription)


def unsubscribe(registry: Registry, connection: Connection, frame: Frame) -> Iterator[Action]:
    """Hear a pair no longer, named as `producer-event` or as it was subscribed to."""
    body = frames.body(frame.payload)
    named = Subscription.read(body, limit=registry.limits.text) if body is not None else None
    for subscription in list(connection.subscriptions.values()):
        if named is not None:
            is_named = (named.producer, named.event) == (subscription.producer, subscription.event)
        else:
            is_named = isinstance(frame.payload, str) and fold(frame.payload) == subscription.key
        if is_named:
            del connection.subscriptions[subscription.pair]
            yield from durable.forget(connection, subscription)


def ping(_: Registry, __: Connection, frame: Frame) -> Iterator[Action]:
    """A barrier: every earlier frame of this connection is dealt with."""
    body = frames.body(frame.payload)
    if body is not None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        pong = {**body, "pong": "PONG", "timestamp": now}
        yield Answer(frame.ref, frames.dumps(pong))


def chunk(registry: Registry, connection: Connection, frame: Frame) -> Iterator[Action]:
    """A piece of a PRODUCE that is too large for one frame; the last one produces it."""
    try:
        text = connection.transfers.add(frames.body(frame.payload) or {}, now=frame.at)
    except BadPiece as bad:
        yield error(connection, -2, str(bad))
        return
    if text is not None:
        yield from produce(registry, connection, replace(frame, payload=text))


def not_offered(_: Registry, __: Connection, frame: Frame) -> Iterator[Action]:
    """What the original offers beside publishing and subscribing; whoever asks must not wait in vain."""
    yield Answer(frame.ref, {"ok": False, "code": 501, "message": f"{frame.event} is not offered here"})


def look_again(_: Registry, connection: Connection, __: Frame) -> Iterator[Action]:
    """The record says that somebody may have to go. Nobody else can say so."""
    if is_record(connection.admission):
        yield LookAgain()


def quit_(_: Registry, connection: Connection, frame: Frame) -> Iterator[Action]:
    """Hang up on the sender, who names its own connection."""
    if frame.payload == connection.id:
        yield HangUp(connection.id)


LOOK_AGAIN = "LOOK_AGAIN"
"""The one event that the original does not know."""

HANDLERS: Mapping[str, Handler] = {
    "AUTHENTICATION": authentication,
    "CONSUMER": consumer,
    "PRODUCER": producer,
    "SUBSCRIBE": subscribe,
    "UNSUBSCRIBE": unsubscribe,
    "PRODUCE": produce,
    "PRODUCE_CHUNK": chunk,
    "ACK": durable.acknowledge,
    "PING": ping,
    "QUIT": quit_,
    LOOK_AGAIN: look_again,
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
            "AUTHORIZATION_NEXT",
            "AUTHORIZATION_DECIDE",
            "AUTH_MANAGEMENT_COMMAND",
        ),
        not_offered,
    ),
}
"""Anything else (HELLO, DEBUG, …) is let pass without an answer."""


def _named(body: frames.Body) -> Literal["token", "ticket", "realm"] | None:
    """What is there to log in with; the first of them counts."""
    if body.get("token"):
        return "token"
    if body.get("ticket"):
        return "ticket"
    return "realm" if body.get("realm") else None
