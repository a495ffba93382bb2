"""A nerve inside one process, for tests and for programs that need no broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Literal

from broker_bridge.nudge import Nudge
from broker_bridge.outbox import Outbox


class MemoryNerve:
    """Tells listeners of the same event loop."""

    def __init__(self, *, tick: float = 0.008) -> None:
        self._tick = tick
        self._outbox = Outbox()
        self._listeners: list[tuple[str, str, Callable[[Nudge], None]]] = []
        self._carrying: asyncio.Task[None] | None = None

    def listen(self, on_nudge: Callable[[Nudge], None], *, realm: str, name: str) -> None:
        """Hear what is said to the box or person `name` of `realm`, from now on."""
        self._listeners.append((realm, name, on_nudge))

    @property
    def state(self) -> Literal["ok", "degraded"]:
        """`ok` between start and close."""
        return "ok" if self._carrying is not None else "degraded"

    @property
    def dropped(self) -> int:
        """How many nudges were dropped because too many rooms waited at once."""
        return self._outbox.dropped

    def nudge(self, nudge: Nudge, *, realm: str, names: Collection[str]) -> None:
        """See `Nerve.nudge`."""
        self._outbox.put(nudge, realm=realm, names=names)

    async def start(self) -> None:
        """Begin to carry."""
        if self._carrying is None:
            self._carrying = asyncio.create_task(self._carry())

    async def close(self) -> None:
        """Stop carrying."""
        if self._carrying is not None:
            self._carrying.cancel()
            await asyncio.wait({self._carrying})
            self._carrying = None

    async def _carry(self) -> None:
        while True:
            await self._outbox.filled()
            for parcel in self._outbox.take():
                for realm, name, on_nudge in self._listeners:
                    if realm == parcel.realm and name in parcel.names:
                        on_nudge(parcel.nudge)
            await asyncio.sleep(self._tick)
