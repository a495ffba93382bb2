"""Say: many callers, one statement. What waits in one turn of the event loop is stored together."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from api.db import Database, Refused
from api.store import messages as store

BATCH = 256
FLUSHERS = 2


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


class Sayings:
    """Stores drafts in batches, each batch one statement and one commit; a bad row fails alone.

    Args:
        db: the record's connections; at most FLUSHERS of them are used at a time.
        stale_seconds: after how long a state that was reported counts as unknown.
        refusal: turns a constraint's or value's error into one that a caller understands; others stay.
    """

    def __init__(self, db: Database, *, stale_seconds: int, refusal: Callable[[Refused], Exception]) -> None:
        self._db = db
        self._stale_seconds = stale_seconds
        self._refusal = refusal
        self._queue: list[_Waiting] = []
        self._flushers: set[asyncio.Task[None]] = set()

    async def store(self, draft: Draft) -> Stored | None:
        """Store one draft; returns after the commit. None: not stored (no member, or client_id came before).

        Raises:
            RecordDown: PostgreSQL is away; with a client_id the caller may simply try again.
            ServiceError: the database refused this row.
        """
        loop = asyncio.get_running_loop()
        waiting = _Waiting(draft, loop.create_future())
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
            await self._store(batch)

    async def _store(self, batch: list[_Waiting]) -> None:
        try:
            rows = await self._say([waiting.draft for waiting in batch])
        except Refused as error:
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

    async def _say(self, drafts: Sequence[Draft]) -> dict[int, Stored]:
        rooms = sorted({draft.conv_id for draft in drafts})
        columns = list(zip(*(draft.columns for draft in drafts), strict=True))
        rows = await store.say(self._db, columns, rooms=rooms, stale_seconds=self._stale_seconds)
        return {
            row["place"]: Stored(
                row["id"], row["created_at"], row["expires_at"], row["accepted"], row["listeners"]
            )
            for row in rows
        }


def _fail(batch: list[_Waiting], error: BaseException) -> None:
    for waiting in batch:
        if not waiting.answer.done():
            waiting.answer.set_exception(error)
