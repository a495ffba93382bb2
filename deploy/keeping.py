"""Keeps this machine's child processes alive: the embedded PostgreSQL and the notifier."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial

import structlog

from deploy.postgres import Postgres
from deploy.programs import PostgresFailed

LOOK_SECONDS = 0.05
PAUSE_MIN_SECONDS = 0.5
PAUSE_MAX_SECONDS = 30.0
STOP_SECONDS = 5.0

log = structlog.get_logger()


def pauses() -> Iterator[float]:
    """How long to wait before each new try: half a second, doubling up to half a minute."""
    pause = PAUSE_MIN_SECONDS
    while True:
        yield pause
        pause = min(2 * pause, PAUSE_MAX_SECONDS)


async def keep_postgres(postgres: Postgres) -> None:
    """Start the server again whenever it ends, for ever; the first time at once."""
    while True:
        await _until(lambda: not postgres.running())
        log.warning("postgres_ended", pid=postgres.pid)
        for pause in pauses():
            try:
                await _bring_up(postgres)
                break
            except (PostgresFailed, OSError) as error:
                log.error("postgres_not_started", error=str(error), next_try_seconds=pause)
                await asyncio.sleep(pause)
        log.info("postgres_restarted", pid=postgres.pid)


async def _until(condition: Callable[[], bool]) -> None:
    """Look again and again: a child process rings no bell that works on every system."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(LOOK_SECONDS)


def _ended(child: subprocess.Popen[bytes]) -> bool:
    return child.poll() is not None


async def _bring_up(postgres: Postgres) -> None:
    postgres.spawn()
    await _until(postgres.came_up)


class KeptProcess:
    """A child process that is started again when it ends by a fault.

    Args:
        name: for the log.
        start: starts the child; called in the thread of the event loop.
    """

    def __init__(self, name: str, start: Callable[[], subprocess.Popen[bytes]]) -> None:
        self._name = name
        self._start = start
        self._child: subprocess.Popen[bytes] | None = None

    async def keep(self) -> None:
        """Run until cancelled."""
        tries = pauses()
        while True:
            begun = time.monotonic()
            child = self._child = self._start()
            await _until(partial(_ended, child))
            if time.monotonic() - begun > PAUSE_MAX_SECONDS:
                tries = pauses()
            pause = next(tries)
            log.warning("child_ended", child=self._name, status=child.returncode, next_try_seconds=pause)
            await asyncio.sleep(pause)

    def hurry(self) -> None:
        """End the child at once."""
        if self._child is not None and self._child.poll() is None:
            self._child.kill()

    async def stop(self) -> None:
        """End the child, gently first; to be called after `keep` was cancelled."""
        child = self._child
        if child is None or child.poll() is not None:
            return
        child.send_signal(signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await _until(partial(_ended, child))
        if child.poll() is None:
            child.kill()
            child.wait()
