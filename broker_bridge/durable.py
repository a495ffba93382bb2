"""What the protocol does with queues. A frame that needs the store waits for it, and so do those behind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from broker_bridge import frames, presence, routing
from broker_bridge.actions import Acknowledge, Action, Answer, Attach, Detach, Emit, Find, Forget, Keep, Open
from broker_bridge.connection import Connection, Frame
from broker_bridge.queues import Kept, Queue, Retry, Unkept, Verdict
from broker_bridge.refusals import error
from broker_bridge.registry import Registry
from broker_bridge.subscriptions import Subscription, like_the_records

NOT_OFFERED = "Nothing is kept here: this nerve has no database. Ask the one inside the record"
FOR_NOBODY = "Nothing is kept for whoever has no token"
AWAY = "The database is away: nothing of this was done. Send it again"


def subscribe(
    registry: Registry, connection: Connection, frame: Frame, body: frames.Body, subscription: Subscription
) -> Iterator[Action]:
    """Hear a pair from now on; with `durable`, what comes while nobody is there, too."""
    durable = bool(body.get("durable")) and _can_be_kept(subscription)
    given = body.get("consumer_id") or body.get("id")
    id = frames.text(given, limit=registry.limits.text)
    if durable and not given and subscription.consumer != "ANONYMOUS":
        id = subscription.consumer
    assert connection.admission is not None
    owner = connection.admission
    keeps = registry.keeps and owner.kind != "anonymous"
    if durable and not registry.keeps:
        yield error(connection, -7, NOT_OFFERED)
    elif durable and not keeps:
        yield error(connection, -7, FOR_NOBODY)
    elif durable and id is None:
        yield error(connection, -2, "A durable subscription needs a consumer_id of printable characters")
    elif not keeps or id is None or not _can_be_kept(subscription):
        yield from _heard(registry, connection, subscription)
    else:
        queue = Queue(
            owner.realm, owner.holder, id, subscription, durable, Retry.read(body) if durable else None
        )
        yield Open(connection.id, frame, queue)


def opened(registry: Registry, asked: Open, answer: int | Unkept | None) -> Iterator[Action]:
    """The queue is there, or is not."""
    connection = registry.get(asked.connection)
    if connection is None:
        return
    if isinstance(answer, Unkept) and asked.queue.durable:
        yield error(connection, -7, AWAY)
    elif answer is None and asked.queue.durable:
        yield error(connection, -5, "Too many durable subscriptions with this token; UNSUBSCRIBE ends one")
    else:
        id = answer if isinstance(answer, int) else None
        subscription, acknowledged = asked.queue.subscription, asked.queue.retry is not None
        yield from _heard(registry, connection, replace(subscription, queue=id, acknowledged=acknowledged))
        if id is not None:
            yield Attach(connection.id, asked.queue.realm, id, acknowledged=acknowledged)


def forget(connection: Connection, subscription: Subscription) -> Iterator[Action]:
    """A subscription ends for good, and its queue with it."""
    if subscription.queue is not None and connection.realm is not None:
        yield Detach(connection.id, subscription.queue)
        yield Forget(connection.realm, subscription.queue)


def found(registry: Registry, asked: Find, answer: list[tuple[int, Queue]] | Unkept) -> Iterator[Action]:
    """The queues that a message may be for: keep it there first, then deliver it to everybody else."""
    if isinstance(answer, Unkept):
        yield from _refuse(registry, asked.connection, AWAY)
        return
    copies, queues = routing.to_subscribers(registry, asked.realm, asked.said, answer)
    if queues:
        yield Keep(asked.connection, asked.frame, asked.realm, asked.said, tuple(copies), tuple(queues))
    else:
        yield from copies


def kept(registry: Registry, asked: Keep, answer: set[int] | Unkept) -> Iterator[Action]:
    """The message is kept wherever there was room."""
    if isinstance(answer, Unkept):
        yield from _refuse(registry, asked.connection, AWAY)
        return
    yield from asked.copies
    connection = registry.get(asked.connection)
    if connection is not None and (full := len(set(asked.queues) - set(answer))):
        yield error(connection, -8, f"{full} durable subscribers have no room for more and miss this")


def deliveries(connection: Connection, queue: int, messages: Iterable[Kept]) -> Iterator[Emit]:
    """Messages of a queue, with an id where they are to be acknowledged."""
    subscription = next((s for s in connection.subscriptions.values() if s.queue == queue), None)
    if subscription is None:
        return
    for message in messages:
        id = f"msg-{message.id}"
        marks = {"msgId": id, "msg_id": id, "delivery_attempt": message.attempt}
        envelope = message.envelope | marks if subscription.acknowledged else message.envelope
        yield Emit(connection.id, subscription.delivered, envelope)


def acknowledge(registry: Registry, connection: Connection, frame: Frame) -> Iterator[Action]:
    """A consumer has done what a message said."""
    body = frames.body(frame.payload)
    named = next((body[key] for key in ("msgId", "msg_id", "id") if body.get(key)), None) if body else None
    match = re.fullmatch(r"msg-(\d{1,18})", named) if isinstance(named, str) else None
    if body is None:
        yield from _not_acknowledged(connection.id, frame, 400, "Invalid ACK JSON")
    elif named is None:
        yield from _not_acknowledged(connection.id, frame, 400, "ACK requires msgId")
    elif match is None or not registry.keeps or connection.admission is None:
        yield from _not_acknowledged(connection.id, frame, 404, "Pending ACK not found")
    else:
        owner = connection.admission
        yield Acknowledge(connection.id, frame, owner.realm, owner.holder, int(match[1]))


def acknowledged(registry: Registry, asked: Acknowledge, answer: Verdict | Unkept) -> Iterator[Action]:
    """The message is done with, or this connection has nothing to say about it."""
    match answer:
        case "acknowledged":
            connection = registry.get(asked.connection)
            if connection is not None:
                connection.bucket.give()  # a queue goes as fast as its consumer does
            done = {"ok": True, "msgId": f"msg-{asked.id}"}
            yield Emit(asked.connection, "ACK_OK", done)
            yield Answer(asked.frame.ref, done)
        case "anothers":
            yield from _not_acknowledged(
                asked.connection, asked.frame, 403, "ACK does not belong to this socket"
            )
        case "unknown":
            yield from _not_acknowledged(asked.connection, asked.frame, 404, "Pending ACK not found")
        case _:
            yield from _not_acknowledged(asked.connection, asked.frame, 500, AWAY)


def _heard(registry: Registry, connection: Connection, subscription: Subscription) -> Iterator[Action]:
    key = subscription.pair
    earlier = connection.subscriptions.get(key)
    connection.subscriptions[key] = subscription
    if earlier is not None and earlier.queue not in (None, subscription.queue):
        yield Detach(connection.id, earlier.queue)
    notices = presence.subscribed(connection, subscription, registry.realm(connection.realm))
    yield from registry.bounded(connection, notices)


def _can_be_kept(subscription: Subscription) -> bool:
    """Nudges are never kept: who was away asks the record."""
    return not like_the_records(subscription.key)


def _refuse(registry: Registry, id: str, message: str) -> Iterator[Action]:
    connection = registry.get(id)
    if connection is not None:
        yield error(connection, -7, message)


def _not_acknowledged(id: str, frame: Frame, code: int, message: str) -> Iterator[Action]:
    answer = {"ok": False, "code": code, "message": message}
    yield Emit(id, "ACK_FAIL", answer)
    yield Answer(frame.ref, answer)
