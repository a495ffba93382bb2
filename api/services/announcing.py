"""After the commit: wake the long polls, here and on other replicas, and nudge the boxes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterator

from api.db import Database, Notices
from api.errors import RecordDown
from api.store import announcing as store
from broker_bridge.nerve import Nerve
from broker_bridge.nudge import Nudge
from broker_bridge.racing import unless_lost

LAST_SECONDS = 1.0


class Announcements:
    """Tells whoever waits that a room has moved. Nothing here delays or fails a say."""

    def __init__(self, db: Database, nerve: Nerve) -> None:
        self._db = db
        self._nerve = nerve
        self._waiters: dict[int, set[asyncio.Event]] = {}
        self._names: dict[int, str] = {}
        self._moved: set[int] = set()
        self._relay_wanted = asyncio.Event()
        self._learning: set[asyncio.Task[None]] = set()
        self._told: list[Callable[[int], None]] = []

    def on_said(self, tell: Callable[[int], None]) -> None:
        """Have `tell` called with the room's conv_id after each commit in it, on the replica that made it."""
        self._told.append(tell)

    def said(
        self,
        *,
        realm_id: int,
        realm: str,
        sender: str,
        room: str,
        conv_id: int,
        listeners: Collection[int],
    ) -> None:
        """A message of `sender` was committed; `listeners` are agent ids of boxes and people who hear it."""
        self._wake(conv_id)
        self._moved.add(conv_id)
        self._relay_wanted.set()
        for tell in self._told:
            tell(conv_id)
        nudge = Nudge.now(conv=room, sender=sender)
        known = [self._names[listener] for listener in listeners if listener in self._names]
        if len(known) == len(listeners):
            self._nerve.nudge(nudge, realm=realm, names=known)
        else:
            task = asyncio.create_task(self._learn_and_nudge(nudge, realm_id, realm, listeners))
            self._learning.add(task)
            task.add_done_callback(self._learning.discard)

    async def _learn_and_nudge(
        self, nudge: Nudge, realm_id: int, realm: str, listeners: Collection[int]
    ) -> None:
        with contextlib.suppress(RecordDown):
            self._names.update(await store.names(self._db, realm_id, list(listeners)))
            names = [self._names[listener] for listener in listeners if listener in self._names]
            self._nerve.nudge(nudge, realm=realm, names=names)

    @contextlib.contextmanager
    def watch(self, rooms: Collection[int]) -> Iterator[asyncio.Event]:
        """An event that is set each time one of the rooms moves, for as long as the block lasts."""
        event = asyncio.Event()
        for room in rooms:
            self._waiters.setdefault(room, set()).add(event)
        try:
            yield event
        finally:
            for room in rooms:
                self._forget(room, event)

    async def run(self) -> None:
        """Carry announcements between replicas until cancelled; nudges on their way then have a second."""
        try:
            while True:
                with contextlib.suppress(RecordDown):
                    async with self._db.joined(store.CHANNEL, self._heard) as notices:
                        await unless_lost(self._relay(notices), notices.lost)
                await asyncio.sleep(0.5)
        finally:
            if self._learning:
                await asyncio.wait(self._learning, timeout=LAST_SECONDS)

    async def _relay(self, notices: Notices) -> None:
        while True:
            await self._relay_wanted.wait()
            self._relay_wanted.clear()
            moved, self._moved = self._moved, set()
            for text in store.told(moved):
                await notices.say(text)

    def _heard(self, payload: str) -> None:
        for room in store.heard(payload):
            self._wake(room)

    def _wake(self, room: int) -> None:
        for event in self._waiters.get(room, ()):
            event.set()

    def _forget(self, room: int, event: asyncio.Event) -> None:
        waiting = self._waiters[room]
        waiting.discard(event)
        if not waiting:
            del self._waiters[room]
