"""A producer's name that a nerve token bears is that token's alone, at every replica and every nerve."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import aiohttp
import pytest

from broker_bridge import admission
from broker_bridge.admission import AskTheRecord
from broker_bridge.names import Name
from broker_bridge.queues import Unkept
from deploy.postgres import Postgres
from tests.contract.nerves import Ear, ear, served
from tests.http.running import Running, running, settings_for, until
from tests.http.test_away import is_away, is_ready, own_postgres

__all__ = ["own_postgres"]  # the fixture

NERVE = "/v1/admin/nerve-tokens"


async def token(record: Running, name: str, *, realm: str = "main") -> str:
    made = await record.operator.post(NERVE, {"name": name, "role": "both", "realm": realm})
    assert made.status == 201, made
    return str(made.body["token"])


async def tries(program: Ear, name: str) -> list[int]:
    """The codes of what it is refused when it registers a name and produces under it."""
    await program.send("PRODUCER", {"name": name})
    await program.send("PRODUCE", {"event": "done", "from": name, "message": 1})
    await program.barrier()
    return [refusal["code"] for refusal in program.events("AUTH_FAIL", "ERROR")]


@asynccontextmanager
async def alone(record: Running, secret: str) -> AsyncIterator[str]:
    """A nerve that stands apart, and asks the record."""
    async with aiohttp.ClientSession() as http:
        door = AskTheRecord(http, record.url, record_token=secret)
        async with served(door=door, names=door) as (_, url):
            yield url


@pytest.mark.parametrize("polling", [False, True], ids=["websocket", "polling"])
async def test_another_token_has_it_at_no_replica_whether_its_own_is_there_or_not(
    record: Running, second: Running, polling: bool
) -> None:
    ci, build = await token(record, "ci"), await token(record, "build")
    async with ear(second.url, ci, polling=polling) as liar:
        assert await tries(liar, "Build") == [403, 403]
        liar.heard.clear()
        async with ear(record.url, build) as program, ear(second.url, build) as again:
            assert await tries(program, "build") == []
            assert await tries(again, "BUILD") == []
            assert await tries(liar, "build") == [403, 403]
        liar.heard.clear()
        assert await tries(liar, "free") == await tries(liar, "ci") == []


async def test_any_other_name_is_one_tokens_at_all_records(record: Running, second: Running) -> None:
    ci, lint = await token(record, "ci"), await token(record, "lint")
    async with ear(record.url, ci) as program, ear(second.url, lint) as other:
        assert await tries(program, "build") == []
        assert await tries(other, "build") == [403, 403]
        async with ear(second.url, ci) as again:
            assert await tries(again, "build") == []


async def test_a_nerve_token_is_not_made_under_a_name_that_another_goes_by(record: Running) -> None:
    async with ear(record.url, await token(record, "ci")) as program:
        assert await tries(program, "Build") == []
        refused = await record.operator.post(NERVE, {"name": "build", "role": "both"})
        assert (refused.status, refused.code) == (409, "name_taken")
        assert (await record.operator.delete(f"{NERVE}/build")).status == 404
        await token(record, "lint")
        assert await tries(program, "lint") == [403, 403]
        assert (await record.operator.delete(f"{NERVE}/lint")).status == 204
        program.heard.clear()
        assert await tries(program, "lint") == [403, 403]
        await token(record, "lint")


async def test_names_of_another_realm_are_free(record: Running) -> None:
    assert (await record.operator.post("/v1/admin/realms", {"name": "lab"})).status == 201
    await token(record, "build", realm="lab")
    async with ear(record.url, await token(record, "ci")) as program:
        assert await tries(program, "build") == []


async def test_a_nerve_that_stands_apart_asks_the_record(database_url: str, tmp_path: Path) -> None:
    file = tmp_path / "nerve.token"
    file.write_text("the-records-own\n")
    async with running(settings_for(database_url, tmp_path, nerve_token_file=file)) as record:
        ci, build = await token(record, "ci"), await token(record, "build")
        async with alone(record, "the-records-own") as url, ear(url, ci) as liar, ear(url, build) as program:
            assert await tries(liar, "build") == [403, 403]
            assert await tries(program, "build") == await tries(program, "other") == []


async def test_nerves_that_stand_apart_have_their_names_in_common_with_the_record(
    database_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "nerve.token"
    file.write_text("the-records-own\n")
    async with AsyncExitStack() as stack:
        settings = settings_for(database_url, tmp_path, nerve_token_file=file)
        record = await stack.enter_async_context(running(settings))
        urls = [await stack.enter_async_context(alone(record, "the-records-own")) for _ in range(2)]
        ci, lint = await token(record, "ci"), await token(record, "lint")
        others = [await stack.enter_async_context(ear(url, lint)) for url in (*urls, record.url)]
        async with ear(urls[0], ci) as program, ear(urls[1], ci) as again:
            assert await tries(program, "build") == await tries(again, "build") == []
            assert [await tries(other, "build") for other in others] == [[403, 403]] * 3
        for other in others:
            await until(partial(is_had, other, "build"), "the name is free")


async def is_had(program: Ear, name: str) -> bool:
    program.heard.clear()
    return await tries(program, name) == []


async def test_many_names_are_renewed_at_a_time(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "NAMES_A_CALL", 2)
    file = tmp_path / "nerve.token"
    file.write_text("the-records-own\n")
    async with AsyncExitStack() as stack:
        settings = settings_for(database_url, tmp_path, nerve_token_file=file)
        record = await stack.enter_async_context(running(settings))
        http = await stack.enter_async_context(aiohttp.ClientSession())
        door = AskTheRecord(http, record.url, record_token="the-records-own")
        names = [Name("main", f"build{each}", "client ci", "s1") for each in range(5)]
        for name in names[1:]:
            assert await door.claim(name)
        assert await door.renew(names) == names[1:]
        await door.release(names[:3])
        assert await door.renew(names) == names[3:]
        strange = replace(names[0], name="a\0b")
        with pytest.raises(Unkept):
            await door.claim(strange)
        door.share("another")
        with pytest.raises(Unkept):
            await door.renew(names)


@pytest.mark.long
async def test_a_name_is_not_had_while_postgresql_is_away(own_postgres: Postgres, tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        record = await stack.enter_async_context(running(settings_for(own_postgres.dsn, tmp_path)))
        program = await stack.enter_async_context(ear(record.url, await token(record, "ci")))
        assert await tries(program, "ci") == []
        assert own_postgres.pid is not None
        os.kill(own_postgres.pid, signal.SIGKILL)
        await until(lambda: is_away(record), "the record notices")
        assert await tries(program, "free") == [-7, -7]
        program.heard.clear()
        own_postgres.stop()
        own_postgres.start()
        await until(lambda: is_ready(record), "the record is ready")
        assert await tries(program, "free") == []
