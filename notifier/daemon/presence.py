"""Tells the record how this box's sessions are: at once when something changes, and now and then anyway."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import structlog

from notifier.inbox import Report
from notifier.record import Record, RecordError, Refused

log = structlog.get_logger()

GATHER_SECONDS = 0.05
HEARTBEAT_SECONDS = 30.0
RETRY_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0)


class Presence:
    """Collects reports and sends them, several at a time; a record that is down gets the newest later."""

    def __init__(
        self,
        record: Record,
        everyone: Callable[[], Iterable[Report]],
        is_doubled: Callable[[str], bool],
    ) -> None:
        """`everyone` lists the sessions that live, for the heartbeat."""
        self._record = record
        self._everyone = everyone
        self._is_doubled = is_doubled
        self._waiting: dict[str, Report] = {}
        self._news = asyncio.Event()

    def add(self, report: Report) -> None:
        """To be sent soon; a newer state replaces an older one, and so does the news of a wake."""
        before = self._waiting.get(report.agent)
        self._waiting[report.agent] = report if before is None else _joined(before, report)
        self._news.set()

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            try:
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    await self._news.wait()
                await asyncio.sleep(GATHER_SECONDS)
            except TimeoutError:
                for report in self._everyone():
                    self._waiting.setdefault(report.agent, report)
            await self._send_all()

    async def say_goodbye(self) -> None:
        """Once more before the end; nobody will know these sessions' states from now on."""
        for report in self._everyone():
            self.add(Report(report.agent, "offline" if report.state == "offline" else "unknown"))
        await self._send(list(self._waiting.values()))

    async def _send_all(self) -> None:
        self._news.clear()
        for pause in (*RETRY_SECONDS, RETRY_SECONDS[-1]):
            reports, self._waiting = list(self._waiting.values()), {}
            if not reports or await self._send(reports):
                return
            for report in reports:
                newer = self._waiting.get(report.agent)
                self._waiting[report.agent] = report if newer is None else _joined(report, newer)
            await asyncio.sleep(pause)
        self._news.set()

    async def _send(self, reports: list[Report]) -> bool:
        """Whether the record has heard; what it refuses is sent one by one, and then dropped."""
        try:
            await self._record.presence([self._row(report) for report in reports])
        except Refused as refused:
            if refused.status >= 500 or refused.status == 401:
                return False
            if len(reports) == 1:
                log.warning("presence_refused", agent=reports[0].agent, code=refused.code)
                return True
            return all([await self._send([report]) for report in reports])
        except RecordError:
            return False
        return True

    def _row(self, report: Report) -> dict[str, Any]:
        row: dict[str, Any] = {"agent": report.agent, "state": report.state}
        if self._is_doubled(report.agent):
            row["doubled"] = True
        if report.wake is not None:
            row["wake"] = {
                "rung": report.wake.rung,
                "outcome": report.wake.outcome,
                "reason": report.wake.reason,
            }
        return row


def _joined(older: Report, newer: Report) -> Report:
    """Both in one: the newer state, and the newest news of a wake."""
    return Report(newer.agent, newer.state, newer.wake or older.wake)
