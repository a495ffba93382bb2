"""Producers' names that are claimed for all replicas: what is asked of the store, renewed and let go."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import replace

from broker_bridge.actions import Claim, Release, Whose
from broker_bridge.connection import Connection, Frame
from broker_bridge.names import TRUSTED_SECONDS, Name
from broker_bridge.registry import Registry


def question(registry: Registry, connection: Connection, frame: Frame, folded: str) -> Claim | Whose:
    """What is asked before a connection goes by a name: for all replicas where there is a store for it."""
    assert connection.admission is not None
    owner = connection.admission
    if not registry.claims:
        return Whose(connection.id, frame, owner.realm, folded)
    name = Name(owner.realm, folded, owner.holder, connection.id)
    return Claim(connection.id, frame, name, registry.now + TRUSTED_SECONDS)


def let_go(left: Connection) -> Iterator[Release]:
    """A connection is gone, with the names that it claimed."""
    if names := _claimed_by(left):
        yield Release(tuple(names))


def all_claimed(registry: Registry) -> set[Name]:
    """The names that connections hold, and claimed."""
    return {name for connection in registry.all_admitted() for name in _claimed_by(connection)}


def renewed(registry: Registry, asked: Collection[Name], still: Collection[Name], *, until: float) -> None:
    """Of `asked`, those `still` their holders' are so until then; the others have to be claimed again."""
    for connection in registry.all_admitted():
        for name in _claimed_by(connection):
            if name in asked:
                held = connection.producers[name.name]
                to = max(held.until, until) if name in still else -math.inf
                connection.producers[name.name] = replace(held, until=to)


def _claimed_by(connection: Connection) -> list[Name]:
    owner = connection.admission
    if owner is None:
        return []
    held = connection.producers.items()
    return [Name(owner.realm, name, owner.holder, connection.id) for name, each in held if each.is_claimed]
