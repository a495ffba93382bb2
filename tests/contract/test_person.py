"""The rung that types nothing: a bell in the human's terminal, a notification on their desktop."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from notifier.sessions import Session
from notifier.terminals import desktop
from notifier.terminals.base import Hold
from notifier.terminals.door import ring_through
from notifier.wakers import Person, Wake
from tests.contract.terminals import BARE_RUN, DEADLINE, Human, until

pytestmark = pytest.mark.long

linux = pytest.mark.skipif(sys.platform == "darwin", reason="NOT RUN: macOS has another program for it")


@pytest.fixture
def socket(tmp_path: Path) -> str:
    return str(tmp_path / "run.sock")


@pytest.fixture
def humans() -> Iterator[list[Human]]:
    all_: list[Human] = []
    yield all_
    for human in all_:
        human.close()


def before(humans: list[Human], socket: str, script: str) -> Human:
    """A human before a `readyroom run` of a shell script."""
    human = Human([sys.executable, BARE_RUN, socket, "sh", "-c", script])
    humans.append(human)
    return human


async def rung(socket: str) -> None:
    """Ring as soon as the program is quiet."""
    end = time.monotonic() + DEADLINE
    while (hold := await ring_through(socket)) is not None:
        assert time.monotonic() < end, hold


async def test_a_bell_is_heard_by_the_human_and_not_by_the_program(
    socket: str, humans: list[Human], tmp_path: Path
) -> None:
    typed = tmp_path / "typed"
    human = before(humans, socket, f"stty raw -echo; echo ready; cat > {typed}")
    human.sees(b"ready")
    await rung(socket)
    human.sees(b"\a")
    human.type(b"x")
    until(lambda: typed.read_bytes() == b"x", "what was typed, and nothing else")
    assert human.shown.count(b"\a") == 1


@pytest.mark.parametrize("half", [r"\033]0;half", r"\033[3", r"\303"])
async def test_no_bell_is_rung_within_a_sequence_or_a_character(
    socket: str, humans: list[Human], half: str
) -> None:
    human = before(
        humans, socket, f"stty -echo; echo ready; printf '{half}'; read line; printf 'A\\007done'; read line"
    )
    human.sees(b"ready")
    human.sees(half.encode().decode("unicode_escape").encode("latin-1"))
    end = time.monotonic() + 2 * 0.3
    while time.monotonic() < end:
        assert await ring_through(socket) == "output still moving"
    human.type(b"\r")
    human.sees(b"done")
    assert human.shown.count(b"\a") == 1
    await rung(socket)
    until(lambda: human.shown.count(b"\a") == 2, "the bell")


async def test_without_a_terminal_there_is_no_bell(socket: str) -> None:
    command = [sys.executable, str(BARE_RUN), socket, "sh", "-c", "echo ready; cat"]
    pipe = asyncio.subprocess.PIPE
    run = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    assert run.stdout is not None
    assert await run.stdout.readline() == b"ready\r\n"
    assert await ring_through(socket) == "nobody could be told"
    await run.communicate(b"")
    assert await ring_through(socket) == "process gone"


@pytest.fixture
def notify_send(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A desktop's program for notifications that keeps what it is given, and ends as the file `how` says."""
    program = tmp_path / "bin" / "notify-send"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/given\n. {tmp_path}/how\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
    return tmp_path


def session(pty_socket: str | None = None) -> Session:
    return Session("desk-agent#1", "claude-code", cwd="/secret", pty_socket=pty_socket)


@linux
async def test_a_notification_names_the_session_and_nothing_else(notify_send: Path) -> None:
    (notify_send / "how").write_text("exit 0")
    assert Person().fits(session())
    assert await Person().wake(session(), "/catchup") == Wake(sent=True)
    given = (notify_send / "given").read_text().splitlines()
    assert given == ["--app-name=Readyroom", "--", "Readyroom", "desk-agent#1 has messages to read."]


@linux
@pytest.mark.parametrize("how", ["exit 1", "exec sleep 1000"])
async def test_a_notification_that_failed_is_none(
    notify_send: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(desktop, "_WITHIN_SECONDS", 0.3)
    (notify_send / "how").write_text(how)
    hold: Hold = "nobody could be told"
    assert await Person().wake(session(), "/catchup") == Wake(sent=False, hold=hold)


@linux
def test_without_a_desktop_nobody_there_can_be_told(
    notify_send: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(notify_send))
    assert not Person().fits(session())
    (notify_send / "bus").touch()
    assert Person().fits(session())
    monkeypatch.setenv("PATH", str(notify_send))
    assert not Person().fits(session())
