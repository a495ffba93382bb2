"""Looks after the sessions' processes: gone, suspended, and what the programs themselves show."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import structlog

from notifier.daemon.core import Core, sign_of
from notifier.daemon.registry import Entry, Registry
from notifier.inbox import Action
from notifier.programs.processes import look

log = structlog.get_logger()

CALM_SECONDS = 1.0
ALERT_SECONDS = 0.1
ALERT_FOR = 3.0
ASLEEP_SECONDS = 5.0
"""A gap between two looks that only a suspended machine or process explains."""


class Watch:
    """Looks once a second, and ten times as often for a moment after a hook has spoken."""

    def __init__(self, core: Core, registry: Registry, *, wall: Callable[[], float] = time.time) -> None:
        """`wall`: a clock in seconds that runs on while the machine sleeps."""
        self._core = core
        self._wall = wall
        self._registry = registry
        self._alert_until = 0.0
        self._alerted = asyncio.Event()

    def alert(self) -> None:
        """Something is changing: a program's own sign may follow its hook by a moment."""
        self._alert_until = self._core.now() + ALERT_FOR
        self._alerted.set()

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            before = self._wall()
            self.look()
            await self._pause()
            asleep = self._wall() - before
            if asleep > ASLEEP_SECONDS:
                log.info("woke_after_sleep", seconds=round(asleep))
                self._core.do(self._core.inbox.reconnected(now=self._core.now()))

    def look(self) -> None:
        """Look at every session once."""
        for agent, entry in list(self._registry.entries.items()):
            self._core.do(self._look_at(agent, entry))

    async def _pause(self) -> None:
        alert = self._core.now() < self._alert_until
        self._alerted.clear()
        try:
            async with asyncio.timeout(ALERT_SECONDS if alert else CALM_SECONDS):
                await (asyncio.Event() if alert else self._alerted).wait()
        except TimeoutError:
            pass

    def _look_at(self, agent: str, entry: Entry) -> list[Action]:
        inbox, now = self._core.inbox, self._core.now()
        process = entry.session.process
        if process is None:
            return []
        seen = look(process.pid)
        if seen is None or seen.started != process.started:
            del self._registry.entries[agent]
            self._registry.save()
            return inbox.lives(agent, "gone", now=now)
        actions = inbox.lives(agent, "stopped" if seen.stopped else "running", now=now)
        if entry.registry is not None:
            actions += inbox.signed(agent, sign_of(entry), now=now)
        return actions
