"""A store's answers without an event loop, for tests of the core alone."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from broker_bridge.actions import Acknowledge, Find, Keep, Open, Question
from broker_bridge.memory_store import MemoryStore


def answer(store: MemoryStore, asked: Question) -> Any:
    """What the store says to a question."""
    match asked:
        case Open(connection, _, queue):
            return now(store.open(queue, connection=connection))
        case Find(_, _, realm, said):
            return now(store.matching(realm, producer=said.producer, event=said.event))
        case Keep(_, _, realm, said, _, queues):
            return now(store.keep(realm, queues, said.envelope, seconds=said.seconds))
        case Acknowledge(connection, _, realm, holder, id):
            return now(store.acknowledged(realm, holder, id, connection=connection))[0]


def now(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine returns that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits")
