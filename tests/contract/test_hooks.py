"""`readyroom hook` as agent programs call it: a process that is quick, silent, and never fails."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from notifier.control.messages import Hook, read_request
from notifier.programs import MODULES
from notifier.programs.claude_setup import hook_settings

HOOK = [sys.executable, "-m", "readyroom", "hook"]
WITHIN = 10.0
"""Seconds: five times what a hook may take, on a busy machine."""
HEAVY = (
    "aiohttp",
    "asyncio",
    "argparse",
    "dataclasses",
    "msgspec",
    "pydantic",
    "structlog",
    "subprocess",
    "typing",
)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A runtime folder in which no notifier runs."""
    with tempfile.TemporaryDirectory(prefix="rr-") as folder:
        yield Path(folder)


def hook(
    folder: Path, *arguments: str, given: bytes = b"", **environ: str
) -> subprocess.CompletedProcess[bytes]:
    keep = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("READYROOM_", "TMUX", "CLAUDE"))
    }
    env = {**keep, "READYROOM_RUNTIME_DIR": str(folder), **environ}
    return subprocess.run(
        [*HOOK, *arguments], input=given, capture_output=True, env=env, timeout=WITHIN, check=False
    )


def silent(done: subprocess.CompletedProcess[bytes]) -> bool:
    return (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@contextmanager
def listening(folder: Path, answer: bytes | None = b'{"ok":true}\n') -> Iterator[list[dict[str, Any]]]:
    """Somebody at the control socket who keeps what is said, and answers always the same, or never."""
    heard: list[dict[str, Any]] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.bind(str(folder / "control.sock"))
        door.listen()

        def listen() -> None:
            talk, _ = door.accept()
            with talk, talk.makefile("rb") as lines:
                for line in lines:
                    heard.append(json.loads(line))
                    if answer is not None:
                        talk.sendall(answer)

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        yield heard
        thread.join(WITHIN)
        assert not thread.is_alive()


@pytest.mark.parametrize("program", MODULES)
@pytest.mark.parametrize("event", ["session-start", "prompt", "tool", "dialog-open", "stop", "session-end"])
def test_without_a_notifier_it_is_silent(folder: Path, program: str, event: str) -> None:
    assert silent(hook(folder, event, "--for", program, given=b"{}", READYROOM_AGENT="desk-agent#1"))


@pytest.mark.parametrize(
    "given",
    [
        b"",
        b"{garbage",
        b"[]",
        b"null",
        b"\xff\xfe\x00",
        b'{"hook_event_name": 7, "cwd": []}',
        b"[" * 200_000,
        b"{" * 9,
    ],
)
def test_any_input_is_survived(folder: Path, given: bytes) -> None:
    assert silent(hook(folder, "stop", "--for", "claude-code", given=given))


def test_an_input_that_never_ends_is_not_waited_for(folder: Path) -> None:
    reading, writing = os.pipe()
    env = {**os.environ, "READYROOM_RUNTIME_DIR": str(folder)}
    try:
        with listening(folder) as heard:
            done = subprocess.run(
                [*HOOK, "prompt", "--for", "claude-code"],
                stdin=reading,
                capture_output=True,
                env=env,
                timeout=WITHIN,
            )
        assert silent(done)
        assert heard[0]["event"] == "prompt"
    finally:
        os.close(reading)
        os.close(writing)


def test_a_closed_input_is_survived(folder: Path) -> None:
    line = f"{' '.join(HOOK)} stop --for claude-code <&-"
    done = subprocess.run(
        ["sh", "-c", line],
        capture_output=True,
        env={**os.environ, "READYROOM_RUNTIME_DIR": str(folder)},
        timeout=WITHIN,
    )
    assert silent(done)


def test_a_notifier_that_hangs_costs_two_seconds_and_nothing_else(folder: Path) -> None:
    with listening(folder, answer=None):
        began = time.monotonic()
        assert silent(hook(folder, "stop", "--for", "claude-code", given=b"{}"))
        assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    "answer", [b"garbage\n", b"[]\n", b'{"text": 7}\n', b'{"ok":false,"detail":"no"}\n', b"\n"]
)
def test_any_answer_is_survived(folder: Path, answer: bytes) -> None:
    with listening(folder, answer=answer):
        assert hook(folder, "session-start", "--for", "claude-code", given=b"{}").returncode == 0


