"""The notifier's daemon with a real record, real sockets, real processes."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from notifier.control.client import Control
from notifier.daemon import Daemon, Parts, presence
from notifier.daemon.registry import boot_id
from notifier.errors import AlreadyRunning, UnsafeFolder
from notifier.paths import control_socket
from notifier.programs.processes import look
from tests.contract.boxes import Box, box_of, say, speaker_in
from tests.http.running import Party, Running, running, settings_for, until

ROOM = "api"


@pytest.fixture
async def record(database_url: str, tmp_path: Path) -> AsyncIterator[Running]:
    async with running(settings_for(database_url, tmp_path)) as record:
        yield record


@pytest.fixture
async def box(record: Running) -> AsyncIterator[Box]:
    async with box_of(record) as box:
        await box.started()
        yield box


@pytest.fixture
async def speaker(record: Running) -> AsyncIterator[Party]:
    async with speaker_in(record, ROOM) as speaker:
        yield speaker


async def test_an_idle_session_is_woken_by_a_nudge_and_reads(box: Box, speaker: Party) -> None:
    handle = await box.session(ROOM)
    async with box.resting(handle) as agent:
        await box.until_state(handle, "idle")
        await until(_hears(box), "the nerve is heard")
        await say(speaker, ROOM, "the build is green")
        await until(lambda: agent.read() == ["the build is green"], "it was read")
        await box.until_row(handle, state="idle", unread=0, hold=None)
        assert (await box.row(handle))["last_wake"]["outcome"] == "read"
    assert box.wakes == [handle]
    await box.until_state(handle, "offline")


@pytest.mark.long
async def test_a_message_in_a_turn_wakes_at_its_end(box: Box, speaker: Party) -> None:
    handle = await box.session(ROOM)
    async with box.resting(handle) as agent:
        await agent.hook("prompt")
        await say(speaker, ROOM, "later")
        await box.until_row(handle, state="busy", unread=1, hold="busy")
        await box.until_state(handle, "busy")
        assert box.wakes == []
        await agent.hook("stop")
        await until(lambda: agent.read() == ["later"], "it was read")


async def test_a_dialog_holds_until_it_closes(box: Box, speaker: Party) -> None:
    handle = await box.session(ROOM)
    async with box.resting(handle) as agent:
        await agent.hook("prompt")
        await agent.hook("dialog-open")
        await say(speaker, ROOM, "later")
        await box.until_row(handle, state="waiting", dialog=True, unread=1, hold="dialog open")
        await box.until_state(handle, "waiting")
        await agent.hook("dialog-close")
        await agent.hook("stop")
        await until(lambda: agent.read() == ["later"], "it was read")
        assert len(box.wakes) == 1


@pytest.mark.long
async def test_a_message_at_any_moment_of_a_turns_end_is_read(box: Box, speaker: Party) -> None:
    handle = await box.session(ROOM)
    async with box.resting(handle) as agent:
        for number in range(6):
            await agent.hook("prompt")
            ending = asyncio.create_task(agent.hook("stop"))
            for _ in range(number):
                await asyncio.sleep(0)
            await say(speaker, ROOM, str(number))
            await ending
            await until(lambda number=number: str(number) in agent.read(), f"{number} was read")
    assert agent.read() == [str(number) for number in range(6)]


@pytest.mark.long
async def test_ten_messages_at_once_are_one_wake(box: Box, speaker: Party) -> None:
    handle = await box.session(ROOM)
    async with box.resting(handle) as agent:
        await agent.hook("prompt")
        await asyncio.gather(*(say(speaker, ROOM, str(number)) for number in range(10)))
        await agent.hook("stop")
        await until(lambda: len(agent.read()) == 10, "all were read")
        assert len(box.wakes) == 1


async def test_a_session_is_woken_by_what_it_says_itself_and_by_what_is_urgent_to_everyone(
    box: Box, speaker: Party
) -> None:
    handle, picky = await box.session(ROOM), await box.session(ROOM)
    async with box.resting(handle), box.resting(picky, READYROOM_WAKE_ON="addressed, ops=all") as agent:
        assert (await box.row(picky))["wake_on"] == "addressed, ops=all"
        await say(speaker, ROOM, "for all of you")
        await until(lambda: box.wakes == [handle], "the other one is woken")
        await box.until_row(picky, unread=1, hold="nothing unread that may wake it")
        await say(speaker, ROOM, "for you", to=picky)
        await until(lambda: agent.read() == ["for all of you", "for you"], "it was read")
        await broadcast(speaker, "no hurry")
        await box.until_row(picky, unread=1, hold="nothing unread that may wake it")
        await broadcast(speaker, "hurry", urgent=True)
        await until(lambda: agent.read()[2:] == ["no hurry", "hurry"], "it was read")


async def broadcast(speaker: Party, body: str, **more: object) -> None:
    said = await speaker.post("/v1/messages", {"to": "everyone", "body": body, **more})
    assert said.status == 201, said


async def test_rules_that_cannot_be_read_are_those_of_the_box(box: Box, speaker: Party) -> None:
    handle = await box.session(ROOM)
    async with box.resting(handle, READYROOM_WAKE_ON="sometimes") as agent:
        assert (await box.row(handle))["wake_on"] is None
        await say(speaker, ROOM, "hello")
        await until(lambda: agent.read() == ["hello"], "it was read")


async def test_a_person_is_told_when_nothing_helps_and_the_sender_hears_of_it(record: Running) -> None:
    async with (
        box_of(record, proof=0.2, back_off=(0.2,)) as box,
        speaker_in(record, ROOM) as speaker,
    ):
        box.deaf = box.person.away = True
        await box.started()
        handle = await box.session(ROOM)
        async with box.resting(handle):
            message = await say(speaker, ROOM, "hello")
            await box.until_row(handle, hold="a person is needed")
            await until(
                lambda: why_unread(speaker, message, "held: a person is needed"), "the sender hears it"
            )
            assert box.person.told == []
            box.person.away = False
            await box.until_row(handle, hold="a person was told")
            await until(
                lambda: why_unread(speaker, message, "held: a person was told"), "the sender hears it"
            )
            assert box.person.told == [handle]


async def why_unread(speaker: Party, message: int, why: str) -> bool:
    (reader,) = (await speaker.get(f"/v1/messages/{message}")).body["receipt"]["unread_by"]
    return bool(reader["why"] == why)


async def test_a_person_is_told_beside_every_wake_where_that_is_asked_for(record: Running) -> None:
    async with box_of(record) as box, speaker_in(record, ROOM) as speaker:
        box.bell = True
        await box.started()
        handle = await box.session(ROOM)
        async with box.resting(handle) as agent:
            await say(speaker, ROOM, "hello")
            await until(lambda: agent.read() == ["hello"], "it was read")
            await until(lambda: box.person.told == [handle], "the person was told")


async def test_without_the_nerve_the_sweep_wakes(database_url: str, tmp_path: Path) -> None:
    settings = settings_for(database_url, tmp_path, nerve_url="http://127.0.0.1:9")
    async with (
        running(settings) as record,
        box_of(record, sweep=0.5) as box,
        speaker_in(record, ROOM) as speaker,
    ):
        await box.started()
        handle = await box.session(ROOM)
        async with box.resting(handle) as agent:
            await say(speaker, ROOM, "slowly")
            await until(lambda: agent.read() == ["slowly"], "it was read")


@pytest.mark.long
async def test_the_daemon_starts_before_its_record(database_url: str, tmp_path: Path) -> None:
    settings = settings_for(database_url, tmp_path)
    async with running(settings) as record, box_of(record) as box, speaker_in(record, ROOM) as speaker:
        handle = await box.session(ROOM)
        await say(speaker, ROOM, "early")
        gate = Gate(record.url)
        box.start(await gate.open(shut=True))
        await until(lambda: os.path.exists(control_socket(box.folder)), "the notifier answers")
        async with box.resting(handle) as agent:
            await box.until_row(handle, state="idle")
            assert (await box.ask(op="status"))["record"]["trouble"]
            gate.shut = False
            await until(lambda: agent.read() == ["early"], "it was read")
        await box.stop()
        await gate.close()


async def test_a_session_without_a_handle_gets_one_for_its_process(box: Box, record: Running) -> None:
    async with box.agent("${READYROOM_AGENT}") as agent:
        answer = await agent.hook("session-start")
        assert "You are desk-agent#1" in answer["out"]
        await agent.hook("prompt")
        await agent.hook("session-start")
        await box.until_row("desk-agent#1", state="idle", pid=agent.child.pid)
        async with box.agent(None) as other:
            assert "You are desk-agent#2" in (await other.hook("session-start"))["out"]
    rows = (await box.party.get("/v1/agents")).body["agents"]
    assert sorted(row["agent"] for row in rows if row["kind"] == "session") == [
        "desk-agent#1",
        "desk-agent#2",
    ]


@pytest.mark.parametrize("handle", ["lab-agent#1", "Desk-Agent#1"])
async def test_a_handle_that_is_not_this_boxs_is_told_and_not_taken_in(box: Box, handle: str) -> None:
    async with box.agent(handle) as agent:
        told = (await agent.hook("session-start"))["out"]
        assert f"READYROOM_AGENT names {handle}, which is no session of this box" in told
        assert (await agent.hook("prompt"))["out"] == ""
        assert await box.row(handle) == {}


async def test_a_session_whose_first_check_in_was_not_heard_keeps_its_handle_in_another_folder(
    box: Box, record: Running
) -> None:
    async with box.agent(None) as agent:
        seen = look(agent.child.pid)
        assert seen is not None
        key = {"Idempotency-Key": f"plain:{boot_id()}:{seen.pid}:{seen.started}"}
        first = await box.party.post("/v1/checkin", {"harness": "plain", "cwd": "/before"}, headers=key)
        assert "You are desk-agent#1" in (await agent.hook("session-start"))["out"]
    assert first.body["agent"] == "desk-agent#1"


@pytest.mark.long
async def test_a_restart_knows_the_sessions_again(box: Box, speaker: Party) -> None:
    handle, other = await box.session(ROOM), await box.session(ROOM)
    async with box.resting(handle) as agent, box.resting(other) as gone:
        await box.stop()
        await say(speaker, ROOM, "while you were away")
        gone.child.kill()
        await gone.child.wait()
        await box.started()
        await until(lambda: agent.read() == ["while you were away"], "it was read")
        await box.until_state(other, "offline")
        assert await box.row(other) == {}


async def test_what_hooks_said_while_no_notifier_ran_is_heard_at_the_next_start(
    box: Box, speaker: Party
) -> None:
    handle = await box.session(ROOM)
    async with box.resting(handle) as agent:
        await box.stop()
        assert await agent.hook("prompt") == {
            "line": "hook prompt --for plain",
            "status": 0,
            "out": "",
            "err": "",
        }
        await say(speaker, ROOM, "not now")
        await box.started()
        await box.until_row(handle, state="busy", unread=1, hold="busy")
        assert box.wakes == []
        assert os.listdir(os.path.join(box.folder, "missed")) == []


async def test_a_guess_that_was_left_behind_makes_no_session(box: Box) -> None:
    async with box.agent(None) as agent:
        await box.stop()
        await agent.hook("prompt")
        assert len(os.listdir(os.path.join(box.folder, "missed"))) == 1
        await box.started()
        await until(lambda: os.listdir(os.path.join(box.folder, "missed")) == [], "it was taken")
        handle = await box.session(ROOM)
        async with box.resting(handle):
            rows = (await box.ask(op="status"))["sessions"]
            assert [row["agent"] for row in rows] == [handle]


async def test_a_stopped_process_is_suspended_and_left_alone(box: Box, speaker: Party) -> None:
    handle = await box.session(ROOM)
    async with box.resting(handle) as agent:
        agent.child.send_signal(signal.SIGSTOP)
        await box.until_row(handle, state="suspended")
        await say(speaker, ROOM, "wake up")
        await box.until_row(handle, unread=1, hold="suspended")
        assert box.wakes == []
        agent.child.send_signal(signal.SIGCONT)
        await until(lambda: agent.read() == ["wake up"], "it was read")


async def test_another_process_with_the_same_handle_is_shown_and_changes_nothing(box: Box) -> None:
    handle = await box.session(ROOM)
    async with box.resting(handle) as agent, box.agent(handle) as second:
        await second.hook("prompt")
        await box.until_row(handle, state="idle", pid=agent.child.pid, second_process=second.child.pid)


@pytest.mark.long
async def test_two_live_processes_on_one_handle_are_told_to_the_record_as_long_as_both_live(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "HEARTBEAT_SECONDS", 0.2)
    settings = settings_for(database_url, tmp_path, presence_stale_seconds=2)
    async with running(settings) as record, box_of(record) as box:
        await box.started()
        handle = await box.session(ROOM)

        async def is_doubled() -> bool:
            rows = (await box.party.get("/v1/agents")).body["agents"]
            return any(row["agent"] == handle and row["doubled"] for row in rows)

        async def is_not_doubled() -> bool:
            return not await is_doubled()

        async with box.resting(handle):
            async with box.agent(handle) as second:
                assert not await is_doubled()
                await second.hook("prompt")
                await until(is_doubled, "the record shows it")
                noticed = await noticed_at(database_url, handle)

                async def noticed_again() -> bool:
                    return (await noticed_at(database_url, handle) - noticed).total_seconds() > 2

                await until(noticed_again, "the notifier goes on telling")
                assert await is_doubled()
            await until(is_not_doubled, "one of them lives")
            await box.until_row(handle, second_process=None)


async def noticed_at(database_url: str, handle: str) -> dt.datetime:
    connection = await asyncpg.connect(database_url)
    try:
        at: dt.datetime = await connection.fetchval("SELECT doubled_at FROM agents WHERE handle = $1", handle)
        return at
    finally:
        await connection.close()


@pytest.mark.long
async def test_a_launched_session_is_left_alone_until_its_hooks_speak(box: Box, speaker: Party) -> None:
    handle = await box.session(ROOM)
    async with box.agent(handle) as agent:
        seen = look(agent.child.pid)
        assert seen is not None
        launched = {
            "agent": handle,
            "program": "plain",
            "process": {"pid": agent.child.pid, "started": seen.started},
        }
        assert (await box.ask(op="launched", **launched))["ok"]
        await say(speaker, ROOM, "hello")
        await box.until_row(handle, state="starting", unread=1, hold="its hooks have not spoken yet")
        assert box.wakes == []
        await agent.hook("session-start")
        await until(lambda: agent.read() == ["hello"], "it was read")
        assert (await box.ask(op="launched", **launched))["ok"]
        await box.until_row(handle, state="idle")
        assert (await box.ask(op="ended", agent=handle))["ok"]
        await box.until_row(handle, state="offline")


async def test_one_notifier_for_each_user(box: Box) -> None:
    parts = Parts(url=box.record.url, token="t", folder=box.folder, wakers=())
    with pytest.raises(AlreadyRunning, match=rf"process {os.getpid()}.*READYROOM_RUNTIME_DIR"):
        await Daemon(parts).run()
    assert (await box.ask(op="status"))["ok"]


async def test_a_folder_that_others_can_enter_is_refused(record: Running, tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o755)
    parts = Parts(url=record.url, token="t", folder=str(tmp_path), wakers=())
    with pytest.raises(UnsafeFolder, match="READYROOM_RUNTIME_DIR"):
        await Daemon(parts).run()


@pytest.mark.parametrize(
    "line",
    [
        b"garbage",
        b"[]",
        b"{}",
        b'{"op":"reboot"}',
        b'{"op":"hook","event":"x","program":"plain"}',
        b"\xff",
        b'{"op":"status","more":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
async def test_a_bad_request_is_answered_in_plain_words(box: Box, line: bytes) -> None:
    reader, writer = await asyncio.open_unix_connection(control_socket(box.folder))
    writer.write(line + b"\n" + b'{"op":"status"}\n')
    refused, status = json.loads(await reader.readline()), json.loads(await reader.readline())
    assert (refused["ok"], status["ok"]) == (False, True)
    assert "no request" in refused["detail"]
    writer.close()
    await writer.wait_closed()


async def test_a_disk_that_takes_nothing_costs_no_wake(box: Box, speaker: Party) -> None:
    os.mkdir(os.path.join(box.folder, "sessions.json.new"))
    handle = await box.session(ROOM)
    async with box.resting(await box.session(ROOM)) as gone:
        pass
    await box.until_row(str(gone.handle), state="offline")
    async with box.resting(handle) as agent:
        await box.until_row(handle, state="idle")
        await say(speaker, ROOM, "one")
        await until(lambda: agent.read() == ["one"], "it was woken and read")


async def test_the_door_is_for_this_user_alone(box: Box) -> None:
    assert os.stat(box.folder).st_mode & 0o777 == 0o700
    with Control(control_socket(box.folder)):
        pass


def _hears(box: Box):  # type: ignore[no-untyped-def]
    async def hears() -> bool:
        return (await box.ask(op="status"))["nerve"]["trouble"] is None

    return hears


class Gate:
    """Stands before a record and may be shut: then it hangs up on everybody."""

    def __init__(self, url: str) -> None:
        self._port = int(url.rpartition(":")[2])
        self.shut = False
        self._server: asyncio.Server | None = None

    async def open(self, *, shut: bool) -> str:
        self.shut = shut
        self._server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.shut:
            writer.close()
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._port)
        await asyncio.gather(_pour(reader, far_writer), _pour(far_reader, writer), return_exceptions=True)


async def _pour(source: asyncio.StreamReader, into: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(1 << 16):
            into.write(data)
            await into.drain()
    finally:
        into.close()
