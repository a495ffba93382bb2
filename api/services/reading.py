"""Poll, acknowledge, count: each message is handed to each reader once, or again with a mark."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import secrets
import time
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from api.db import Database, Reader
from api.errors import BadField, NoSuchThing
from api.models import Caller
from api.services import fields
from api.services.announcing import Announcements
from api.services.envelope import Message, from_row
from api.store import reading as store

RECONSIDER_SECONDS = 1.0
"""A waiting poll looks again at least this often: a NOTIFY can be lost, a room can be joined meanwhile."""


class PollIn(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How to poll; contract section 5. Sizes are bytes, times seconds."""

    limit: int = 100
    max_bytes: int = 256 * 1024
    wait_seconds: float = 0
    ack: Literal["auto", "lease"] = "auto"
    seen: str | None = None
    lease_seconds: int = 600
    rooms: list[str] | None = None
    poll_key: str | None = None


class PolledRoom(msgspec.Struct):
    """What was unread in one room, oldest first; `unread_left` more wait there."""

    room: str
    messages: list[Message]
    unread_left: int


class Polled(msgspec.Struct):
    """A batch. With a lease it is committed only by naming it."""

    agent: str
    rooms: list[PolledRoom]
    count: int
    more: bool
    lease: str | None
    newest_id: int | None


class AckIn(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A lease to commit, or cursors to move forward by hand."""

    lease: str | None = None
    rooms: dict[str, Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]] | None = None


class UnreadAgent(msgspec.Struct):
    """What waits for one agent."""

    unread: int
    addressed: int
    urgent: int
    rooms: dict[str, int]


class Unread(msgspec.Struct):
    """What waits, an entry an agent; agents with nothing unread are left out."""

    agents: dict[str, UnreadAgent]


class Reading:
    """The use cases of a reader."""

    def __init__(self, db: Database, announcements: Announcements) -> None:
        self._db = db
        self._announcements = announcements

    async def poll(self, caller: Caller, how: PollIn) -> Polled:
        """The next batch, waiting for one up to `wait_seconds`; who is cancelled meanwhile consumes nothing.

        Raises:
            BadField, RecordDown
        """
        _check(how)
        if how.seen is not None:
            await self.ack(caller, AckIn(lease=how.seen))
        end = time.monotonic() + how.wait_seconds
        peek = await store.peek(self._db, caller.realm_id, caller.agent_id)
        while True:
            if peek["open_batch"] or peek["moved"] or how.poll_key is not None:
                polled = await self._hand_over(caller, how, peek["newest_id"])
                if polled.count:
                    return polled
            if time.monotonic() >= end:
                return Polled(caller.handle, [], 0, False, None, peek["newest_id"])
            peek = await self._wait(caller, peek, end)

    async def ack(self, caller: Caller, what: AckIn) -> None:
        """Commit a lease, or move cursors forward; never back.

        Raises:
            NoSuchThing: this reader was never given the lease.
            BadField: neither or both were given, or a room that the caller is not in.
        """
        if (what.lease is None) == (what.rooms is None):
            raise BadField("lease", "give either lease or rooms")
        fields.line("lease", what.lease)
        for room in what.rooms or ():
            fields.unicode_text("rooms", room)
        async with self._db.reader(caller.realm_id, caller.agent_id) as reader:
            if what.lease is not None and not await store.commit(reader, what.lease):
                raise NoSuchThing(
                    "There is no such lease of yours; poll again and name the lease of its answer."
                )
            if what.rooms is not None:
                strangers = what.rooms.keys() - await store.advance(reader, what.rooms)
                if strangers:
                    raise BadField(
                        "rooms", f"you are not in {', '.join(sorted(strangers))}; nothing was moved"
                    )

    async def unread(self, caller: Caller) -> Unread:
        """What waits: for a session or person its own; for a bare box, every session's and its own."""
        if caller.kind == "box":
            rows = await store.unread_of_box(self._db, caller.realm_id, caller.agent_id)
        else:
            rows = await store.unread_of_agent(self._db, caller.realm_id, caller.agent_id)
        agents: dict[str, UnreadAgent] = {}
        for row in rows:
            agent = agents.setdefault(row["handle"], UnreadAgent(0, 0, 0, {}))
            agent.unread += row["unread"]
            agent.addressed += row["addressed"]
            agent.urgent += row["urgent"]
            agent.rooms[row["room"]] = row["unread"]
        return Unread(agents)

    async def _wait(self, caller: Caller, peek: Any, end: float) -> Any:
        with self._announcements.watch(peek["rooms"]) as moved:
            seen = await store.peek(self._db, caller.realm_id, caller.agent_id)
            while not (seen["open_batch"] or seen["moved"]) and time.monotonic() < end:
                moved.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(RECONSIDER_SECONDS, max(0, end - time.monotonic()))):
                        await moved.wait()
                seen = await store.peek(self._db, caller.realm_id, caller.agent_id)
                if set(seen["rooms"]) != set(peek["rooms"]):
                    break
            return seen

    async def _hand_over(self, caller: Caller, how: PollIn, newest_id: int | None) -> Polled:
        async with self._db.reader(caller.realm_id, caller.agent_id) as reader:
            for batch in await _earlier(reader, how):
                if again := await _again(caller, reader, how, batch, newest_id):
                    return again
            lease = secrets.token_urlsafe(12) if how.ack == "lease" else None
            rows = await store.take(
                reader,
                limit=how.limit,
                max_bytes=how.max_bytes,
                lease=lease,
                lease_seconds=how.lease_seconds,
                poll_key=how.poll_key,
                rooms=how.rooms,
            )
            left = await _left(reader) if rows and rows[0]["more"] else {}
            cut = how.max_bytes
            messages = [
                from_row(row, replayed=row["replayed"], redelivered=row["redelivered"], cut=cut)
                for row in rows
            ]
            return _polled(caller, messages, lease=lease if rows else None, left=left, newest_id=newest_id)