@pytest.mark.parametrize("handle", ["${READYROOM_AGENT}", "${READYROOM_AGENT", "", "  "])
def test_an_unexpanded_handle_is_none(folder: Path, handle: str) -> None:
    with listening(folder) as heard:
        assert silent(hook(folder, "prompt", "--for", "plain", READYROOM_AGENT=handle))
    assert heard[0]["agent"] is None


def test_it_tells_who_and_where(folder: Path) -> None:
    with listening(folder) as heard:
        hook(
            folder,
            "prompt",
            "--for",
            "plain",
            READYROOM_AGENT="desk-agent#1",
            READYROOM_PTY=f"/tmp/run-{os.getppid()}.sock",
            TMUX="/tmp/tmux-0/default,4242,0",
            TMUX_PANE="%7",
        )
    told = heard[0]
    assert (told["op"], told["event"], told["program"], told["agent"]) == (
        "hook",
        "prompt",
        "plain",
        "desk-agent#1",
    )
    assert told["process"]["pid"] == os.getpid()
    assert told["cwd"] == os.getcwd()
    assert told["tmux"] == {"socket": "/tmp/tmux-0/default", "server_pid": 4242, "pane": "%7"}
    assert told["pty_socket"] == f"/tmp/run-{os.getppid()}.sock"


@pytest.mark.parametrize("stale", ["/tmp/run-1.sock", "/tmp/run-1.sock.old", "/tmp/run-.sock"])
def test_a_run_that_it_is_not_below_is_none(folder: Path, stale: str) -> None:
    with listening(folder) as heard:
        hook(folder, "prompt", "--for", "plain", READYROOM_PTY=stale)
    assert [told["pty_socket"] for told in heard] == [None]


def test_the_end_of_a_turn_is_announced_before_the_messages_are_looked_up(folder: Path) -> None:
    with listening(folder) as heard:
        assert silent(hook(folder, "stop", "--for", "claude-code", given=b"{}"))
    assert [told["event"] for told in heard] == ["ending", "stop"]


def test_a_text_is_handed_over_before_it_is_confirmed(folder: Path) -> None:
    with listening(folder, b'{"ok":true,"text":"hello"}\n') as heard:
        done = hook(folder, "stop", "--for", "claude-code", given=b"{}")
    assert json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"] == "hello"
    assert [told["event"] for told in heard] == ["ending", "continue"]


def test_a_text_between_tools_is_handed_over_before_that_is_told(folder: Path) -> None:
    given = b'{"hook_event_name": "PostToolBatch"}'
    with listening(folder, b'{"ok":true,"text":"hello"}\n') as heard:
        done = hook(folder, "tool", "--for", "claude-code", given=given)
    told = json.loads(done.stdout)["hookSpecificOutput"]
    assert told == {"hookEventName": "PostToolBatch", "additionalContext": "hello"}
    assert [(told["event"], told.get("mode"), told.get("handed", False)) for told in heard] == [
        ("tool", "engage", False),
        ("tool", None, True),
    ]


