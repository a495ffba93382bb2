"""A wake by the session's flag: shown, asked about by the program's own hook, and never twice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from notifier.hooks.entry import BEGIN_TURN
from notifier.paths import flag_file
from notifier.programs import find
from notifier.programs.processes import look
from notifier.sessions import Process, Session
from notifier.terminals.process import life_hold_of, process_of
from notifier.wakers import Flags, Person, Wake, ladder
from notifier.wakers.flags import sweep
from notifier.wakers.native import Native
from tests.contract.boxes import Agent, Box, box_of, say, speaker_in
from tests.http.running import Party, Running, running, settings_for, until

pytestmark = pytest.mark.long

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


@pytest.fixture
async def agent(box: Box) -> AsyncIterator[Agent]:
    """A session that watches its flag and waits for input."""
    handle = await box.session(ROOM)
    async with box.agent(handle) as agent:
        told = await native(agent, "SessionStart")
        assert watched(told) == flag(box, agent)
        await box.until_row(handle, state="idle", rung="native")
        yield agent


async def native(agent: Agent, event: str, **given: object) -> dict[str, Any]:
    """Have the agent call a hook as Claude Code does."""
    return await agent.hook("x", "claude-code", hook_event_name=event, **given)


async def sees(agent: Agent, path: str) -> dict[str, Any]:
    """Have the agent call the hook of a changed file."""
    return await native(agent, "FileChanged", file_path=path)


def watched(told: dict[str, Any]) -> str:
    (path,) = json.loads(told["out"])["hookSpecificOutput"]["watchPaths"]
    return str(path)


def flag(box: Box, agent: Agent) -> str:
    seen = look(agent.child.pid)
    assert seen is not None
    return flag_file(box.folder, seen.pid, seen.started)


async def shown(box: Box, agent: Agent) -> str:
    """The path of the agent's flag, once it has been changed."""
    path = flag(box, agent)
    await until(lambda: bool(content(path)), "the flag is shown")
    return path


def content(path: str) -> str:
    return Path(path).read_text(encoding="ascii")


async def test_a_flag_that_is_shown_and_seen_begins_a_turn_that_reads(
    box: Box, speaker: Party, agent: Agent
) -> None:
    await say(speaker, ROOM, "the build is green")
    seen = await sees(agent, await shown(box, agent))
    program = find("claude-code")
    assert program is not None
    assert (seen["status"], seen["out"], seen["err"]) == (BEGIN_TURN, "", program.wake)
    assert "build" not in seen["err"]
    await box.until_row(agent.handle or "", last_wake={"rung": "native", "outcome": "sent", "reason": None})
    await agent.do("/catchup")
    assert agent.read() == ["the build is green"]
    await box.until_row(agent.handle or "", unread=0)
    assert (await box.row(agent.handle or ""))["last_wake"]["outcome"] == "read"
    assert box.wakes == []


async def test_a_flag_wakes_once(box: Box, speaker: Party, agent: Agent) -> None:
    assert (await sees(agent, flag(box, agent)))["status"] == 0
    await say(speaker, ROOM, "news")
    path = await shown(box, agent)
    assert [(await sees(agent, path))["status"] for _ in range(2)] == [BEGIN_TURN, 0]


async def test_other_files_are_nothing_to_it(box: Box, speaker: Party, agent: Agent) -> None:
    await say(speaker, ROOM, "news")
    path = await shown(box, agent)
    assert (await sees(agent, "/etc/passwd"))["status"] == 0
    assert (await sees(agent, os.path.join(os.path.dirname(path), "1-1")))["status"] == 0
    assert (await sees(agent, path))["status"] == BEGIN_TURN


async def test_a_flag_that_nobody_sees_is_withdrawn_and_the_next_rung_wakes(
    box: Box, speaker: Party, agent: Agent
) -> None:
    await say(speaker, ROOM, "news")
    path = await shown(box, agent)
    await until(lambda: agent.read() == ["news"], "it was woken by the next rung")
    assert box.wakes == [agent.handle]
    assert (await sees(agent, path))["status"] == 0


