"""What a notifier could not tell the record goes with what it tells it next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from notifier.daemon.presence import Presence
from notifier.inbox import Report, WakeReport
from notifier.record import Record, RecordUnreachable


class Away(Record):
    """A record that is away at the first call; `meanwhile` happens then."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:9", "unused")
        self.heard: list[dict[str, Any]] = []
        self.meanwhile: Callable[[], None] = lambda: None
        self.back, self.told = asyncio.Event(), asyncio.Event()

    async def presence(self, sessions: Iterable[dict[str, Any]]) -> None:
        if not self.back.is_set():
            self.meanwhile()
            self.back.set()
            raise RecordUnreachable("away")
        self.heard += sessions
        self.told.set()


async def test_a_hold_that_was_not_heard_goes_with_the_next_state() -> None:
    record = Away()
    presence = Presence(record, lambda: (), is_doubled=lambda _: False)
    record.meanwhile = lambda: presence.add(Report("desk-agent#1", "busy"))
    presence.add(Report("desk-agent#1", "idle", WakeReport("pty", "held", "draft")))
    running = asyncio.create_task(presence.run())
    try:
        async with asyncio.timeout(60):
            await record.told.wait()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    (told,) = record.heard
    assert (told["state"], told["wake"]["reason"]) == ("busy", "draft")
