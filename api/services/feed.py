"""The feed: at least once, never skipping, and no position but the client's own."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import math
import time
from typing import Annotated

import msgspec

from api.db import Database
from api.errors import BadField
from api.models import Caller
from api.services.announcing import Announcements
from api.services.envelope import Message, from_row, more
from api.services.reading import RECONSIDER_SECONDS
from api.store import feed as store

_Id = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Positions = dict[_Id, _Id]
"""conv_id -> the last id that was given: one a room, since ids follow commit order only within one."""


NEWEST = "newest"
"""The cursor of who wants only what is still to come; no sealed cursor begins like it."""


class FeedIn(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Where to go on (`newest`: behind all that is there), and how long to wait for something new."""

    cursor: str | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100
    wait_seconds: Annotated[float, msgspec.Meta(ge=0, le=50)] = 0


class Feed(msgspec.Struct):
    """Messages, and the cursor behind them; it is given also when there are none."""

    messages: list[Message]
    next_cursor: str


class Feeds:
    """The use case of a client that keeps its own position."""

    def __init__(self, db: Database, announcements: Announcements, *, page_max: int) -> None:
        self._db = db
        self._announcements = announcements
        self._page_max = page_max

    async def read(self, caller: Caller, how: FeedIn) -> Feed:
        """The next messages that the caller may hear; waits up to `wait_seconds` for the first.

        Raises:
            BadField: the cursor is none of ours, or the time to wait is no number.
        """
        if how.cursor == NEWEST:
            positions = await store.ends(self._db, realm_id=caller.realm_id, agent_id=caller.agent_id)
        else:
            positions = _opened(how.cursor)
        if math.isnan(how.wait_seconds):
            raise BadField("wait_seconds", "0 to 50")
        end = time.monotonic() + how.wait_seconds
        while True:
            ends = await store.ends(self._db, realm_id=caller.realm_id, agent_id=caller.agent_id)
            with self._announcements.watch(ends) as moved:
                messages, positions = await self._next(caller, positions, min(how.limit, self._page_max))
                left = end - time.monotonic()
                if messages or left <= 0:
                    return Feed(messages, _sealed(positions))
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(RECONSIDER_SECONDS, left)):
                        await moved.wait()

    async def _next(
        self, caller: Caller, positions: Positions, limit: int
    ) -> tuple[list[Message], Positions]:
        ends = await store.ends(self._db, realm_id=caller.realm_id, agent_id=caller.agent_id)
        parts = [
            (conv_id, positions.get(conv_id, 0), newest_id)
            for conv_id, newest_id in ends.items()
            if newest_id > positions.get(conv_id, 0)
        ]
        if not parts:
            return [], positions
        rows = await store.between(
            self._db, realm_id=caller.realm_id, agent_id=caller.agent_id, parts=parts, limit=limit
        )
        # Where a page leaves something behind, that may be in any room.
        reached = {row["conv_id"]: row["id"] for row in rows} if more(rows) else ends
        return [from_row(row) for row in rows], positions | reached


def _sealed(positions: Positions) -> str:
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(positions)).decode().rstrip("=")


def _opened(cursor: str | None) -> Positions:
    if cursor is None:
        return {}
    try:
        packed = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        return msgspec.msgpack.decode(packed, type=Positions)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise BadField("cursor", "use next_cursor as it was given, or leave it out to begin anew") from None