def test_a_text_that_nobody_reads_is_not_confirmed(folder: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    env = {**os.environ, "READYROOM_RUNTIME_DIR": str(folder)}
    with listening(folder, b'{"ok":true,"text":"hello"}\n') as heard:
        done = subprocess.run(
            [*HOOK, "stop", "--for", "claude-code"],
            input=b"{}",
            stdout=writing,
            stderr=subprocess.PIPE,
            env=env,
        )
    os.close(writing)
    assert done.returncode == 0
    assert [told["event"] for told in heard] == ["ending", "stop"]


@pytest.mark.parametrize("arguments", ["--help", "--for emacs stop"])
@pytest.mark.parametrize("outputs", ["1>&3 2>&3", "1>&- 2>&-", "1>/dev/full 2>/dev/full"])
def test_what_nobody_can_read_harms_nobody(folder: Path, arguments: str, outputs: str) -> None:
    if "/dev/full" in outputs and not os.path.exists("/dev/full"):
        pytest.skip("NOT RUN: this system has no /dev/full")
    reading, writing = os.pipe()
    os.close(reading)
    line = f"exec 3>&{writing}; exec {' '.join(HOOK)} {arguments} {outputs}"
    env = {**os.environ, "READYROOM_RUNTIME_DIR": str(folder)}
    done = subprocess.run(["bash", "-c", line], pass_fds=[writing], env=env, timeout=WITHIN)
    os.close(writing)
    assert done.returncode == 0


@pytest.mark.parametrize(
    "arguments", [(), ("stop",), ("stop", "--for", "emacs"), ("stop", "--for"), ("--for", "plain")]
)
def test_wrong_usage_is_explained_and_harms_nobody(folder: Path, arguments: tuple[str, ...]) -> None:
    done = hook(folder, *arguments)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"Usage: readyroom hook EVENT --for PROGRAM" in done.stderr


def test_help_is_shown(folder: Path) -> None:
    done = hook(folder, "--help")
    assert done.returncode == 0
    assert b"READYROOM_HOOK_MODE" in done.stdout


def test_what_was_not_heard_is_left_for_the_next_start(folder: Path) -> None:
    runtime = folder / "run"
    for event in ("prompt", "stop"):
        assert silent(hook(runtime, event, "--for", "plain", READYROOM_AGENT="desk-agent#1"))
    assert [made.stat().st_mode & 0o777 for made in (runtime, runtime / "missed")] == [0o700, 0o700]
    (left,) = (runtime / "missed").iterdir()
    assert json.loads(left.read_text())["event"] == "stop"


def test_nothing_is_left_where_others_could_read_or_plant_it(folder: Path) -> None:
    (folder / "run").mkdir()
    (folder / "run").chmod(0o755)
    assert silent(hook(folder / "run", "stop", "--for", "plain", READYROOM_AGENT="desk-agent#1"))
    assert list((folder / "run").iterdir()) == []


def test_a_folder_whose_name_is_no_text_is_told_of(folder: Path) -> None:
    odd = os.path.join(os.fsencode(folder), b"odd-\xff")
    os.mkdir(odd)
    env = {**os.environ, "READYROOM_RUNTIME_DIR": str(folder / "run"), "READYROOM_AGENT": "desk-agent#1"}
    done = subprocess.run(
        [*HOOK, "stop", "--for", "plain"], cwd=odd, capture_output=True, env=env, timeout=WITHIN
    )
    assert silent(done)
    (left,) = (folder / "run" / "missed").iterdir()
    told = read_request(left.read_bytes())
    assert isinstance(told, Hook)
    assert str(told.cwd).endswith("odd-?")


def test_whoever_answers_where_others_can_enter_is_not_spoken_to(folder: Path) -> None:
    planted = folder / "planted"
    planted.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.bind(str(planted / "control.sock"))
        door.listen()
        door.setblocking(False)
        planted.chmod(0o755)
        for program in MODULES:
            assert silent(hook(planted, "stop", "--for", program, READYROOM_AGENT="desk-agent#1"))
        with pytest.raises(BlockingIOError):
            door.accept()


@pytest.mark.parametrize("program", MODULES)
def test_it_imports_nothing_that_is_slow(folder: Path, program: str) -> None:
    env = {**os.environ, "READYROOM_RUNTIME_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *HOOK[1:], "prompt", "--for", program],
        input=b"{}",
        capture_output=True,
        env=env,
        timeout=WITHIN,
    )
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}
    assert "notifier.hooks.talk" in imported
    assert sorted(imported & set(HEAVY)) == []


def test_the_settings_call_it_by_events_that_it_knows(folder: Path) -> None:
    for native, (group,) in hook_settings("readyroom")["hooks"].items():
        (handler,) = group["hooks"]
        name, *arguments = handler["command"].split()[1:]
        assert name == "hook"
        given = json.dumps({"hook_event_name": native}).encode()
        assert silent(hook(folder, *arguments, given=given))
