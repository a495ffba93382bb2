"""Poll, acknowledge, count: each message is handed to each reader once, or again with a mark."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import secrets
import time
from collections.abc import Collection, Iterable, Sequence
from typing import Annotated, Any, Literal

import msgspec

from api.db import Database, Reader
from api.errors import BadField, NoSuchThing, RecordDown
from api.models import Caller
from api.services import fields
from api.services.announcing import Announcements
from api.services.envelope import Message, from_row
from api.store import reading as store

RECONSIDER_SECONDS = 1.0
"""A waiting poll looks again at least this often: a NOTIFY can be lost, a room can be joined meanwhile."""


class PollIn(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How to poll; contract section 5. Sizes are bytes, times seconds; without `rooms` all are polled."""

    limit: int = 100
    max_bytes: int = 256 * 1024
    wait_seconds: float = 0
    ack: Literal["auto", "lease"] = "auto"
    seen: str | None = None
    lease_seconds: int = 600
    rooms: list[str] | None = None
    poll_key: str | None = None


class PolledRoom(msgspec.Struct):
    """What was unread in one room, oldest first.

    Behind it wait `unread_left` messages for this reader; `newest_id` is the room's newest, for whomever.
    """

    room: str
    messages: list[Message]
    unread_left: int
    newest_id: int


class Polled(msgspec.Struct):
    """A batch. With a lease it is committed only by naming it.

    Behind it wait `unread_left` messages in the rooms that were asked for; `newest_id` is the newest message
    there, for whomever.
    """

    agent: str
    rooms: list[PolledRoom]
    count: int
    more: bool
    unread_left: int
    lease: str | None
    newest_id: int | None


class AckIn(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A lease to commit, or cursors to move forward by hand."""

    lease: str | None = None
    rooms: dict[str, Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]] | None = None


class UnreadAgent(msgspec.Struct):
    """What waits for one agent.

    Attributes:
        rooms: room -> how much is unread in it.
        oldest_ids: room -> the oldest that is. Reading, or expiry, makes it grow; what is said does not.
        addressed_in: room -> how many of them are `addressed`. Here and below, rooms with none are left out.
        urgent_in: room -> how many of them are `urgent`.
        from_people_in: room -> how many of them people said, or bare boxes.
    """

    unread: int
    addressed: int
    urgent: int
    rooms: dict[str, int]
    oldest_ids: dict[str, int]
    addressed_in: dict[str, int]
    urgent_in: dict[str, int]
    from_people_in: dict[str, int]


class Unread(msgspec.Struct):
    """What waits, an entry an agent; agents with nothing unread are left out."""

    agents: dict[str, UnreadAgent]


class Reading:
    """The use cases of a reader."""

    def __init__(self, db: Database, announcements: Announcements, *, page_max: int) -> None:
        self._db = db
        self._announcements = announcements
        self._page_max = page_max

    async def poll(self, caller: Caller, how: PollIn) -> Polled:
        """The next batch, waiting for one up to `wait_seconds`; who hangs up or retires meanwhile gets none.

        Raises:
            BadField: a field will not do, or names a room that the caller is not in.
            NoSuchThing: `seen` is no lease of this reader's.
            RecordDown
        """
        _check(how)
        rooms = await self._asked_for(caller, how)
        if how.seen is not None:
            await self.ack(caller, AckIn(lease=how.seen))
        end = time.monotonic() + how.wait_seconds
        peek = await self._peek(caller, rooms)
        while True:
            if not peek["retired"] and (peek["open_batch"] or peek["moved"] or how.poll_key is not None):
                polled = await self._hand_over(caller, how, rooms, peek["newest_id"])
                if polled.count:
                    return polled
            if peek["retired"] or time.monotonic() >= end:
                return _polled(caller, how, [], lease=None, left={}, newest_id=peek["newest_id"])
            peek = await self._wait(caller, rooms, peek, end)

    async def know(self, caller: Caller, lease: str) -> None:
        """See that `acknowledge` will be possible later.

        Raises:
            BadField: it cannot be a lease.
            NoSuchThing: this reader was never given it.
        """
        fields.line("seen", lease)
        if not await store.knows_lease(self._db, caller.realm_id, caller.agent_id, lease):
            raise _no_such_lease()

    async def acknowledge(self, caller: Caller, lease: str) -> None:
        """Commit a lease that is known; what cannot be committed now comes once more, marked."""
        with contextlib.suppress(RecordDown, NoSuchThing):
            await self.ack(caller, AckIn(lease=lease))

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
                raise _no_such_lease()
            if what.rooms is not None:
                _check_joined(what.rooms, await store.advance(reader, what.rooms))

    async def unread(self, caller: Caller) -> Unread:
        """What waits: for a session or person its own; for a bare box, every session's and its own."""
        if caller.kind == "box":
            rows = await store.unread_of_box(self._db, caller.realm_id, caller.agent_id)
        else:
            rows = await store.unread_of_agent(self._db, caller.realm_id, caller.agent_id)
        agents: dict[str, UnreadAgent] = {}
        for row in rows:
            agent = agents.setdefault(row["handle"], UnreadAgent(0, 0, 0, {}, {}, {}, {}, {}))
            agent.unread += row["unread"]
            agent.addressed += row["addressed"]
            agent.urgent += row["urgent"]
            agent.rooms[row["room"]] = row["unread"]
            agent.oldest_ids[row["room"]] = row["oldest_id"]
            for kind, counts in (
                ("addressed", agent.addressed_in),
                ("urgent", agent.urgent_in),
                ("from_people", agent.from_people_in),
            ):
                if row[kind]:
                    counts[row["room"]] = row[kind]
        return Unread(agents)

    async def _asked_for(self, caller: Caller, how: PollIn) -> list[int] | None:
        """The conv_ids of the rooms to poll; None: all."""
        if how.rooms is None:
            return None
        joined = await store.joined(self._db, caller.realm_id, caller.agent_id, how.rooms)
        _check_joined(how.rooms, joined)
        return list(joined.values())

    async def _wait(self, caller: Caller, rooms: list[int] | None, peek: Any, end: float) -> Any:
        with self._announcements.watch(peek["rooms"]) as moved:
            seen = await self._peek(caller, rooms)
            while not any(seen[why] for why in ("open_batch", "moved", "retired")) and time.monotonic() < end:
                moved.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(RECONSIDER_SECONDS, max(0, end - time.monotonic()))):
                        await moved.wait()
                seen = await self._peek(caller, rooms)
                if set(seen["rooms"]) != set(peek["rooms"]):
                    break
            return seen

    async def _peek(self, caller: Caller, rooms: list[int] | None) -> Any:
        async with self._db.turn(caller.agent_id):
            return await store.peek(self._db, caller.realm_id, caller.agent_id, rooms)

    async def _hand_over(
        self, caller: Caller, how: PollIn, rooms: list[int] | None, newest_id: int | None
    ) -> Polled:
        async with self._db.reader(caller.realm_id, caller.agent_id) as reader:
            for batch in await _earlier(reader, how):
                if again := await _again(caller, reader, how, batch, newest_id):
                    return again
            lease = secrets.token_urlsafe(12) if how.ack == "lease" else None
            rows = await store.take(
                reader,
                limit=min(how.limit, self._page_max),
                max_bytes=how.max_bytes,
                lease=lease,
                lease_seconds=how.lease_seconds,
                poll_key=how.poll_key,
                rooms=rooms,
            )
            left = await _left(reader) if rows and rows[0]["more"] else {}
            return _polled(caller, how, rows, lease=lease if rows else None, left=left, newest_id=newest_id)


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
    return _polled(caller, how, rows, lease=lease, left=await _left(reader), newest_id=newest_id)


