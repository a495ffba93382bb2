"""A record that stops in the middle of a transaction harms the room that it writes in, and no other."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import aiohttp
import asyncpg
import pytest

from tests.http.running import DEADLINE, Party, Reply, Running, until
from tests.http.test_process import process
from tests.http.test_rooms import bodies
from tests.http.test_undelivered import pair

pytestmark = pytest.mark.long

OTHERS = 20
LETTERS = 40

WAITS = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE 'INSERT%' AND wait_event_type = 'Lock')"
STOPPED = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE state = 'idle in transaction')"


async def ready(record: Running) -> bool:
    try:
        return (await record.stranger.get("/readyz")).status == 200
    except aiohttp.ClientConnectionError:
        return False


async def stopped_within_a_transaction(
    child: asyncio.subprocess.Process, database_url: str, relaying: Party, relay: dict[str, object], room: str
) -> asyncio.Task[Reply]:
    """Stop the process while it holds the lock of `room`, where it is about to tell of a refused relay."""
    watching, holding = await asyncpg.connect(database_url), await asyncpg.connect(database_url)
    try:
        async with asyncio.timeout(DEADLINE):
            while True:
                async with holding.transaction():
                    await holding.execute(
                        "SELECT FROM conversations WHERE name = $1 FOR UPDATE", room
                    )  # its insert waits for this
                    call = asyncio.create_task(relaying.post("/v1/rooms/api/messages", relay))
                    while not (await watching.fetchval(WAITS) or call.done()):  # noqa: ASYNC110
                        await asyncio.sleep(0.005)
                    child.send_signal(signal.SIGSTOP)
                for _ in range(20):
                    if await watching.fetchval(STOPPED):
                        return call
                    await asyncio.sleep(0.01)
                child.send_signal(signal.SIGCONT)  # too late: it had given up waiting
                await call
    finally:
        await watching.close()
        await holding.close()


async def test_a_record_that_is_stopped_within_a_transaction_harms_one_room_alone(
    record: Running, database_url: str, tmp_path: Path
) -> None:
    _, speaker, reader = await pair(record)
    for number in range(OTHERS):
        await reader.post("/v1/rooms", {"name": f"other-{number}"})
    request = {"type": "task.request", "body": "do it", "hop_limit": 1}
    asked = await speaker.post("/v1/rooms/api/messages", request)
    relay = {"body": "you do it", "relay_of": asked.body["message"]["id"]}
    async with process(database_url, tmp_path) as (other, child):
        await until(lambda: ready(other), "the other record is ready")
        relaying = other.holding(str(reader.token), reader.agent)
        refused = await stopped_within_a_transaction(
            child, database_url, relaying, relay, f"@{speaker.agent}"
        )
        letters = [f"letter {number:02}" for number in range(LETTERS)]
        sending = [
            asyncio.create_task(reader.post("/v1/messages", {"to": speaker.agent, "body": letter}))
            for letter in letters
        ]
        async with asyncio.timeout(DEADLINE / 4):
            for turn in range(3):
                said = await asyncio.gather(
                    *(
                        reader.post(f"/v1/rooms/other-{number}/messages", {"body": str(turn)})
                        for number in range(OTHERS)
                    )
                )
                assert [reply.status for reply in said] == [201] * OTHERS
        assert not any(task.done() for task in sending)
        child.send_signal(signal.SIGCONT)
        assert [reply.status for reply in await asyncio.gather(*sending)] == [201] * LETTERS
        assert (await refused).code == "hop_limit_reached"
    read = [body for body in await bodies(speaker) if body.startswith("letter")]
    assert sorted(read) == letters
    assert len(read) == len(set(read))