async def _earlier(reader: Reader, how: PollIn) -> list[Any]:
    """The batches to hand over again, the first of which anything is left."""
    keyed = await store.polled_before(reader, how.poll_key) if how.poll_key is not None else None
    return [batch for batch in (keyed, await store.open_batch(reader)) if batch is not None]


async def _again(
    caller: Caller, reader: Reader, how: PollIn, batch: Any, newest_id: int | None
) -> Polled | None:
    """The earlier batch, marked; None when nothing of it may be handed over any more: then it is dropped."""
    await store.drop_left_rooms(reader, batch["batch_id"])
    rows = await store.again(reader, batch["batch_id"])
    if not rows:
        await store.drop(reader, batch["batch_id"])
        return None
    lease: str | None = batch["lease"]
    if lease is not None and how.ack == "lease":
        await store.renew(reader, batch_id=batch["batch_id"], lease_seconds=how.lease_seconds)
    elif lease is not None:
        await store.commit(reader, lease)
        lease = None
    if how.poll_key is not None:  # this answer can be lost, too
        await store.key(reader, batch_id=batch["batch_id"], poll_key=how.poll_key)
    messages = [from_row(row, replayed=row["replayed"], redelivered=True, cut=how.max_bytes) for row in rows]
    return _polled(caller, messages, lease=lease, left=await _left(reader), newest_id=newest_id)


async def _left(reader: Reader) -> dict[str, int]:
    """What waits behind the batch that was just handed over, by room."""
    return {row["room"]: row["unread"] for row in await store.unread_behind(reader)}


def _polled(
    caller: Caller,
    messages: Sequence[Message],
    *,
    lease: str | None,
    left: dict[str, int],
    newest_id: int | None,
) -> Polled:
    rooms = [
        PolledRoom(room, list(group), left.get(room, 0))
        for room, group in itertools.groupby(messages, key=lambda message: message.room)
    ]
    return Polled(caller.handle, rooms, len(messages), bool(left), lease, newest_id)


def _check(how: PollIn) -> None:
    for field, least, most in (
        ("limit", 1, 1000),
        ("max_bytes", 1, 4 * 1024 * 1024),
        ("wait_seconds", 0, 50),
        ("lease_seconds", 1, 3600),
    ):
        if not least <= getattr(how, field) <= most:
            raise BadField(field, f"{least} to {most}")
    fields.line("poll_key", how.poll_key)
    fields.line("seen", how.seen)
    for room in how.rooms or ():
        fields.unicode_text("rooms", room)