async def _left(reader: Reader) -> dict[str, int]:
    """What waits behind the batch that was just handed over, by room."""
    return {row["room"]: row["unread"] for row in await store.unread_behind(reader)}


def _polled(
    caller: Caller,
    how: PollIn,
    rows: Sequence[Any],
    *,
    lease: str | None,
    left: dict[str, int],
    newest_id: int | None,
) -> Polled:
    rooms = [
        _room(room, list(group), left.get(room, 0), how.max_bytes)
        for room, group in itertools.groupby(rows, key=lambda row: row["room"])
    ]
    behind = sum(count for room, count in left.items() if how.rooms is None or room in how.rooms)
    newest = [room.newest_id for room in rooms if how.rooms is None or room.room in how.rooms]
    newest_id = max([newest_id or 0, *newest]) or None
    return Polled(caller.handle, rooms, len(rows), behind > 0, behind, lease, newest_id)


def _room(room: str, rows: Sequence[Any], unread_left: int, cut: int) -> PolledRoom:
    messages = [
        from_row(
            row,
            replayed=row["replayed"],
            redelivered=row["redelivered"],
            read_before=row["read_before"],
            cut=cut,
        )
        for row in rows
    ]
    return PolledRoom(room, messages, unread_left, rows[0]["newest_id"])


def _no_such_lease() -> NoSuchThing:
    return NoSuchThing("There is no such lease of yours; poll again and name the lease of its answer.")


def _check_joined(named: Iterable[str], joined: Collection[str]) -> None:
    strangers = set(named) - set(joined)
    if strangers:
        raise BadField("rooms", f"you are not in {', '.join(sorted(strangers)[:10])}; nothing was changed")


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
    if how.rooms == []:
        raise BadField("rooms", "name a room, or leave it out to poll all of yours")
    for room in how.rooms or ():
        fields.unicode_text("rooms", room)
