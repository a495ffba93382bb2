"""A room whose lock somebody holds keeps nobody waiting but those who speak there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

import asyncpg
import pytest

from api import db as connections
from api.db import Database
from api.errors import RecordDown, RoomHeldUp
from api.services import saying
from api.services.rooms import Rooms
from api.services.saying import Draft, Stored
from tests.store.test_say_batches import DEADLINE, TOGETHER, Talk, numbered, talk

__all__ = ["talk"]

OTHERS = 20


@contextlib.asynccontextmanager
async def held(database_url: str, *rooms: int) -> AsyncIterator[asyncpg.Connection]:
    """Another transaction that holds the rooms' locks for the length of the block."""
    connection = await asyncpg.connect(database_url)
    try:
        async with connection.transaction():
            for room in rooms:
                await connection.execute("SELECT pg_advisory_xact_lock($1::bigint)", room)
            yield connection
    finally:
        await connection.close()


@pytest.fixture
async def others(talk: Talk) -> list[int]:
    """Further rooms that the speaker is in."""
    rooms = Rooms(talk.db, stale_seconds=180, rooms_per_realm=100, members_per_room=100)
    for number in range(OTHERS):
        await rooms.start(talk.speaker, f"other-{number}", title=None, backfill=0)
    return [await rooms.conv_id(talk.speaker, f"other-{number}") for number in range(OTHERS)]


def saying_all(talk: Talk, drafts: Iterable[Draft]) -> list[asyncio.Task[Stored | None]]:
    return [asyncio.create_task(talk.sayings.store(draft)) for draft in drafts]


async def test_a_held_room_holds_up_no_other_and_its_own_come_once_and_in_order(
    talk: Talk, others: list[int], database_url: str
) -> None:
    stuck: list[asyncio.Task[Stored | None]] = []
    async with held(database_url, talk.conv_id):
        for turn in range(5):
            stuck += saying_all(talk, (talk.draft(f"stuck {turn} {word}") for word in numbered(TOGETHER)))
            elsewhere = saying_all(talk, (talk.draft(f"{turn} {room}", conv_id=room) for room in others))
            async with asyncio.timeout(DEADLINE / 4):
                answers = await asyncio.gather(*elsewhere)
            assert all(isinstance(answer, Stored) for answer in answers)
        assert not any(task.done() for task in stuck)
        assert [body for body in await talk.bodies() if body.startswith("stuck")] == []
    async with asyncio.timeout(DEADLINE):
        await asyncio.gather(*stuck)
    wanted = [f"stuck {turn} {word}" for turn in range(5) for word in numbered(TOGETHER)]
    assert [body for body in await talk.bodies() if body.startswith("stuck")] == wanted


async def test_many_held_rooms_hold_up_no_other(talk: Talk, others: list[int], database_url: str) -> None:
    stuck, free = others[: OTHERS // 2], others[OTHERS // 2 :]
    async with held(database_url, *stuck):
        waiting = saying_all(talk, (talk.draft(f"stuck {room}", conv_id=room) for room in stuck))
        for turn in range(3):
            said = saying_all(talk, (talk.draft(f"{turn} {room}", conv_id=room) for room in free))
            async with asyncio.timeout(DEADLINE / 4):
                assert all(isinstance(answer, Stored) for answer in await asyncio.gather(*said))
        assert not any(task.done() for task in waiting)
    async with asyncio.timeout(DEADLINE):
        await asyncio.gather(*waiting)
    assert len(await talk.bodies()) == len(stuck) + 3 * len(free)


async def test_what_stays_held_is_refused_in_words_and_not_stored(
    talk: Talk, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saying, "GIVE_UP_SECONDS", 1.0)
    async with held(database_url, talk.conv_id), asyncio.timeout(DEADLINE):
        answers = await talk.together(*map(talk.draft, numbered(TOGETHER)))
        assert [type(answer) for answer in answers] == [RoomHeldUp] * TOGETHER
    async with asyncio.timeout(DEADLINE):
        again = await talk.together(*map(talk.draft, numbered(TOGETHER)))
    assert all(isinstance(answer, Stored) for answer in again)
    assert await talk.bodies() == numbered(TOGETHER)


async def test_a_row_that_is_refused_fails_alone_after_its_room_was_held(
    talk: Talk, database_url: str
) -> None:
    async with held(database_url, talk.conv_id) as connection:
        tasks = saying_all(talk, [talk.draft("m0"), talk.draft(""), talk.draft("m1", client_id="c")])
        await _waits(connection, talk.conv_id)
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(answer).__name__ for answer in answers] == ["Stored", "BadField", "Stored"]
    assert await talk.sayings.store(talk.draft("m1", client_id="c")) is None
    assert await talk.bodies() == ["m0", "m1"]


async def test_who_hangs_up_while_the_room_is_held_has_said_nothing(talk: Talk, database_url: str) -> None:
    async with held(database_url, talk.conv_id) as connection:
        gone, stays = saying_all(talk, [talk.draft("gone"), talk.draft("stays")])
        await _waits(connection, talk.conv_id)
        async with asyncio.timeout(DEADLINE):
            while talk.conv_id not in talk.sayings._aside:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        gone.cancel()
        await asyncio.wait([gone])
    async with asyncio.timeout(DEADLINE):
        assert isinstance(await stays, Stored)
    assert await talk.bodies() == ["stays"]


async def hang_as_a_reader(db: Database, other: asyncpg.Connection) -> None:
    async with db.reader(1, 7) as reader:
        await other.execute("SELECT pg_advisory_lock(-7)")
        await reader.rows("SELECT $1::int, $2::int")


async def hang_in_a_transaction(db: Database, other: asyncpg.Connection) -> None:
    async with db.transaction() as tx:
        await tx.exec_driver_sql("SELECT pg_advisory_xact_lock(8)")
        await other.execute("SELECT pg_advisory_lock(8)")
        await tx.exec_driver_sql("SELECT 1")


@pytest.mark.parametrize("hang", [hang_as_a_reader, hang_in_a_transaction])
async def test_a_record_that_hangs_within_a_transaction_loses_its_locks(
    hang: Callable[[Database, asyncpg.Connection], Awaitable[None]],
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "STATEMENT_SECONDS", 0.5)
    db, other = Database(database_url), await asyncpg.connect(database_url)
    try:
        async with asyncio.timeout(DEADLINE) as limit:
            with pytest.raises(RecordDown):
                await hang(db, other)
        assert not limit.expired()
        await db.check()
    finally:
        await other.close()
        await db.close()


async def _waits(connection: asyncpg.Connection, room: int) -> None:
    waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = $1)"
    async with asyncio.timeout(DEADLINE):
        while not await connection.fetchval(waits, room):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
