"""What Claude Code's words mean, and what its registry shows."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from notifier.programs import find
from notifier.programs.processes import Seen, ancestors, look
from notifier.sessions import State

if TYPE_CHECKING:
    from notifier.programs.base import Program


@pytest.fixture
def claude() -> Program:
    found = find("claude-code")
    assert found is not None
    return found


def seen(pid: int, name: str) -> Seen:
    return Seen(pid, parent=1, started=1, stopped=False, tty=None, name=name)


@pytest.mark.parametrize(
    ("native", "facts", "event"),
    [
        ("SessionStart", {"source": "startup"}, "session-start"),
        ("UserPromptSubmit", {}, "prompt"),
        ("PreToolUse", {"tool_name": "Bash"}, "tool"),
        ("PreToolUse", {"tool_name": "AskUserQuestion"}, "dialog-open"),
        ("PostToolUse", {"tool_name": "AskUserQuestion"}, "tool"),
        ("PermissionRequest", {}, "dialog-open"),
        ("PermissionDenied", {}, "tool"),
        ("Notification", {"notification_type": "permission_prompt"}, "dialog-open"),
        ("Notification", {"notification_type": "idle_prompt"}, None),
        ("Stop", {}, "stop"),
        ("StopFailure", {}, "stop"),
        ("SessionEnd", {"reason": "clear"}, None),
        ("SessionEnd", {"reason": "logout"}, "session-end"),
        ("SubagentStop", {}, None),
        ("Stop", {"agent_id": "sub"}, None),
        ("SomethingNew", {}, None),
    ],
)
def test_native_events(claude: Program, native: str, facts: dict[str, Any], event: str | None) -> None:
    told = claude.understand("stop", {"hook_event_name": native, **facts})
    assert (told.event if told else None) == event


@pytest.mark.parametrize(
    ("said", "watches"),
    [
        ("claude-code_2-1-332_harness", True),
        ("claude-code_2-1-197_agent", True),
        ("claude-code_3-0-0_harness", True),
        ("claude-code_2-1-196_agent", False),
        ("claude-code_1-9-400_agent", False),
        ("", True),
    ],
)
def test_versions_that_watch_files_are_known(claude: Program, said: str, watches: bool) -> None:
    assert claude.watches({"AI_AGENT": said}) is watches


def test_the_plain_program_watches_nothing() -> None:
    plain = find("plain")
    assert plain is not None
    assert not plain.watches({})


@pytest.mark.parametrize("native", ["SessionStart", "CwdChanged"])
def test_it_is_told_what_to_watch_whenever_it_may_have_forgotten(claude: Program, native: str) -> None:
    told = claude.understand("x", {"hook_event_name": native})
    assert told is not None
    assert told.watch
    answer = json.loads(claude.context(told.event, None, watch="/run/flag"))
    assert answer == {"hookSpecificOutput": {"hookEventName": native, "watchPaths": ["/run/flag"]}}


def test_our_own_names_serve_where_the_json_is_missing(claude: Program) -> None:
    told = claude.understand("prompt", {})
    assert told is not None
    assert told.event == "prompt"
    assert claude.understand("lunch", {}) is None


def test_a_compaction_in_a_turn_is_no_rest(claude: Program) -> None:
    told = claude.understand("x", {"hook_event_name": "SessionStart", "source": "compact"})
    assert told is not None
    assert not told.resting


def test_the_process_is_the_one_that_the_program_names(claude: Program) -> None:
    above = [seen(5, "sh"), seen(4, "claude"), seen(3, "zsh"), seen(2, "claude")]
    named = claude.owner({"CLAUDE_PID": "2"}, above)
    assert named is not None
    assert (named[0].pid, named[1]) == (2, True)
    nearest = claude.owner({"CLAUDE_PID": "99"}, above)
    assert nearest is not None
    assert (nearest[0].pid, nearest[1]) == (4, True)
    guess = claude.owner({}, [seen(5, "sh"), seen(4, "python")])
    assert guess is not None
    assert (guess[0].pid, guess[1]) == (4, False)


@pytest.mark.parametrize(
    ("kept", "state"),
    [
        ({"status": "idle", "procStart": "77"}, "idle"),
        ({"status": "shell", "procStart": "77"}, "idle"),
        ({"status": "busy", "procStart": 77}, "busy"),
        ({"status": "waiting", "waitingFor": "permission prompt", "procStart": "77"}, "waiting"),
        ({"status": "dreaming", "procStart": "77"}, "unknown"),
        ({"status": "idle", "procStart": "78"}, None),
        ({"status": "idle"}, None),
        ({"procStart": "77"}, None),
        ([], None),
    ],
)
def test_the_registry_speaks_for_its_own_process_only(
    claude: Program, tmp_path: Path, kept: object, state: State | None
) -> None:
    file = tmp_path / "1.json"
    file.write_text(json.dumps(kept))
    assert claude.sign(str(file), started=77) == state


@pytest.mark.parametrize("text", ["", "{", "null"])
def test_a_registry_that_is_being_written_says_nothing(claude: Program, tmp_path: Path, text: str) -> None:
    file = tmp_path / "1.json"
    file.write_text(text)
    assert claude.sign(str(file), started=77) is None
    assert claude.sign(str(tmp_path / "none.json"), started=77) is None


def test_the_registry_lies_where_the_program_keeps_it(claude: Program) -> None:
    assert claude.registry({"CLAUDE_CONFIG_DIR": "/c"}, 7) == "/c/sessions/7.json"


def test_processes_are_seen() -> None:
    own = look(os.getpid())
    assert own is not None
    assert own.parent == os.getppid()
    assert not own.stopped
    assert [each.pid for each in ancestors(os.getpid())][:2] == [os.getpid(), os.getppid()]
    assert look(2**22 + 1) is None
