"""Many writers and readers through two records at once: nothing is missing, doubled or out of order."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from api.store.messages import COLUMNS, SAY
from tests.faults.processes import record_process, show
from tests.http.running import Party, Running, until

WRITERS, READERS = 32, 8
HOUR = dt.timedelta(hours=1)
STALLED = "stalled"
STORED = "SELECT count(*) FROM conv_messages WHERE conv_id = $1"
SHOWN = ("rooms", "messages", "readers", "missing", "repeated", "unordered", "seconds")


@dataclass
class Reading:
    """One reader: its way to each record, how it polls, and what it was handed."""

    doors: list[Party]
    ack: str
    hands: int = 1
    polls: int = 0
    emptied: int = 0
    got: list[tuple[str, int, str]] = field(default_factory=list)
    unordered: int = 0

    async def read(self, until_count: int) -> None:
        """Poll through one record and the other in turn, with as many calls at once as it has hands."""
        await asyncio.gather(*(self._read(hand, until_count) for hand in range(self.hands)))

    async def _read(self, hand: int, until_count: int) -> None:
        newest: dict[str, int] = {}
        seen: str | None = None
        for door in itertools.islice(itertools.cycle(self.doors), hand, None):
            asked = {"limit": 1000, "wait_seconds": 1, "ack": self.ack, "seen": seen}
            polled = await door.post("/v1/poll", asked)
            assert polled.status == 200, polled
            self.polls += 1
            self.emptied += not polled.body["count"]
            self._take(polled.body, newest)
            seen = polled.body["lease"]
            if len(self.got) >= until_count and seen is None:
                return

    def _take(self, polled: dict[str, Any], newest: dict[str, int]) -> None:
        for room in polled["rooms"]:
            for message in room["messages"]:
                assert "redelivered" not in message or not message["redelivered"]
                self.unordered += message["id"] <= newest.get(room["room"], 0)
                newest[room["room"]] = message["id"]
                self.got.append((room["room"], message["id"], message["body"]))


async def meet(
    records: Sequence[Running], rooms: Sequence[str]
) -> tuple[list[list[Party]], list[Reading], Party]:
    """Writers, readers and the one who will stall, all in every room."""
    first = records[0]
    box, other = await first.box("writers"), await first.box("readers")
    writers = [await first.session(box) for _ in range(WRITERS)]
    readers = [await first.session(other) for _ in range(READERS)]
    stalled = await first.session(box, STALLED)
    for room in rooms:
        assert (await stalled.post("/v1/rooms", {"name": room})).status == 201

    async def enter(party: Party) -> None:
        for room in rooms:
            assert (await party.post(f"/v1/rooms/{room}/join", {})).status == 200

    await asyncio.gather(*map(enter, [*writers, *readers]))
    plans = [("auto", 1), ("lease", 1)] * (READERS // 2 - 1) + [("auto", 1), ("auto", 2)]
    readings = [
        Reading(doors_of(reader, records), ack, hands)
        for reader, (ack, hands) in zip(readers, plans, strict=True)
    ]
    return [doors_of(writer, records) for writer in writers], readings, stalled


def doors_of(party: Party, records: Sequence[Running]) -> list[Party]:
    return [replace(party, url=record.url, http=record.http) for record in records]


async def write(doors: Sequence[Party], number: int, count: int, rooms: Sequence[str]) -> None:
    """Say it through one record and the other in turn; every tenth message through both at once."""
    for turn, door in zip(range(count), itertools.cycle(doors), strict=False):
        path = f"/v1/rooms/{rooms[(number * 7 + turn) % len(rooms)]}/messages"
        new = {"body": f"{number}-{turn}", "client_id": f"{number}-{turn}"}
        ways = doors if turn % 10 == 0 else [door]
        said = await asyncio.gather(*(way.post(path, new) for way in ways))
        assert sorted(reply.status for reply in said) == [200, 201][-len(ways) :], said
        assert len({reply.body["message"]["id"] for reply in said}) == 1


async def stall(database_url: str, party: Party, room: str, readings: Sequence[Reading]) -> None:
    """Say as the record does, and hold the commit back until readers have looked; nobody else is stored."""
    connection = await asyncpg.connect(database_url)
    try:
        who = await connection.fetchrow("SELECT * FROM agents WHERE handle = $1", party.agent)
        conv_id = await connection.fetchval("SELECT conv_id FROM conversations WHERE name = $1", room)
        values = dict.fromkeys((name for name, _ in COLUMNS), None) | {
            "realm_id": who["realm_id"],
            "conv_id": conv_id,
            "sender_id": who["agent_id"],
            "sender_kind": "session",
            "box_id": who["box_id"],
            "type": "note",
            "body": STALLED,
            "size": len(STALLED),
            "urgent": False,
            "hop_limit": 5,
            "late": False,
            "in_room": True,
        }
        async with connection.transaction():
            stored = await connection.fetch(
                SAY, [conv_id], 180, HOUR, *([value] for value in (values[name] for name, _ in COLUMNS))
            )
            assert len(stored) == 1
            stored_before = await connection.fetchval(STORED, conv_id)
            before = [reading.polls for reading in readings]
            await until(
                lambda: all(now.polls > then + 2 for now, then in zip(readings, before, strict=True)),
                "every reader has looked meanwhile",
            )
            assert await connection.fetchval(STORED, conv_id) == stored_before
    finally:
        await connection.close()


async def prove(
    database_url: str, folder: Path, *, messages: int, rooms: int
) -> tuple[tuple[object, ...], list[Reading]]:
    """Run it; the row of the table, and what each reader got."""
    names = [f"room-{number}" for number in range(rooms)]
    async with contextlib.AsyncExitStack() as stack:
        records = [await stack.enter_async_context(record_process(database_url, folder)) for _ in range(2)]
        writers, readings, stalled = await meet(records, names)
        share = -(-messages // WRITERS)
        started = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for reading in readings:
                tasks.create_task(reading.read(share * WRITERS + 1))
            for number, doors in enumerate(writers):
                tasks.create_task(write(doors, number, share, names))
            tasks.create_task(stall(database_url, stalled, names[0], readings))
        seconds = time.monotonic() - started
        left = await asyncio.gather(*(reading.doors[0].get("/v1/unread") for reading in readings))
    assert all(unread.body == {"agents": {}} for unread in left)
    wanted = {f"{number}-{turn}" for number in range(WRITERS) for turn in range(share)} | {STALLED}
    missing = sum(len(wanted - {body for _, _, body in reading.got}) for reading in readings)
    repeated = sum(len(reading.got) - len({id_ for _, id_, _ in reading.got}) for reading in readings)
    unordered = sum(reading.unordered for reading in readings)
    row = (rooms, len(wanted), len(readings), missing, repeated, unordered, f"{seconds:.1f}")
    return row, readings


def judge(row: tuple[object, ...], readings: Sequence[Reading]) -> None:
    assert row[3:6] == (0, 0, 0)
    everything = sorted(readings[0].got)
    assert all(sorted(reading.got) == everything for reading in readings)
    assert len(everything) == row[1]


@pytest.mark.long
@pytest.mark.parametrize("rooms", [1, 8])
@pytest.mark.timeout(300)
async def test_two_thousand_messages_reach_each_reader_once_and_in_order(
    database_url: str, tmp_path: Path, rooms: int
) -> None:
    judge(*await prove(database_url, tmp_path, messages=2_000, rooms=rooms))


@pytest.mark.faults
@pytest.mark.timeout(400)
@pytest.mark.parametrize("rooms", [1, 64])
async def test_fifty_thousand_messages_reach_each_reader_once_and_in_order(
    database_url: str, tmp_path: Path, rooms: int, capsys: pytest.CaptureFixture[str]
) -> None:
    row, readings = await prove(database_url, tmp_path, messages=50_000, rooms=rooms)
    show(capsys, SHOWN, [row])
    judge(row, readings)
