"""Gives a handle to a session that was started without `readyroom run`: once for each process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from notifier.control.messages import Hook
from notifier.daemon.registry import boot_id, lives
from notifier.record import Record, RecordError, Refused
from notifier.sessions import Process

log = structlog.get_logger()

WAIT_SECONDS = 0.6
AGAIN_SECONDS = 5.0


class Naming:
    """Checks nameless sessions in, as soon as the record can be reached."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._waiting: dict[Process, Hook] = {}
        self._one_by_one = asyncio.Lock()
        self._names: dict[Process, str] = {}

    async def name(self, told: Hook) -> str | None:
        """The handle of the process that a hook speaks for; None where the record gives none now."""
        process = told.process
        if process is None or not lives(process):
            return None
        if process in self._waiting:
            self._waiting[process] = told
            return None
        async with self._one_by_one:
            if process not in self._names and not await self._check_in(process, told):
                self._waiting[process] = told
            return self._names.get(process)

    async def is_ours(self, handle: str) -> bool:
        """Whether a handle that a session was given is this box's; believed where nobody can be asked."""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                return bool((await self._record.whoami(handle))["agent"] == handle)
        except Refused:
            return False
        except (RecordError, TimeoutError):
            return True

    async def run(self, again: Callable[[Hook], Awaitable[object]]) -> None:
        """Keep trying for those that wait; `again` gets each one's newest hook once it has a name."""
        while True:
            await asyncio.sleep(AGAIN_SECONDS)
            for process in [process for process in self._waiting if not lives(process)]:
                del self._waiting[process]
            for process, told in list(self._waiting.items()):
                if not await self._check_in(process, told):
                    break
                await again(self._waiting.pop(process))

    async def _check_in(self, process: Process, told: Hook) -> bool:
        key = f"{told.program}:{boot_id()}:{process.pid}:{process.started}"
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                answer = await self._record.checkin(harness=told.program, cwd=told.cwd, key=key)
        except Refused as refused:
            if refused.code == "client_id_reused":  # this process had its name before it changed its folder
                self._names[process] = str(refused.facts["agent"])
                return True
            log.warning("session_not_checked_in", program=told.program, code=refused.code, why=refused.detail)
            return False
        except (RecordError, TimeoutError):
            return False
        self._names[process] = str(answer["agent"])
        log.info("session_checked_in", agent=answer["agent"], program=told.program)
        return True
