"""What producers do, and to whom it goes: only the record is ever heard as the record."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from broker_bridge import claims, frames, presence, routing
from broker_bridge.actions import Action, Claim, Emit, Find, PassOn, Release, Whose
from broker_bridge.connection import Connection, Frame, Producer
from broker_bridge.durable import NOT_OFFERED
from broker_bridge.nerve import ANY_REALM, Admission
from broker_bridge.nudge import EVENT, PRODUCER, Nudge
from broker_bridge.outbox import Parcel
from broker_bridge.queues import Unkept
from broker_bridge.refusals import auth_fail, error, is_anonymous, no_anonymous, rate_limited
from broker_bridge.registry import Registry
from broker_bridge.said import Said
from broker_bridge.subscriptions import fold, like_the_records, reserved

NOT_KNOWN = "Whose the producer's name is cannot be found out now: nothing of this was done. Send it again"
BOUNDS = f"at most {frames.MOST_VALUES:,} values, nested less than {frames.DEEPEST} deep"


def producer(
    registry: Registry, connection: Connection, frame: Frame, *, until: float | None = None
) -> Iterator[Action]:
    """Register a producer's name, and tell it of its subscribers."""
    body = frames.body(frame.payload) or {}
    name = frames.text(body.get("name"), limit=registry.limits.text)
    if name is None:
        yield error(connection, -1, "PRODUCER needs a name")
    elif is_anonymous(name):
        yield from no_anonymous(connection, "producers")
    elif not _may_produce_as(registry, connection, name, event=""):
        yield auth_fail(connection, 403, _why_not(registry, connection, name, "is not yours"))
    elif (until := until or _held_until(registry, connection, name)) is None:
        yield claims.question(registry, connection, frame, fold(name))
    else:
        id = frames.text(body.get("id"), limit=registry.limits.text) or connection.id
        connection.producers[fold(name)] = registered = Producer(name, id, until)
        notices = presence.registered(connection, registered, registry.realm(connection.realm))
        yield from registry.bounded(connection, notices)


def produce(registry: Registry, connection: Connection, frame: Frame) -> Iterator[Action]:
    """Deliver to the subscribers of the pair, or broadcast; what reads like a nudge, only from the record."""
    assert connection.admission is not None
    if not is_record(connection.admission) and not registry.may_produce(connection.admission, now=frame.at):
        yield from rate_limited(connection, frame.at)
    else:
        yield from _produce(registry, connection, frame)


def whose(registry: Registry, asked: Whose, answer: bool | Unkept) -> Iterator[Action]:
    """A name is another nerve token's, on every replica and for as long as that is known; or it is free."""
    connection = registry.get(asked.connection)
    if connection is None:
        return
    if isinstance(answer, Unkept):
        yield error(connection, -7, NOT_KNOWN)
    elif answer:
        yield auth_fail(connection, 403, f"The producer's name '{asked.name}' is that of another nerve token")
    else:
        yield from _go_on(registry, connection, asked.frame, until=math.inf)


def claimed(registry: Registry, asked: Claim, answer: bool | Unkept) -> Iterator[Action]:
    """A name is this connection's, at every replica, or it is another's."""
    connection, name = registry.get(asked.connection), asked.name.name
    if connection is None:
        yield Release((asked.name,))
    elif isinstance(answer, Unkept):
        yield error(connection, -7, NOT_KNOWN)
    elif not answer:
        connection.producers.pop(name, None)
        yield auth_fail(connection, 403, f"The producer's name '{name}' is that of another nerve token")
    else:
        yield from _go_on(registry, connection, asked.frame, until=asked.until)
        if name not in connection.producers:  # what it was for was refused
            yield Release((asked.name,))


def _go_on(registry: Registry, connection: Connection, frame: Frame, *, until: float) -> Iterator[Action]:
    goes_on = producer if frame.event == "PRODUCER" else _produce
    yield from goes_on(registry, connection, frame, until=until)


