"""Sends what queues hold to whoever is connected for them: one task for each queue, and no timers beside."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

import structlog

from broker_bridge.actions import Attach
from broker_bridge.queues import Kept, Store, Unkept

log = structlog.get_logger()

IDLE_SECONDS = 30.0
"""How often a queue is looked at of which nothing was heard: another replica may have put something in."""
AWAY_SECONDS = 1.0

Deliver = Callable[[str, int, Sequence[Kept]], Awaitable[bool]]


@dataclass(slots=True)
class _Pump:
    target: Attach
    task: asyncio.Task[None] | None = None
    wanted: asyncio.Event = field(default_factory=asyncio.Event)
    more: bool = False


class Pumps:
    """Each queue goes over one connection, the one that was attached last."""

    def __init__(self, store: Store, deliver: Deliver) -> None:
        """`deliver` sends messages of a queue over a connection; whether it was there for all of them."""
        self._store, self._deliver = store, deliver
        self._pumps: dict[int, _Pump] = {}

    def attach(self, target: Attach) -> None:
        """Send what the queue holds over this connection from now on."""
        self._stop(self._pumps.pop(target.queue, None))
        pump = self._pumps[target.queue] = _Pump(target)
        pump.task = asyncio.create_task(self._run(pump))

    def detach(self, connection: str, queue: int) -> None:
        """Send nothing more of the queue over this connection."""
        pump = self._pumps.get(queue)
        if pump is not None and pump.target.connection == connection:
            self._stop(self._pumps.pop(queue))

    def wake(self, queues: Iterable[int]) -> None:
        """Something was put into these queues."""
        for queue in queues:
            if queue in self._pumps:
                self._pumps[queue].wanted.set()

    def acknowledged(self, queue: int) -> None:
        """A message of the queue is done with: there may be room for the next."""
        pump = self._pumps.get(queue)
        if pump is not None and pump.more:
            pump.wanted.set()

    async def close(self) -> None:
        """Stop all of them."""
        tasks = [pump.task for pump in self._pumps.values() if pump.task is not None]
        for pump in self._pumps.values():
            self._stop(pump)
        self._pumps.clear()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _stop(self, pump: _Pump | None) -> None:
        if pump is not None and pump.task is not None:
            pump.task.cancel()

    async def _run(self, pump: _Pump) -> None:
        while True:
            pump.wanted.clear()
            try:
                seconds = await self._once(pump)
            except Unkept:
                seconds = AWAY_SECONDS
            except Exception:
                log.exception("nerve_task_failed")
                seconds = AWAY_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await pump.wanted.wait()

    async def _once(self, pump: _Pump) -> float:
        """Send what is to be sent now; returns the seconds until there may be more."""
        target = pump.target
        batch = await self._store.take(target.realm, target.queue, connection=target.connection)
        pump.more = batch.more
        if batch.messages:
            sent = await self._deliver(target.connection, target.queue, batch.messages)
            if sent and not target.acknowledged:
                await self._store.drop(target.realm, target.queue, [each.id for each in batch.messages])
                return 0 if batch.more else IDLE_SECONDS
        return IDLE_SECONDS if batch.seconds is None else max(0.0, min(batch.seconds, IDLE_SECONDS))
