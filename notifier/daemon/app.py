"""The notifier's process: builds everything, hands it down, runs it until it is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from notifier.control.server import serve
from notifier.daemon import missed
from notifier.daemon.core import Core
from notifier.daemon.desk import Desk
from notifier.daemon.ear import Ear
from notifier.daemon.handover import Handover
from notifier.daemon.lock import only_one
from notifier.daemon.naming import Naming
from notifier.daemon.presence import Presence
from notifier.daemon.registry import Registry
from notifier.daemon.standing import session_rows
from notifier.daemon.watch import Watch
from notifier.inbox import Inbox, Policy, Report
from notifier.paths import control_socket
from notifier.record import Record
from notifier.wakers.base import Waker
from notifier.wakers.flags import Flags
from notifier.wakers.person import Person

log = structlog.get_logger()

GOODBYE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Parts:
    """What a notifier is made of.

    Attributes:
        url: the record's base URL.
        token: the box's bearer token.
        folder: lock, control socket and registry; this user's alone.
        wakers: the ladder, best rung first.
        flags: those that its native rung shows.
        person: tells whoever sits there, when nothing else has helped.
        bell: tell them beside every wake, too.
        policy: the numbers behind its decisions.
        version: the release, as `readyroom status` shows it.
    """

    url: str
    token: str = field(repr=False)
    folder: str
    wakers: Sequence[Waker]
    flags: Flags = field(default_factory=Flags)
    person: Waker = field(default_factory=Person)
    bell: bool = False
    policy: Policy = field(default_factory=Policy)
    version: str | None = None


class Daemon:
    """One box's notifier. Starts offline; whatever it cannot reach, it comes back to."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def run(self) -> None:
        """Run until cancelled.

        Raises:
            AlreadyRunning: another notifier holds the folder.
            UnsafeFolder: others can enter the folder.
        """
        parts = self._parts
        with only_one(parts.folder):
            async with (
                Record(parts.url, parts.token, patience=0) as record,
                asyncio.TaskGroup() as group,
                self._working(record, group),
            ):
                log.info("notifier_started", pid=os.getpid(), record=parts.url, folder=parts.folder)
                try:
                    await asyncio.Event().wait()
                finally:
                    log.info("notifier_stopping")

    @contextlib.asynccontextmanager
    async def _working(self, record: Record, group: asyncio.TaskGroup) -> AsyncIterator[None]:
        parts = self._parts
        inbox, registry = Inbox(parts.policy), Registry(os.path.join(parts.folder, "sessions.json"))
        presence = Presence(
            record, lambda: _reports(inbox), is_doubled=lambda agent: registry.rival(agent) is not None
        )
        core = Core(
            inbox=inbox,
            record=record,
            registry=registry,
            wakers=parts.wakers,
            person=parts.person,
            bell=parts.bell,
            report=presence.add,
            spawn=group.create_task,
        )
        watch, naming = Watch(core, registry), Naming(record)
        ear = Ear(record, parts.token, on_nudge=core.nudged, on_heard=core.reconnected)

        def status() -> dict[str, Any]:
            return {
                "pid": os.getpid(),
                "version": parts.version,
                "rungs": list(dict.fromkeys(waker.rung for waker in parts.wakers)),
                "record": {"url": parts.url, "trouble": core.record_trouble, "box": core.box},
                "nerve": {"url": ear.url, "trouble": ear.trouble},
                "sessions": session_rows(inbox, registry, now=core.now()),
            }

        desk = Desk(
            core=core,
            registry=registry,
            watch=watch,
            handover=Handover(record),
            naming=naming,
            flags=parts.flags,
            folder=parts.folder,
            status=status,
        )
        for agent in registry.load():
            presence.add(Report(agent, "offline"))
        for entry in registry.entries.values():
            core.known(entry, told=entry.told)
        async with serve(control_socket(parts.folder), desk.answer):
            for told in missed.take(missed.open_folder(parts.folder)):
                core.spawn(desk.hook, told)
            for part in (core.tick(), watch.run(), presence.run(), ear.run(), naming.run(desk.hook)):
                group.create_task(part)
            try:
                yield
            finally:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(GOODBYE_SECONDS):
                        await presence.say_goodbye()


def _reports(inbox: Inbox) -> list[Report]:
    return [Report(agent, seat.state) for agent, seat in inbox.seats.items() if seat.life != "gone"]
