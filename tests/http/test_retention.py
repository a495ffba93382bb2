"""What is older than it is to be kept goes, and everything that counts and reads stays right."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from api.db import Database
from api.services import retention
from api.services.retention import Pruned, Retention
from tests.http.running import Party, Running, running, settings_for, until
from tests.http.test_rooms import bodies, said
from tests.http.test_undelivered import pair, reported


async def age(database_url: str, *ids: int, days: int = 40) -> None:
    """Let messages, and the batches until now, be old."""
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute(
            "UPDATE conv_messages SET created_at = created_at - $2 * interval '1 day' WHERE id = ANY ($1)",
            ids,
            days,
        )
        await connection.execute(
            "UPDATE batches SET handed_at = handed_at - $1 * interval '1 day' WHERE committed_at IS NOT NULL",
            days,
        )
    finally:
        await connection.close()


async def rows(database_url: str, query: str) -> list[tuple[Any, ...]]:
    connection = await asyncpg.connect(database_url)
    try:
        return [tuple(row) for row in await connection.fetch(query)]
    finally:
        await connection.close()


async def prune(database_url: str, **how: Any) -> list[Pruned]:
    db = Database(database_url, hot=1, cold=1)
    try:
        return await Retention(db, keep_days=None).prune(**how)
    finally:
        await db.close()


async def unread(party: Party) -> int:
    agents = (await party.get("/v1/unread")).body["agents"]
    return sum(agent["unread"] for agent in agents.values())


async def test_what_was_read_and_is_old_goes_with_its_receipts(record: Running, database_url: str) -> None:
    _, speaker, reader = await pair(record)
    old = [await said(speaker, "api", f"old {n}") for n in range(3)]
    assert len(await bodies(reader)) == 3
    young = await said(speaker, "api", "young")
    await age(database_url, *old)
    assert await prune(database_url) == [], "without a word of it everything is kept"
    (done,) = await prune(database_url, keep_days=30)
    assert (done.realm, done.deleted, done.expired) == ("main", 3, 0)
    history = (await speaker.get("/v1/rooms/api/messages")).body["messages"]
    assert [message["id"] for message in history] == [young]
    assert (await speaker.get(f"/v1/messages/{old[0]}")).code == "message_not_found"
    assert await rows(database_url, "SELECT * FROM batch_rooms") == []
    assert await rows(database_url, "SELECT * FROM batches") == []
    assert await unread(reader) == 1
    assert await bodies(reader) == ["young"]
    receipt = (await speaker.get(f"/v1/messages/{young}")).body["receipt"]
    assert [one["agent"] for one in receipt["read_by"]] == [reader.agent]
    (again,) = await prune(database_url, keep_days=30)
    assert again.deleted == 0


async def test_who_was_there_is_remembered_for_as_long_as_something_is_left_of_what_was_said(
    record: Running, database_url: str
) -> None:
    _, speaker, reader = await pair(record)
    known = "SELECT (SELECT count(*) FROM past_members), (SELECT count(*) FROM past_retirements)"

    async def comes_and_goes(times: int) -> None:
        for _ in range(times):
            assert (await reader.post("/v1/rooms/api/leave")).status == 200
            assert (await reader.post("/v1/rooms/api/join")).status == 200

    await comes_and_goes(3)
    assert await rows(database_url, known) == [(0, 0)], "nothing was said meanwhile"
    old = await said(speaker, "api", "old")
    await comes_and_goes(3)
    assert (await reader.post("/v1/checkout")).status == 200
    resumed = await reader.speaking_as(None).post("/v1/checkin", {"resume": reader.agent})
    assert resumed.status == 200
    assert await bodies(reader) == ["old"]
    assert await rows(database_url, known) == [(1, 1)]
    connection = await asyncpg.connect(database_url)
    try:
        for table, columns in {
            "conv_messages": ("created_at",),
            "past_members": ("joined_at", "left_at"),
            "past_retirements": ("retired_at", "ended_at"),
        }.items():
            moved = ", ".join(f"{column} = {column} - interval '40 days'" for column in columns)
            await connection.execute(f"UPDATE {table} SET {moved}")
    finally:
        await connection.close()
    await prune(database_url, keep_days=50)
    assert await rows(database_url, known) == [(1, 1)]
    accepted = (await speaker.get(f"/v1/messages/{old}")).body["receipt"]["accepted"]
    assert [one["agent"] for one in accepted] == [reader.agent]
    await said(speaker, "api", "young")
    await prune(database_url, keep_days=30)
    assert await rows(database_url, known) == [(0, 0)]


async def test_unread_counts_are_what_poll_returns_before_between_and_after(
    record: Running, database_url: str
) -> None:
    box, speaker, reader = await pair(record)
    third = await record.session(box, "late")
    await third.post("/v1/rooms/api/join", {"backfill": "all"})
    ids = [await said(speaker, "api", f"m{n}") for n in range(6)]
    assert len(await bodies(third)) == 6
    leased = (await reader.post("/v1/poll", {"ack": "lease", "limit": 2})).body
    await age(database_url, *ids[:4])
    await prune(database_url, keep_days=30)
    assert await unread(reader) == 2
    again = (await reader.post("/v1/poll", {})).body
    assert again["rooms"][0]["messages"][0]["body"] == "m4"
    assert [m["body"] for room in again["rooms"] for m in room["messages"]] == ["m4", "m5"]
    assert (await reader.post("/v1/ack", {"lease": leased["lease"]})).status == 200
    assert (await unread(reader), await bodies(reader)) == (0, [])
    cursors = (await speaker.get("/v1/rooms/api/members")).body["members"]
    assert {row["last_read_id"] for row in cursors if row["agent"] == reader.agent} == {ids[-1]}
    await age(database_url, *ids[4:])
    await prune(database_url, keep_days=30)
    new = await said(speaker, "api", "into an empty room")
    assert await bodies(reader) == ["into an empty room"]
    assert (await speaker.get("/v1/messages")).status == 200
    assert new > ids[-1]


async def test_a_thread_is_kept_whole_while_it_lives(record: Running, database_url: str) -> None:
    _, speaker, reader = await pair(record)
    asked = await said(speaker, "api", "do it", type="task.request", thread_id="t1")
    await bodies(reader)
    answered = await said(reader, "api", "done", in_reply_to=asked)
    await bodies(speaker)
    await age(database_url, asked)
    (done,) = await prune(database_url, keep_days=30)
    assert done.deleted == 0
    thread = (await speaker.get("/v1/threads/t1")).body["messages"]
    assert [message["id"] for message in thread] == [asked, answered]
    await age(database_url, answered)
    (done,) = await prune(database_url, keep_days=30)
    assert done.deleted == 2
    assert (await speaker.get("/v1/threads/t1")).code == "not_found"


async def test_what_nobody_took_is_reported_before_it_goes(record: Running, database_url: str) -> None:
    _, speaker, reader = await pair(record)
    lost = await said(speaker, "api", "nobody read this")
    await age(database_url, lost)
    (done,) = await prune(database_url, keep_days=30)
    assert (done.deleted, done.expired) == (0, 1)
    (report,) = await reported(speaker, 1)
    assert (report["type"], report["in_reply_to"]) == ("delivery.undelivered", lost)
    assert (await unread(reader), await bodies(reader)) == (0, [])
    (done,) = await prune(database_url, keep_days=30)
    assert (done.deleted, done.expired) == (1, 0)


@pytest.mark.long
async def test_what_is_large_goes_in_parts_that_are_small(record: Running, database_url: str) -> None:
    _, speaker, _ = await pair(record)
    body = "word " * 13_000
    large = [await said(speaker, "api", body) for _ in range(40)]
    small = [await said(speaker, "api", "small") for _ in range(40)]
    await age(database_url, *large, *small)
    (done,) = await prune(database_url, keep_days=30)
    assert (done.deleted, done.expired) == (0, 80)
    # each transaction leaves its mark on the rows that it wrote
    parts = await rows(
        database_url,
        "SELECT count(*), sum(size) FROM conv_messages WHERE sender_kind <> 'system' GROUP BY xmin::text",
    )
    assert max(size for _, size in parts) < 2 * 1024 * 1024
    assert max(count for count, _ in parts) >= 40


@pytest.mark.long
async def test_two_replicas_prune_at_once_beside_those_who_write_and_read(
    record: Running, second: Running, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "MOST", 20)
    _, speaker, reader = await pair(record)
    elsewhere = second.holding(str(speaker.token), speaker.agent)
    old = list(await asyncio.gather(*(said(speaker, "api", f"old {n}") for n in range(400))))
    kept = await said(speaker, "api", "a thread that lives", type="task.request", thread_id="t1")
    assert len(await bodies(reader, limit=1000)) == 401
    await age(database_url, *old, kept)
    await said(reader, "api", "so it does", in_reply_to=kept)

    async def write(party: Party, name: str) -> list[int]:
        return [
            await said(party, "api", f"{name} {n}", in_reply_to=kept if n % 5 == 0 else None)
            for n in range(60)
        ]

    got: list[str] = []

    async def read() -> None:
        while len(got) < 120:
            got.extend(await bodies(reader, wait_seconds=1))

    async with asyncio.TaskGroup() as tasks:
        pruning = [tasks.create_task(prune(database_url, keep_days=30)) for _ in range(3)]
        writing = [
            tasks.create_task(write(party, name)) for party, name in ((speaker, "a"), (elsewhere, "b"))
        ]
        tasks.create_task(read())
    deleted = sum(done.deleted for task in pruning for done in task.result())
    assert deleted + (await prune(database_url, keep_days=30))[0].deleted == len(old)
    assert sorted(got) == sorted(f"{name} {n}" for name in "ab" for n in range(60))
    new = [id_ for task in writing for id_ in task.result()]
    history = (await speaker.get("/v1/rooms/api/messages?limit=1000")).body["messages"]
    assert {message["id"] for message in history} > {kept, *new}
    assert len(history) == 2 + len(new)
    thread = (await speaker.get("/v1/threads/t1?limit=1000")).body["messages"]
    assert len(thread) == 2 + 24
    assert (await unread(reader), await bodies(reader)) == (0, [])
    for id_ in (kept, new[0], new[-1]):
        receipt = (await speaker.get(f"/v1/messages/{id_}")).body["receipt"]
        assert [one["agent"] for one in receipt["read_by"]] == [reader.agent]


async def test_each_realm_keeps_as_it_says_and_the_record_sees_to_it_itself(
    record: Running, database_url: str, tmp_path: Path
) -> None:
    made = await record.operator.post("/v1/admin/realms", {"name": "lab", "keep_days": 100})
    assert (made.status, made.body["keep_days"]) == (201, 100)
    for realm in ("main", "lab"):
        box, other = await record.box("work3", realm=realm), await record.box("devmac", realm=realm)
        for party in (box, other):
            await party.post("/v1/rooms", {"name": "api"})
        for _ in range(2):
            await age(database_url, await said(box, "api", f"old of {realm}"))
        assert len(await bodies(other)) == 2
    async with running(settings_for(database_url, tmp_path, keep_days=30)):

        async def only_the_labs() -> bool:
            kept = await rows(database_url, "SELECT DISTINCT body FROM conv_messages")
            return kept == [("old of lab",)]

        await until(only_the_labs, "the old messages of main go")
    assert (await record.operator.put("/v1/admin/realms/lab", {"keep_days": 7})).body["keep_days"] == 7
    (done,) = await prune(database_url)
    assert (done.realm, done.deleted) == ("lab", 2)
    assert (await record.operator.put("/v1/admin/realms/lab", {})).body["keep_days"] is None
    assert (await record.operator.put("/v1/admin/realms/nowhere", {})).code == "not_found"
    assert (await record.operator.put("/v1/admin/realms/lab", {"keep_days": 0})).code == "invalid"


async def test_writers_are_not_kept_waiting_while_much_is_deleted(database_url: str, tmp_path: Path) -> None:
    async with running(settings_for(database_url, tmp_path, say_per_second=100_000)) as record:
        _, speaker, reader = await pair(record)
        old = await said(speaker, "api", "old")
        assert await bodies(reader) == ["old"]
        await copy(database_url, old, 5000)
        await age(database_url, *range(1, old + 5001))
        pruning = asyncio.create_task(prune(database_url, keep_days=30))
        while not pruning.done():
            async with asyncio.timeout(2):
                await said(speaker, "api", "meanwhile")
        (done,) = await pruning
        assert done.deleted == 5001
        assert set(await bodies(reader)) == {"meanwhile"}


async def copy(database_url: str, message_id: int, count: int) -> None:
    """Fill the message's room with what the system said."""
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute(
            "INSERT INTO conv_messages (realm_id, conv_id, sender_kind, body, size)"
            " SELECT realm_id, conv_id, 'system', 'x', 1"
            " FROM conv_messages, generate_series(1, $2) WHERE id = $1",
            message_id,
            count,
        )
    finally:
        await connection.close()


async def test_no_cursor_runs_ahead_of_a_room_without_messages(record: Running) -> None:
    _, speaker, reader = await pair(record)
    assert (await reader.post("/v1/ack", {"rooms": {"api": 10**6}})).status == 200
    await said(speaker, "api", "the first")
    assert await bodies(reader) == ["the first"]