async def test_a_session_that_has_begun_to_work_is_not_woken(box: Box, speaker: Party, agent: Agent) -> None:
    await say(speaker, ROOM, "news")
    path = await shown(box, agent)
    await native(agent, "UserPromptSubmit")
    assert (await sees(agent, path))["status"] == 0
    await box.until_row(agent.handle or "", state="busy", last_wake=None)


async def test_a_dialog_is_not_even_shown_a_flag(box: Box, speaker: Party, agent: Agent) -> None:
    await native(agent, "PermissionRequest")
    await say(speaker, ROOM, "news")
    await box.until_row(agent.handle or "", state="waiting", hold="dialog open", unread=1)
    assert not content(flag(box, agent))


async def test_a_suspended_session_is_shown_nothing(box: Box, speaker: Party, agent: Agent) -> None:
    agent.child.send_signal(signal.SIGSTOP)
    await say(speaker, ROOM, "news")
    await box.until_row(agent.handle or "", hold="suspended", unread=1)
    assert not content(flag(box, agent))
    agent.child.send_signal(signal.SIGCONT)
    assert (await sees(agent, await shown(box, agent)))["status"] == BEGIN_TURN


async def test_a_process_that_is_suspended_or_gone_is_shown_nothing(tmp_path: Path) -> None:
    child = await asyncio.create_subprocess_exec("sleep", "600")
    native = Native(str(tmp_path), Flags())
    session = Session("desk-agent#1", "claude-code", process=process_of(child.pid), watches=True)
    try:
        child.send_signal(signal.SIGSTOP)
        await until(lambda: life_hold_of(process_of(child.pid) or Process(0, 0)) == "suspended", "it stops")
        assert await native.wake(session, "/catchup") == Wake(sent=False, hold="suspended")
    finally:
        child.kill()
        await child.wait()
    assert await native.wake(session, "/catchup") == Wake(sent=False, hold="process gone")
    assert os.listdir(tmp_path) == []


async def test_it_is_told_again_what_to_watch_when_its_folder_changes(box: Box, agent: Agent) -> None:
    assert watched(await native(agent, "CwdChanged")) == flag(box, agent)


async def test_only_this_user_can_reach_a_flag(box: Box, agent: Agent) -> None:
    path = flag(box, agent)
    assert os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o700
    assert os.stat(path).st_mode & 0o777 == 0o600


async def test_without_a_notifier_it_is_watched_too_and_a_change_wakes_nobody(record: Running) -> None:
    async with box_of(record) as box, box.agent("desk-agent#1") as agent:
        assert watched(await native(agent, "SessionStart")) == flag(box, agent)
        assert (await sees(agent, flag(box, agent)))["status"] == 0


async def test_flags_of_those_who_are_gone_are_removed(box: Box, agent: Agent) -> None:
    path = flag(box, agent)
    for name in ("1-1", f"{agent.child.pid}-1"):
        os.close(os.open(os.path.join(os.path.dirname(path), name), os.O_CREAT))
    async with box.resting(await box.session(ROOM)):
        await until(lambda: os.listdir(os.path.dirname(path)) == [os.path.basename(path)], "they are removed")


def test_where_there_are_no_flags_none_are_removed(tmp_path: Path) -> None:
    sweep(str(tmp_path))


@pytest.mark.parametrize(
    ("only", "rungs"),
    [
        (None, ["native", "native", "pty", "tmux", "bell"]),
        ("native", ["native", "native", "bell"]),
        ("keystrokes", ["pty", "tmux", "bell"]),
        ("bell", ["bell"]),
    ],
)
def test_the_setting_names_what_may_be_used(only: Any, rungs: list[str]) -> None:
    assert [waker.rung for waker in ladder("/run", Flags(), Person(), only=only)] == rungs


async def test_where_no_flag_can_be_written_the_next_rung_wakes(
    box: Box, speaker: Party, agent: Agent
) -> None:
    path = flag(box, agent)
    os.unlink(path)
    os.mkdir(path)
    await say(speaker, ROOM, "news")
    await until(lambda: agent.read() == ["news"], "it was woken by the next rung")
