"""The record or its database goes away under a model at its tools, and comes back."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest

from deploy.postgres import Postgres
from tests.contract.nerves import free_port
from tests.faults.processes import record_process
from tests.http.models import Answer, Era, Model, model
from tests.http.running import Party, Running, running, settings_for, until
from tests.http.test_away import is_away, is_ready, own_postgres
from tests.http.test_mcp_door import call

__all__ = ["own_postgres"]  # the fixture

pytestmark = pytest.mark.long


async def two(record: Running) -> tuple[Party, Party]:
    """A session that will have tools, and one that speaks, in the room `api`."""
    ada, bob = [await record.session(await record.box(name)) for name in ("work3", "devmac")]
    for party in (ada, bob):
        assert (await party.post("/v1/rooms", {"name": "api"})).status in (200, 201)
    return ada, bob


async def say(party: Party, body: str) -> int:
    reply = await party.post("/v1/rooms/api/messages", {"body": body})
    assert reply.status == 201, reply
    return int(reply.body["message"]["id"])


async def has_read(asking: Party, id_: int, reader: Party) -> bool:
    receipt = (await asking.get(f"/v1/messages/{id_}")).body["receipt"]
    return reader.agent in {each["agent"] for each in receipt["read_by"]}


async def begin_to_wait(tool: Model, ada: Party, bob: Party) -> asyncio.Task[Answer]:
    """A poll that has acknowledged what came before it, and waits for more."""
    before = await say(bob, "before")
    handed = await tool("poll_convs")
    assert [message["id"] for message in handed.messages] == [before]
    waiting = asyncio.create_task(tool("poll_convs", seen=handed.data["lease"], wait_seconds=25))
    await until(lambda: has_read(bob, before, ada), "the lease is acknowledged")
    return waiting


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_a_killed_record_ends_what_waits_and_strands_no_client(
    database_url: str, tmp_path: Path, era: Era
) -> None:
    port = free_port()
    async with AsyncExitStack() as first:
        record = await first.enter_async_context(record_process(database_url, tmp_path, port=port))
        ada, bob = await two(record)
        eve = await record.session(ada)
        async with model(ada, era) as tool:
            assert (await tool("poll_convs")).data["count"] == 0
            waiting = asyncio.create_task(call(eve, "poll_convs", {"wait_seconds": 25}))
            await asyncio.wait({waiting}, timeout=0.5)
            await first.aclose()
            with pytest.raises(aiohttp.ClientError):
                await waiting
            async with record_process(database_url, tmp_path, port=port) as again:
                after = await say(again.holding(str(bob.token), bob.agent), "after")
                assert [message["id"] for message in (await tool("poll_convs")).messages] == [after]
                assert (await tool("say", room="api", body="here again")).code is None


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_without_postgresql_a_tool_says_so_and_works_again_when_it_is_back(
    own_postgres: Postgres, tmp_path: Path, era: Era
) -> None:
    async with running(settings_for(own_postgres.dsn, tmp_path)) as record:
        ada, bob = await two(record)
        async with model(ada, era) as tool:
            waiting = await begin_to_wait(tool, ada, bob)
            assert own_postgres.pid is not None
            os.kill(own_postgres.pid, signal.SIGKILL)
            await until(lambda: is_away(record), "the record notices")
            for answer in (await waiting, await tool("list_convs"), await tool("say", room="api", body="x")):
                assert answer.code == "record_down"
                assert "again" in answer.texts[0]
            own_postgres.stop()
            own_postgres.start()
            await until(lambda: is_ready(record), "the record is ready")
            after = await say(bob, "after")
            assert [message["id"] for message in (await tool("poll_convs")).messages] == [after]
