"""`readyroom broker` beside a real record: who is admitted, what is carried, and what revoking does."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest
import structlog

from broker_bridge.admission import AskTheRecord
from tests.contract.nerves import ear, free_port, listening, served, until
from tests.contract.programs import broker_alone
from tests.contract.redis_server import RedisServer
from tests.http.running import running, settings_for


async def test_it_carries_what_is_said_at_the_record_and_stops_politely(
    database_url: str, tmp_path: Path
) -> None:
    port, token_file = free_port(), tmp_path / "nerve.token"
    token_file.write_text("the-records-own\n")
    url = f"http://127.0.0.1:{port}"
    settings = settings_for(database_url, tmp_path, nerve_url=url, nerve_token_file=token_file)
    async with running(settings) as record:
        with broker_alone(record.url, port, token_file, tmp_path / "broker.log") as process:
            work3, devmac, zoo = (
                await record.box("work3"),
                await record.box("devmac"),
                await record.box("zoo"),
            )
            sessions = [await record.session(box) for box in (work3, devmac, zoo)]
            for session in sessions[:2]:
                await session.post("/v1/rooms", {"name": "api"})
            assert (await devmac.get("/v1/nerve")).body["url"] == url
            assert devmac.token is not None
            assert zoo.token is not None
            async with (
                listening(url, devmac.token) as (_, heard, states),
                listening(url, zoo.token) as (_, overheard, others),
                listening(url, "no-such-token") as (stranger, _, _never),
            ):
                await until(lambda: states == others == [True], "the listeners")
                await until(lambda: stranger.trouble == "This token is not valid here")
                said = await sessions[0].post("/v1/rooms/api/messages", {"body": "hello"})
                assert said.status == 201
                await until(lambda: heard, "the nudge")
                assert [(one.conv, one.sender) for one in heard] == [("api", sessions[0].agent)]
                assert overheard == []
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 0


async def test_several_with_one_redis_are_one_nerve(
    database_url: str, tmp_path: Path, redis: RedisServer
) -> None:
    ports, token_file = [free_port(), free_port()], tmp_path / "nerve.token"
    token_file.write_text("the-records-own\n")
    near, far = (f"http://127.0.0.1:{port}" for port in ports)
    settings = settings_for(database_url, tmp_path, nerve_url=near, nerve_token_file=token_file)
    environment = {"READYROOM_REDIS_URL": redis.new_url()}
    async with AsyncExitStack() as stack:
        record = await stack.enter_async_context(running(settings))
        for port in ports:
            log = tmp_path / f"broker-{port}.log"
            stack.enter_context(broker_alone(record.url, port, token_file, log, **environment))
        boxes = [await record.box(name) for name in ("work3", "devmac", "zoo")]
        sessions = [await record.session(box) for box in boxes]
        for session in sessions[:2]:
            await session.post("/v1/rooms", {"name": "api"})
        _, heard, states = await stack.enter_async_context(listening(far, str(boxes[1].token)))
        _, overheard, others = await stack.enter_async_context(listening(far, str(boxes[2].token)))
        await until(lambda: states == others == [True], "the listeners")
        number = 0
        while not heard:  # until the record, too, has found its broker, and the brokers each other
            number += 1
            assert number < 200, "nothing is heard"
            assert (await sessions[0].post("/v1/rooms/api/messages", {"body": "hello"})).status == 201
            await asyncio.sleep(0.1)
        assert {(one.conv, one.sender) for one in heard} == {("api", sessions[0].agent)}
        assert overheard == []
        tokens = [
            (await record.operator.post("/v1/admin/nerve-tokens", {"name": name, "role": "both"})).body
            for name in ("ci", "lint")
        ]
        program = await stack.enter_async_context(ear(near, tokens[0]["token"]))
        other = await stack.enter_async_context(ear(far, tokens[1]["token"]))
        for each in (program, other):
            await each.send("PRODUCER", {"name": "build"})
            await each.barrier()
        assert program.events("AUTH_FAIL", "ERROR") == []
        assert [refusal["code"] for refusal in other.events("AUTH_FAIL", "ERROR")] == [403]


@pytest.mark.long
async def test_it_looks_at_its_links_and_a_record_that_is_away_or_at_fault_parts_nobody(
    database_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "nerve.token"
    file.write_text("the-records-own\n")
    async with AsyncExitStack() as stack, aiohttp.ClientSession() as http:
        stopping = await stack.enter_async_context(AsyncExitStack())
        settings = settings_for(database_url, tmp_path, nerve_token_file=file)
        record = await stopping.enter_async_context(running(settings))
        gone, stays = await record.box("work3"), await record.box("devmac")
        door = AskTheRecord(http, record.url, record_token="the-records-own")
        _, url = await stack.enter_async_context(served(door=door, recheck_seconds=0.05))
        revoked = await stack.enter_async_context(ear(url, gone.token))
        other = await stack.enter_async_context(ear(url, stays.token))
        async with ear(url, None) as nobody:
            await nobody.send("AUTHENTICATION", {"realm": "a" * 201})
            await until(lambda: nobody.events("AUTH_FAIL"), "a refusal")
            assert nobody.events("AUTH_FAIL")[0]["code"] == 401
        logs = stack.enter_context(structlog.testing.capture_logs())
        file.write_text("another\n")
        await until(lambda: "nerve_recheck_failed" in [line["event"] for line in logs], "a refusal")
        file.write_text("the-records-own\n")
        await record.operator.delete(f"/v1/admin/tokens/{gone.token_id}")
        await until(lambda: not revoked.client.connected, "the hang-up")
        await stopping.aclose()
        logs.clear()
        await until(lambda: "nerve_recheck_failed" in [line["event"] for line in logs], "a failure")
        async with ear(url, None) as late:
            await late.send("AUTHENTICATION", {"token": stays.token})
            await until(lambda: not late.client.connected, "the hang-up")
            assert late.events("AUTH_FAIL")[0]["code"] == 503
        await other.barrier()


def test_it_wants_the_records_token() -> None:
    command = [sys.executable, "-m", "readyroom", "broker", "--record", "http://127.0.0.1:9"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("READYROOM_")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=clean)
    assert done.returncode == 2
    assert "--nerve-token-file" in done.stderr


def test_a_record_that_is_no_address_is_told_so() -> None:
    command = [sys.executable, "-m", "readyroom", "broker", "--record", "nonsense"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "is no URL of a record" in done.stderr
