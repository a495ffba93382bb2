"""SIGHUP: who may be on the nerve is found out anew, and whoever may stay notices nothing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import asyncpg
import pytest

from broker_bridge.nudge import Nudge
from tests.contract.nerves import Ear, ear, free_port, listening, until
from tests.contract.programs import broker_alone, serving_alone
from tests.contract.test_nerve_admission import log_in, reached, say
from tests.http.running import Party, Running

pytestmark = pytest.mark.long

BEHIND_ITS_BACK = """
    UPDATE tokens SET revoked_at = clock_timestamp() WHERE name = 'gone';
    UPDATE nerve_tokens SET revoked_at = clock_timestamp() WHERE name = 'gone';
    UPDATE realms SET anonymous_listeners = false WHERE name = 'main';
"""
"""What nobody is told of, as after a backup was put back."""


def events(log: Path) -> list[str]:
    """What happened, by the log of a program."""
    lines = (line for line in log.read_text().splitlines() if line.startswith("{"))
    return [json.loads(line)["event"] for line in lines]


async def sql(database_url: str, statement: str) -> None:
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


async def everybody(record: Running) -> tuple[Party, Party, str, str]:
    """Two boxes and the nerve tokens of two programs; one of each is to go."""
    await record.operator.put("/v1/admin/realms/main/listeners", {"anonymous": True})
    gone, stays = await record.box("gone"), await record.box("stays")
    programs = [
        (await record.operator.post("/v1/admin/nerve-tokens", {"name": name})).body["token"]
        for name in ("gone", "stays")
    ]
    return gone, stays, programs[0], programs[1]


async def held_to_it(
    record: Running, url: str, *, reload: Callable[[], object], log: Path, database_url: str
) -> None:
    """Who may not stay is hung up on at a SIGHUP; the others hear the next nudge on the same link."""
    gone, stays, program_gone, program_stays = await everybody(record)
    eric = await record.person("eric")
    async with (
        ear(url, gone.token) as box_gone,
        ear(url, program_gone) as other_gone,
        ear(url, None) as stranger,
        ear(url, program_stays) as other,
        listening(url, str(stays.token)) as (_, heard, states),
    ):
        assert (await log_in(stranger, realm="main"))["role"] == "consumer"
        await until(lambda: states == [True], "the box that stays")
        await sql(database_url, BEHIND_ITS_BACK)
        reload()
        parted: tuple[Ear, ...] = (box_gone, other_gone, stranger)
        await until(lambda: not any(it.client.connected for it in parted), "the hang-ups")
        await other.barrier()
        await say(eric, "stays")
        await until(lambda: heard, "a nudge")
        assert states == [True]
    assert "reloaded" in events(log)


async def test_the_record_reloads(database_url: str, tmp_path: Path) -> None:
    async with serving_alone(database_url, tmp_path) as (record, process):
        await held_to_it(
            record,
            record.url,
            reload=lambda: process.send_signal(signal.SIGHUP),
            log=tmp_path / "serve.log",
            database_url=database_url,
        )
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


async def test_the_broker_reloads(database_url: str, tmp_path: Path) -> None:
    port, file = free_port(), tmp_path / "nerve.token"
    file.write_text("the-records-own\n")
    url = f"http://127.0.0.1:{port}"
    shared = {"READYROOM_NERVE_URL": url, "READYROOM_NERVE_TOKEN_FILE": str(file)}
    async with serving_alone(database_url, tmp_path, **shared) as (record, _):
        with broker_alone(record.url, port, file, tmp_path / "broker.log") as process:
            await reached(record)
            await held_to_it(
                record,
                url,
                reload=lambda: process.send_signal(signal.SIGHUP),
                log=tmp_path / "broker.log",
                database_url=database_url,
            )
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0


async def test_record_and_broker_change_their_token_over_without_parting_anybody(
    database_url: str, tmp_path: Path
) -> None:
    port, file, brokers = free_port(), tmp_path / "nerve.token", tmp_path / "brokers.token"
    for each in (file, brokers):
        each.write_text("the-first-token\n")
    url = f"http://127.0.0.1:{port}"
    shared = {"READYROOM_NERVE_URL": url, "READYROOM_NERVE_TOKEN_FILE": str(file)}
    async with serving_alone(database_url, tmp_path, **shared) as (record, serving):
        with broker_alone(record.url, port, brokers, tmp_path / "broker.log") as carrying:
            await reached(record)
            box, eric = await record.box("work3"), await record.person("eric")
            async with listening(url, str(box.token)) as (_, heard, states), ear(url, None) as thief:
                await until(lambda: states == [True], "the box")
                assert (await log_in(thief, token="the-first-token"))["role"] == "producer"
                brokers.write_text("the-second-token\n")
                carrying.send_signal(signal.SIGHUP)
                await until(lambda: not thief.client.connected, "the old token's end")
                async with ear(url, None) as late:
                    answer = await log_in(late, token="the-first-token")
                    assert answer["code"] == 503  # the record does not know the broker by its new one yet
                refused = '"reason":"The record cannot be asked now'
                await until(lambda: refused in (tmp_path / "serve.log").read_text(), "the refusal")
                file.write_text("the-second-token\n")
                serving.send_signal(signal.SIGHUP)
                await until(
                    lambda: events(tmp_path / "serve.log").count("nerve_link_up") >= 2, "the new link"
                )
                await reached(record)
                await say(eric, "work3")
                await until(lambda: heard, "a nudge")
                assert isinstance(heard[0], Nudge)
                assert states == [True]


@pytest.mark.parametrize("spoil", [Path.unlink, lambda file: file.write_text("\n")], ids=["gone", "empty"])
async def test_a_token_that_cannot_be_read_changes_nothing(
    spoil: Callable[[Path], object], database_url: str, tmp_path: Path
) -> None:
    port, file = free_port(), tmp_path / "nerve.token"
    file.write_text("the-records-own\n")
    url = f"http://127.0.0.1:{port}"
    shared = {"READYROOM_NERVE_URL": url, "READYROOM_NERVE_TOKEN_FILE": str(file)}
    async with serving_alone(database_url, tmp_path, **shared) as (record, serving):
        with broker_alone(record.url, port, file, tmp_path / "broker.log") as carrying:
            await reached(record)
            spoil(file)
            for process, log in ((carrying, "broker.log"), (serving, "serve.log")):
                process.send_signal(signal.SIGHUP)
                await until(lambda log=log: "nerve_token_unreadable" in events(tmp_path / log))  # type: ignore[misc]
            assert (await record.stranger.get("/readyz")).body["parts"]["nerve"] == "ok"
            assert "nerve_link_lost" not in events(tmp_path / "serve.log")[-3:]


STARTING = """
import signal, sys
import readyroom.__main__ as entrance

def load(name):
    signal.raise_signal(signal.SIGHUP)
    print(sorted(sys.modules.keys() & {"typer", "uvloop"}))
    sys.exit(0)

entrance.importlib.import_module = load
entrance.run([sys.argv[1]])
"""


@pytest.mark.parametrize("command", ["up", "serve", "broker"])
def test_a_reload_before_the_program_is_loaded_does_not_end_it(command: str) -> None:
    ran = subprocess.run([sys.executable, "-c", STARTING, command], capture_output=True, timeout=60)
    assert (ran.returncode, ran.stdout) == (0, b"[]\n"), ran.stderr


BEGINNING = """
import signal
from deploy.signals import StopAsked, raising_stop

try:
    with raising_stop():
        signal.raise_signal(signal.SIGHUP)
        print("goes on")
        signal.raise_signal(signal.SIGTERM)
except StopAsked:
    print("ended")
"""


def test_a_reload_while_a_program_starts_does_not_end_it_and_a_stop_does() -> None:
    ran = subprocess.run([sys.executable, "-c", BEGINNING], capture_output=True, timeout=60)
    assert (ran.returncode, ran.stdout) == (0, b"goes on\nended\n"), ran.stderr
