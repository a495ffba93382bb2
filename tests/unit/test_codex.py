"""What Codex's hooks mean, and how a session of it is set up by its command line alone."""

from __future__ import annotations

import asyncio
import json
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from notifier.programs.codex import NATIVE, PROGRAM
from notifier.programs.codex_setup import for_session, hook_settings
from notifier.programs.processes import Seen
from notifier.sessions import Session
from notifier.terminals.process import process_of
from notifier.wakers.codex_queue import CodexQueue


@pytest.mark.parametrize(
    ("native", "facts", "event"),
    [
        ("SessionStart", {"source": "startup"}, "session-start"),
        ("UserPromptSubmit", {}, "prompt"),
        ("PreToolUse", {}, "tool"),
        ("PermissionRequest", {}, "dialog-open"),
        ("PostToolUse", {}, "tool"),
        ("Stop", {}, "stop"),
        ("Interrupt", {}, "stop"),
        ("SessionEnd", {}, "session-end"),
        ("Stop", {"agent_id": "sub"}, None),
        ("SubagentStop", {}, None),
        ("SomethingNew", {}, None),
    ],
)
def test_native_events(native: str, facts: dict[str, Any], event: str | None) -> None:
    told = PROGRAM.understand("stop", {"hook_event_name": native, **facts})
    assert (told.event if told else None) == event


def test_our_own_names_serve_where_the_json_is_missing() -> None:
    told = PROGRAM.understand("prompt", {})
    assert told is not None
    assert told.event == "prompt"
    assert PROGRAM.understand("lunch", {}) is None


def test_an_interrupted_turn_hands_nothing_over() -> None:
    told = PROGRAM.understand("stop", {"hook_event_name": "Interrupt"})
    assert told is not None
    assert told.mode == "off"


def test_a_session_that_begins_is_about_to_be_prompted() -> None:
    told = PROGRAM.understand("session-start", {"hook_event_name": "SessionStart"})
    assert told is not None
    assert not told.resting


def test_a_server_without_a_terminal_is_nobodys_session() -> None:
    def codex(tty: str | None) -> Seen:
        return Seen(4, parent=1, started=1, stopped=False, tty=tty, name="codex")

    shell = Seen(5, parent=4, started=1, stopped=False, tty=None, name="sh")
    assert PROGRAM.owner({}, [shell, codex(None)]) is None
    assert PROGRAM.owner({}, [shell]) is None
    found = PROGRAM.owner({}, [shell, codex("/dev/pts/1")])
    assert found is not None
    assert (found[0].pid, found[1]) == (4, True)


def test_a_turn_goes_on_for_a_reason() -> None:
    assert json.loads(PROGRAM.context("ending", "news")) == {"decision": "block", "reason": "news"}


def test_a_session_is_set_up_by_its_command_line_alone() -> None:
    command, server, option, hooks, *rest = for_session(["/bin/codex", "resume", "--last"])
    assert (command, server, option, rest) == ("/bin/codex", "--no-daemon", "-c", ["resume", "--last"])
    assert tomllib.loads(hooks) == {"hooks": hook_settings()}


def test_each_hook_is_trusted_by_its_hash_and_no_other() -> None:
    settings = hook_settings()
    assert set(settings) == {*NATIVE, "state"}
    assert len(settings["state"]) == len(NATIVE)
    assert settings["state"]["/<session-flags>/config.toml:pre_tool_use:0:0"] == {
        "trusted_hash": "sha256:a1d9f476e417d2d1d3eaa0b50fb5fa7c849ff9867af02854ff4238e688f6b086"
    }


async def test_a_program_whose_file_was_replaced_has_no_queue_and_nothing_was_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "codex"
    shutil.copy(str(shutil.which("sleep")), program)
    monkeypatch.setenv("PATH", str(tmp_path))
    child = await asyncio.create_subprocess_exec(str(program), "600")
    try:
        program.unlink()
        session = Session("desk-agent#1", "codex", session_id="one", process=process_of(child.pid))
        wake = await CodexQueue().wake(session, "line")
    finally:
        child.kill()
        await child.wait()
    assert (wake.sent, wake.hold) == (False, "no way to wake it")