def _produce(
    registry: Registry, connection: Connection, frame: Frame, *, until: float | None = None
) -> Iterator[Action]:
    body = frames.body(frame.payload)
    if body is None:
        yield error(connection, -2, f"PRODUCE needs an object of {BOUNDS}")
        return
    event = frames.text(body.get("event"), limit=registry.limits.text)
    name = frames.text(body.get("from", "ANONYMOUS"), limit=registry.limits.text)
    if event is None or name is None:
        yield error(connection, -2, "PRODUCE needs an event and, where given, a producer's name in from")
    elif is_anonymous(name):
        yield error(connection, -4, "Name the producer in from")
    elif not _may_produce_as(registry, connection, name, event):
        why = f"with event '{event}' is not yours to produce"
        yield auth_fail(connection, 403, _why_not(registry, connection, name, why))
    elif (until := until or _held_until(registry, connection, name)) is None:
        yield claims.question(registry, connection, frame, fold(name))
    elif reserved(name, event):
        yield from _relay_nudge(registry, connection, body)
    else:
        said = Said.read(body, name=name, event=event)
        yield from _deliver(registry, connection, frame, body, said, until)


def nudge_deliveries(registry: Registry, nudge: Nudge, realm: str, names: frozenset[str]) -> Iterator[Emit]:
    """Deliver a nudge to the subscribers among `names`, who are boxes and people."""
    envelope = {"event": EVENT, "message": nudge.to_wire(), "from": PRODUCER}
    for listener in registry.realm(realm):
        who = listener.admission
        if who is not None and who.kind == "holder" and who.name in names:
            for subscription in listener.hears(PRODUCER, EVENT):
                yield Emit(listener.id, subscription.delivered, envelope)


def is_record(admission: Admission | None) -> bool:
    """Whether this is the record, by what it was admitted with; a name makes nobody the record."""
    return admission is not None and admission.kind == "record"


def _relay_nudge(registry: Registry, connection: Connection, body: frames.Body) -> Iterator[Action]:
    nudge = Nudge.from_wire(body.get("message"))
    realm = body.get("realm") if connection.realm == ANY_REALM else connection.realm
    if nudge is None or not isinstance(realm, str):
        yield error(connection, -2, "A nudge is exactly conv, from and at, with the names to tell in to")
    else:
        names = frozenset(frames.names(body.get("to")))
        yield from nudge_deliveries(registry, nudge, realm, names)
        yield PassOn(Parcel(realm, names, nudge))


def _deliver(
    registry: Registry, connection: Connection, frame: Frame, body: frames.Body, said: Said, until: float
) -> Iterator[Action]:
    """Send a message on its way, and hold its producer's name from then on; what is refused holds none."""
    assert connection.realm is not None
    is_broadcast, to_group = body.get("method") == "broadcast", body.get("broadcast") == "group"
    group = frames.text(body.get("group"), limit=registry.limits.text)
    if is_broadcast and any(map(_is_like_the_records, routing.names_of_broadcast(said))):
        yield auth_fail(connection, 403, "A broadcast cannot bear a name that begins like the record's")
        return
    if is_broadcast and to_group and group is None:
        yield error(connection, -2, "A broadcast to a group names it in group")
        return
    if not is_broadcast and said.guaranteed and not registry.keeps:
        yield error(connection, -7, NOT_OFFERED)
        return
    held = connection.producers.get(said.producer) or Producer(said.envelope["from"], connection.id)
    connection.producers[said.producer] = replace(held, until=until)
    if is_broadcast and to_group and group is not None:
        yield from routing.to_group(registry, connection.realm, group, said)
    elif is_broadcast:
        yield from routing.to_realm(registry, connection.realm, said)
    elif registry.keeps:
        yield Find(connection.id, frame, connection.realm, said)
    else:
        yield from routing.to_subscribers(registry, connection.realm, said)[0]


def _is_like_the_records(delivered: str) -> bool:
    """Whether the name of a delivery is, or begins like, those that the record is heard under."""
    return like_the_records(fold(delivered).removeprefix("consume-"))


def _why_not(registry: Registry, connection: Connection, name: str, otherwise: str) -> str:
    """What a producer is told whose name it cannot have."""
    if not is_record(connection.admission) and not registry.limits.has_room(connection.producers, fold(name)):
        return f"A connection produces under at most {registry.limits.names} names"
    return f"The producer's name '{name}' {otherwise}"


def _held_until(registry: Registry, connection: Connection, name: str) -> float | None:
    """How long nobody needs to be asked: it is the name of its token, or one that it holds already."""
    assert connection.admission is not None
    if is_record(connection.admission) or fold(name) == fold(connection.admission.name):
        return math.inf
    held = connection.producers.get(fold(name))
    return held.until if held is not None and registry.trusts(connection, fold(name)) else None


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
