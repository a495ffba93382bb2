"""To whom what other programs produce goes: subscribers, one member of each group, or everybody at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from broker_bridge.actions import Emit
from broker_bridge.queues import Queue
from broker_bridge.registry import Registry
from broker_bridge.said import Said
from broker_bridge.subscriptions import ANY_EVENT, ANY_PRODUCER, like_the_records


def to_subscribers(
    registry: Registry, realm: str, said: Said, queues: Sequence[tuple[int, Queue]] = ()
) -> tuple[list[Emit], list[int]]:
    """One copy for each subscription of the pair, and for one member of each group in turn.

    A copy goes to a connection, or into a queue. A member of a group that is away gets one only when all are.
    """
    keeping = {id: queue.subscription.group for id, queue in queues if _keeps(queue, said)}
    there: list[tuple[str | None, Emit | int]] = []
    for listener in registry.realm(realm):
        for subscription in listener.hears(said.producer, said.event):
            copy = Emit(listener.id, subscription.delivered, said.envelope)
            kept = subscription.queue if subscription.queue in keeping else None
            there.append((subscription.group, copy if kept is None else kept))
    present = {copy for _, copy in there if isinstance(copy, int)}
    away: list[tuple[str | None, Emit | int]] = [
        (group, id) for id, group in keeping.items() if id not in present
    ]
    chosen = [copy for group, copy in (*there, *away) if group is None]
    groups = dict.fromkeys(group for group, _ in (*there, *away) if group is not None)
    for group in groups:
        members = [copy for each, copy in there if each == group] or [
            id for each, id in away if each == group
        ]
        chosen.append(members[registry.turn(realm, group) % len(members)])
    copies = [copy for copy in chosen if isinstance(copy, Emit)]
    return copies, list(dict.fromkeys(copy for copy in chosen if isinstance(copy, int)))


def to_group(registry: Registry, realm: str | None, group: str, said: Said) -> Iterator[Emit]:
    """One copy for each member, whatever it subscribed to; but nothing is heard as the record."""
    for listener in registry.realm(realm):
        for subscription in listener.subscriptions.values():
            if subscription.group == group and not like_the_records(subscription.key):
                yield Emit(listener.id, subscription.delivered, said.envelope)
                break


def to_realm(registry: Registry, realm: str | None, said: Said) -> Iterator[Emit]:
    """A copy under each name that a client may listen for, to whoever registered, the producer included."""
    everybody = [c.id for c in registry.realm(realm) if c.consumers or c.producers]
    for delivered in names_of_broadcast(said):
        for id in everybody:
            yield Emit(id, delivered, said.envelope)


def names_of_broadcast(said: Said) -> tuple[str, ...]:
    """Under what a broadcast to a realm is heard; one of them is the original's slip."""
    event, name = said.envelope["event"], said.envelope["from"]
    return (
        f"{name}-{ANY_EVENT}-CONSUME",
        f"CONSUME-{event}",
        f"CONSUME-{said.producer}-{said.event}",
        f"CONSUME-{ANY_PRODUCER}-{said.event}",
        f"CONSUME-{said.producer}-{ANY_EVENT}",
    )


def _keeps(queue: Queue, said: Said) -> bool:
    return (queue.durable or said.guaranteed) and queue.subscription.matches(said.producer, said.event)
