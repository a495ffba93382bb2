"""The notifier's watch: a jump of the wall clock is a reason to look at once; and what it starts."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Callable, Coroutine
from itertools import chain, count, repeat
from pathlib import Path
from typing import Any

import pytest

from notifier.daemon.core import Core
from notifier.daemon.registry import Entry, Registry
from notifier.daemon.watch import Watch
from notifier.inbox import CheckUnread, Inbox, TellPerson, Wake
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


async def test_work_that_is_cancelled_before_it_began_leaves_nothing_unawaited(tmp_path: Path) -> None:
    begun: list[Coroutine[Any, Any, None]] = []
    core = core_of(Counted("http://127.0.0.1:9", "token"), Registry(str(tmp_path / "s.json")), begun.append)
    core.do([CheckUnread(), TellPerson("desk-agent#1", "nothing helps"), Wake("desk-agent#1", "tmux")])
    assert len(begun) == 3
    for work in begun:
        work.close()
    del work
    begun.clear()
    gc.collect()  # what was never awaited is a warning now, and that an error


def core_of(record: Record, registry: Registry, spawn: Callable[..., object]) -> Core:
    return Core(
        inbox=Inbox(),
        record=record,
        registry=registry,
        wakers=(),
        person=Pty(),
        bell=False,
        report=lambda report: None,
        spawn=spawn,
    )


@pytest.mark.parametrize(("jump", "looked"), [(600.0, True), (2.0, False), (-600.0, False)])
async def test_after_sleep_it_looks_at_once(tmp_path: Path, jump: float, looked: bool) -> None:
    record, registry = Counted("http://127.0.0.1:9", "token"), Registry(str(tmp_path / "sessions.json"))
    async with asyncio.TaskGroup() as group:
        core = core_of(record, registry, group.create_task)
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
