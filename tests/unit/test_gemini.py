"""What Gemini CLI's hooks and its transcript mean, and what is to be written for it."""

from __future__ import annotations

import json
import os
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from notifier.daemon.handover import handed_text
from notifier.programs.gemini import NATIVE, PROGRAM
from notifier.programs.gemini_setup import RULES, extension_files, hook_settings
from notifier.programs.processes import Seen

EXTENSION = Path(__file__).parents[2] / "gemini-extension"


@pytest.mark.parametrize(
    ("native", "facts", "event"),
    [
        ("SessionStart", {"source": "startup"}, "session-start"),
        ("BeforeAgent", {"prompt": "good morning"}, "prompt"),
        ("BeforeTool", {}, "tool"),
        ("AfterTool", {}, "tool"),
        ("Notification", {"notification_type": "ToolPermission"}, "dialog-open"),
        ("Notification", {"notification_type": "SomethingNew"}, None),
        ("AfterAgent", {}, "stop"),
        ("PreCompress", {"trigger": "auto"}, None),
        ("SessionEnd", {"reason": "clear"}, None),
        ("SessionEnd", {"reason": "exit"}, "session-end"),
        ("BeforeModel", {}, None),
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


def test_what_keeps_a_turn_going_is_no_new_prompt() -> None:
    news = {"id": 1, "room": "api", "sender": "desk-agent#1", "text": "news"}
    text = handed_text("desk-agent#2", [news], when="at the end of the turn")
    assert PROGRAM.understand("prompt", {"hook_event_name": "BeforeAgent", "prompt": text}) is None


@pytest.mark.parametrize(("answer", "mode"), [("[no response text]", "off"), ("done", None)])
def test_a_cancelled_turn_hands_nothing_over(answer: str, mode: str | None) -> None:
    told = PROGRAM.understand("stop", {"hook_event_name": "AfterAgent", "prompt_response": answer})
    assert told is not None
    assert told.mode == mode


@pytest.mark.parametrize(("tool", "read"), [("mcp_readyroom_poll_convs", True), ("run_shell_command", False)])
def test_the_answer_of_our_poll_is_known(tool: str, read: bool) -> None:
    told = PROGRAM.understand("tool", {"hook_event_name": "AfterTool", "tool_name": tool})
    assert told is not None
    assert (told.read, told.boundary, told.lone) == (read, True, True)


def test_a_session_is_the_node_that_started_the_other_one() -> None:
    def node(pid: int, parent: int, name: str = "node", tty: str | None = "/dev/pts/1") -> Seen:
        return Seen(pid, parent=parent, started=1, stopped=False, tty=tty, name=name)

    shell = node(9, 8, "bash")
    assert PROGRAM.owner({}, []) is None
    for above, session in (
        ([node(8, 7), node(7, 6), shell], 7),
        ([node(8, 7), node(7, 6, "bash")], 8),
        ([node(8, 7), node(7, 6, tty=None)], 8),
    ):
        found = PROGRAM.owner({}, [shell, *above])
        assert found is not None
        assert (found[0].pid, found[1]) == (session, True)
    found = PROGRAM.owner({}, [node(8, 7, tty=None)])
    assert found is not None
    assert not found[1]


CANCELLED = '{"id":"c","timestamp":"2026-12-01T15:50:13.579Z","type":"info","content":"Request cancelled."}'
RETOLD = '{"id":"u","timestamp":"2026-12-01T15:50:13.600Z","type":"user","content":[{"text":"good morning"}]}'
ASKED = (
    '{"id":"v","timestamp":"2026-12-01T15:50:18.073Z","type":"user","content":[{"text":"TOOL touch made"}]}'
)
ALL_OF_IT = f'{{"$set":{{"messages":[{ASKED}]}}}}'


@pytest.mark.parametrize(
    ("lines", "sign"),
    [
        ([], None),
        ([ASKED], None),
        ([RETOLD, CANCELLED], "idle"),
        ([CANCELLED, RETOLD, ALL_OF_IT], "idle"),
        ([CANCELLED, RETOLD, ASKED], None),
        ([CANCELLED, ASKED, CANCELLED.replace("15:50:13", "15:50:20")], "idle"),
        ([ASKED.replace("touch made", CANCELLED.replace('"', r"\""))], None),
    ],
)
def test_a_session_is_idle_where_it_notes_that_a_request_was_cancelled(
    tmp_path: Path, lines: list[str], sign: str | None
) -> None:
    transcript = tmp_path / "session.jsonl"
    transcript.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    told = PROGRAM.understand("stop", {"hook_event_name": "AfterAgent", "transcript_path": str(transcript)})
    assert told is not None
    assert told.registry is not None
    assert PROGRAM.sign(told.registry, started=1) == sign


def test_without_a_transcript_there_is_no_sign(tmp_path: Path) -> None:
    assert PROGRAM.sign(str(tmp_path / "none"), started=1) is None
    os.mkfifo(tmp_path / "pipe")
    assert PROGRAM.sign(str(tmp_path / "pipe"), started=1) is None


def test_a_turn_goes_on_for_a_reason_and_a_tool_brings_context() -> None:
    assert json.loads(PROGRAM.context("ending", "news")) == {"decision": "block", "reason": "news"}
    assert json.loads(PROGRAM.context("tool", "news"))["hookSpecificOutput"] == {
        "hookEventName": "AfterTool",
        "additionalContext": "news",
    }


def test_the_extension_in_the_repository_is_what_is_to_be_written() -> None:
    kept = {
        str(file.relative_to(EXTENSION)): file.read_text(encoding="utf-8")
        for file in EXTENSION.rglob("*")
        if file.is_file()
    }
    assert kept == extension_files()
    assert json.loads(kept["gemini-extension.json"])["version"] == version("readyroom")


def test_every_event_has_a_hook_that_says_it_in_our_words() -> None:
    hooks = hook_settings("/opt/readyroom")["hooks"]
    assert set(hooks) == set(NATIVE)
    assert hooks["AfterAgent"][0]["hooks"][0]["command"] == "/opt/readyroom hook stop --for gemini"


def test_the_rules_are_toml() -> None:
    assert {rule["decision"] for rule in tomllib.loads(RULES)["rule"]} == {"allow"}
