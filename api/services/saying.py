"""Say: many callers, one statement. What waits in one turn of the event loop is stored together."""

from __future__ import annotations

import asyncio
import datetime as dt
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import structlog

from api.db import Database, Refused
from api.errors import RoomHeldUp
from api.services.hearing import BRIEFED_WITHIN
from api.store import messages as store

log = structlog.get_logger()

BATCH = 256
FLUSHERS = 2
LOOK_SECONDS = 0.05
"""How often rooms that were held up are looked at."""

GIVE_UP_SECONDS = 15.0
"""Less than callers wait for an answer."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A checked message on its way into the record; `columns` as `store.messages.COLUMNS` has them."""

    conv_id: int
    columns: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Stored:
    """What the record made of a draft.

    Attributes:
        id: the message's id.
        created_at: by the database's clock.
        expires_at: None: never.
        accepted: JSON: who the message was for at that moment, each with its state.
        listeners: agent ids of the boxes and people to nudge.
    """

    id: int
    created_at: dt.datetime
    expires_at: dt.datetime | None
    accepted: str
    listeners: list[int]


@dataclass(slots=True)
class _Waiting:
    draft: Draft
    answer: asyncio.Future[Stored | None]
    place: int
    until: float


class Sayings:
    """Stores drafts in batches, each batch one statement and one commit; a bad row fails alone.

    So does a room whose lock somebody holds, such as another record that stalls within a transaction: what is
    said there is set aside, in order, until the lock is let go.

    Args:
        db: the record's connections; at most FLUSHERS of them are used at a time, and one for what was set
            aside.
        stale_seconds: after how long a state that was reported counts as unknown.
        refusal: turns a constraint's or value's error into one that a caller understands; others stay.
    """

    def __init__(self, db: Database, *, stale_seconds: int, refusal: Callable[[Refused], Exception]) -> None:
        self._db = db
        self._stale_seconds = stale_seconds
        self._refusal = refusal
        self._queue: list[_Waiting] = []
        self._flushers: set[asyncio.Task[None]] = set()
        self._aside: dict[int, list[_Waiting]] = {}
        self._mender: asyncio.Task[None] | None = None
        self._places = itertools.count()

    async def store(self, draft: Draft) -> Stored | None:
        """Store one draft; returns after the commit. None: not stored (no member, or client_id came before).

        Raises:
            RecordDown: PostgreSQL is away; with a client_id the caller may simply try again.
            RoomHeldUp: the room stayed locked; nothing was stored.
            ServiceError: the database refused this row.
        """
        loop = asyncio.get_running_loop()
        waiting = _Waiting(draft, loop.create_future(), next(self._places), loop.time() + GIVE_UP_SECONDS)
        if (aside := self._aside.get(draft.conv_id)) is not None:
            aside.append(waiting)
            return await waiting.answer
        self._queue.append(waiting)
        if len(self._queue) == 1:
            loop.call_soon(self._kick)
        return await waiting.answer

    def _kick(self) -> None:
        if self._queue and len(self._flushers) < FLUSHERS:
            task = asyncio.create_task(self._flush())
            self._flushers.add(task)
            task.add_done_callback(self._flushers.discard)

    async def _flush(self) -> None:
        while self._queue:
            batch, self._queue = self._queue[:BATCH], self._queue[BATCH:]
            if self._aside:
                self._set_aside(waiting for waiting in batch if waiting.draft.conv_id in self._aside)
                batch = [waiting for waiting in batch if waiting.draft.conv_id not in self._aside]
            if batch:
                await self._store(batch)

    async def _store(self, batch: list[_Waiting]) -> None:
        try:
            rows = await self._say([waiting.draft for waiting in batch])
        except Refused as error:
            if error.sqlstate == store.HELD:
                await self._part(batch)
                return
            if len(batch) == 1:
                _fail(batch, self._refusal(error))
                return
            for waiting in batch:
                await self._store([waiting])
        except BaseException as error:
            _fail(batch, error)
            if not isinstance(error, Exception):
                raise
        else:
            for place, waiting in enumerate(batch, start=1):
                if not waiting.answer.done():
                    waiting.answer.set_result(rows.get(place))

    async def _part(self, batch: list[_Waiting]) -> None:
        """Set aside what is for rooms that are held, and store the rest.

        When no room is held any more, or something else is, each room is better off by itself.
        """
        rooms = {waiting.draft.conv_id for waiting in batch}
        try:
            held = await store.held(self._db, rooms) or rooms
        except Exception as error:
            _fail(batch, error)
            return
        self._set_aside(waiting for waiting in batch if waiting.draft.conv_id in held)
        rest = [waiting for waiting in batch if waiting.draft.conv_id not in held]
        if rest:
            await self._store(rest)

    def _set_aside(self, batch: Iterable[_Waiting]) -> None:
        for waiting in batch:
            aside = self._aside.setdefault(waiting.draft.conv_id, [])
            aside.append(waiting)
            aside.sort(key=lambda one: one.place)
        if self._mender is None:
            log.warning("rooms_held_up", rooms=len(self._aside))
            self._mender = asyncio.create_task(self._mend())

    async def _mend(self) -> None:
        """Store what was set aside, a room at a time, as rooms are let go; ends when nothing is left."""
        try:
            while self._aside:
                await asyncio.sleep(LOOK_SECONDS)
                self._give_up(asyncio.get_running_loop().time())
                held = await store.held(self._db, self._aside)
                for room in [room for room in self._aside if room not in held]:
                    await self._take_up(room)
        except BaseException as error:
            _fail(itertools.chain.from_iterable(self._aside.values()), error)
            self._aside.clear()
            if not isinstance(error, Exception):
                raise
        finally:
            self._mender = None

    async def _take_up(self, room: int) -> None:
        aside = self._aside[room]
        batch = aside[:BATCH]
        del aside[:BATCH]
        if batch:
            await self._store(batch)
        if not aside:  # until here whoever speaks in the room stands in line behind the others
            del self._aside[room]

    def _give_up(self, now: float) -> None:
        for aside in self._aside.values():
            _fail((waiting for waiting in aside if waiting.until <= now), RoomHeldUp())
            aside[:] = [waiting for waiting in aside if not waiting.answer.done()]

    async def _say(self, drafts: Sequence[Draft]) -> dict[int, Stored]:
        rooms = sorted({draft.conv_id for draft in drafts})
        columns = list(zip(*(draft.columns for draft in drafts), strict=True))
        rows = await store.say(
            self._db, columns, rooms=rooms, stale_seconds=self._stale_seconds, briefed=BRIEFED_WITHIN
        )
        return {
            row["place"]: Stored(
                row["id"], row["created_at"], row["expires_at"], row["accepted"], row["listeners"]
            )
            for row in rows
        }


def _fail(batch: Iterable[_Waiting], error: BaseException) -> None:
    for waiting in batch:
        if not waiting.answer.done():
            waiting.answer.set_exception(error)
