"""Nudges that wait to leave: one for each room, the newest, and never without end."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass

from broker_bridge.nudge import Nudge


@dataclass(frozen=True, slots=True)
class Parcel:
    """One nudge and whom to tell of it."""

    realm: str
    names: frozenset[str]
    nudge: Nudge


class Outbox:
    """Coalesces bursts per realm and room; a nudge put after a `take` is always in a later one.

    Holds at most `limit` rooms; beyond it the room that waited longest is dropped and counted.
    """

    def __init__(self, *, limit: int = 10_000) -> None:
        self._limit = limit
        self._waiting: dict[tuple[str, str], Parcel] = {}
        self._filled = asyncio.Event()
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, nudge: Nudge, *, realm: str, names: Collection[str]) -> None:
        """Add a nudge; the newer one of a room takes the place of the older, for the names of both."""
        key = (realm, nudge.conv)
        earlier = self._waiting.get(key)
        told = frozenset(names) | earlier.names if earlier else frozenset(names)
        self._waiting[key] = Parcel(realm, told, nudge)
        if len(self._waiting) > self._limit:
            del self._waiting[next(iter(self._waiting))]
            self.dropped += 1
        self._filled.set()

    def take(self) -> list[Parcel]:
        """Everything that waits, in the order in which the rooms began to."""
        parcels = list(self._waiting.values())
        self._waiting.clear()
        self._filled.clear()
        return parcels

    def restore(self, parcels: list[Parcel]) -> None:
        """Put back what could not be said, behind whatever is newer."""
        newer = self.take()
        for parcel in [*parcels, *newer]:
            self.put(parcel.nudge, realm=parcel.realm, names=parcel.names)

    def ring(self) -> None:
        """Have whoever waits for something to take look up, although there may be nothing."""
        self._filled.set()

    async def filled(self) -> None:
        """Wait until there is something to take, or somebody rings."""
        await self._filled.wait()
