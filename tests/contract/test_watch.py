"""The notifier's watch over sleep: a jump of the wall clock is a reason to look at once."""

from __future__ import annotations

import asyncio
import os
from itertools import chain, count, repeat
from pathlib import Path
from typing import Any

import pytest

from notifier.daemon.core import Core
from notifier.daemon.registry import Entry, Registry
from notifier.daemon.watch import Watch
from notifier.inbox import Inbox
from notifier.programs.processes import look
from notifier.record import Record
from notifier.sessions import Process, Session
from notifier.wakers.keystrokes import Pty
from tests.http.running import until


class Counted(Record):
    """A record where nothing is ever unread, and each look is counted."""

    looks = 0

    async def unread(self) -> dict[str, Any]:
        self.looks += 1
        return {}

    async def whoami(self, handle: str | None = None) -> dict[str, Any]:
        return {"box": "desk"}


@pytest.mark.parametrize(("jump", "looked"), [(600.0, True), (2.0, False), (-600.0, False)])
async def test_after_sleep_it_looks_at_once(tmp_path: Path, jump: float, looked: bool) -> None:
    record, registry = Counted("http://127.0.0.1:9", "token"), Registry(str(tmp_path / "sessions.json"))
    async with asyncio.TaskGroup() as group:
        core = Core(
            inbox=Inbox(),
            record=record,
            registry=registry,
            wakers=(),
            person=Pty(),
            bell=False,
            report=lambda report: None,
            spawn=group.create_task,
        )
        ours = look(os.getpid())
        assert ours is not None
        session = Session("desk-agent#1", "plain", process=Process(ours.pid, ours.started))
        registry.entries[session.agent] = Entry(session)
        core.known(registry.entries[session.agent], told="idle")
        await until(lambda: record.looks == 1, "it looked at the session that is new")
        times, rounds = chain([0.0, jump], repeat(jump)), count()
        told = 0

        def wall() -> float:
            nonlocal told
            told = next(rounds)
            return next(times)

        watching = group.create_task(Watch(core, registry, wall=wall).run())
        await until(lambda: told > 2, "it went on after the jump")
        watching.cancel()
    assert record.looks == (2 if looked else 1)
