"""Only the process that checked in, in front on its own terminal, is typed to."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from notifier.sessions import Process
from tests.contract.terminals import (
    BARE_RUN,
    Human,
    Record,
    needs_tmux,
    program_of,
    tui,
    until,
)
from tests.gates.rigs import LINE, Count, PtyRig, TmuxRig, standing


def test_pty_a_suspended_program_gets_nothing(pty_rig: Callable[..., PtyRig], count: Count) -> None:
    rig = pty_rig()
    rig.human.sees(b"> ")
    process = program_of(rig.record)
    os.kill(process.pid, signal.SIGSTOP)
    until(lambda: standing(process) == "T", "the suspension")
    hold = count.settled(rig.waker, rig.session)
    os.kill(process.pid, signal.SIGCONT)
    rig.human.type(b"!")
    until(lambda: rig.record.bytes.endswith(b"!"), "the sentinel")
    count.zero("pty", "suspended", hold, rig.record.bytes[:-1])
    assert hold == "suspended"


def test_pty_another_program_in_front_gets_nothing(
    pty_rig: Callable[..., PtyRig], tmp_path: Path, count: Count
) -> None:
    record = Record(tmp_path / "record")
    inner = shlex.join(tui(record))
    rig = pty_rig(command=["bash", "--norc", "--noprofile", "-i", "-c", f"set -m; {inner}; true"])
    rig.human.sees(b"> ")
    hold = count.settled(rig.waker, rig.session)
    rig.human.type(b"!")
    until(lambda: record.bytes.endswith(b"!"), "the sentinel")
    count.zero("pty", "another program in front", hold, record.bytes[:-1])
    assert hold == "not in front"


def test_pty_a_run_that_a_session_elsewhere_has_inherited_gets_nothing(
    pty_rig: Callable[..., PtyRig], tmp_path: Path, count: Count
) -> None:
    """A window that was opened from within a run, say: what is in front of the run is no part of it."""
    elsewhere = Record(tmp_path / "elsewhere")
    rig = pty_rig()
    rig.human.sees(b"> ")
    other = Human(tui(elsewhere))
    try:
        other.sees(b"> ")
        rig.process = program_of(elsewhere)
        hold = count.settled(rig.waker, rig.session)
        rig.human.type(b"!")
        until(lambda: rig.record.bytes.endswith(b"!"), "the sentinel")
        stray = rig.record.bytes[:-1] + elsewhere.bytes
    finally:
        other.close()
    count.zero("pty", "the session runs elsewhere", hold, stray)
    assert hold == "not in front"


def test_pty_an_editor_on_the_alternate_screen_gets_nothing(
    pty_rig: Callable[..., PtyRig], tmp_path: Path, count: Count
) -> None:
    record = Record(tmp_path / "record")
    editor = shlex.join(tui(record, "--alternate", "--prompt", "editor> "))
    rig = pty_rig(command=["sh", "-c", f"read key; {editor}; true"])
    rig.human.type(b"e\r")
    rig.human.sees(b"editor> ")
    hold = count.settled(rig.waker, rig.session)
    rig.human.type(b"!")
    until(lambda: record.bytes.endswith(b"!"), "the sentinel")
    count.zero("pty", "an editor that the program opened", hold, record.bytes[:-1])
    assert hold == "another screen"


def test_pty_a_full_screen_program_can_be_woken(pty_rig: Callable[..., PtyRig], count: Count) -> None:
    rig = pty_rig("--alternate")
    rig.human.sees(b"> ")
    hold = count.settled(rig.waker, rig.session)
    rig.human.sees(b"submitted: /catchup")
    count.typed("pty", "a full-screen program", hold, rig.record.bytes)


def test_pty_a_run_that_is_gone_takes_nothing(pty_rig: Callable[..., PtyRig], count: Count) -> None:
    rig = pty_rig()
    rig.human.sees(b"> ")
    process = program_of(rig.record)
    os.kill(rig.human.pid, signal.SIGKILL)
    until(lambda: standing(process) == "", "the hang-up of the program")
    count.zero("pty", "readyroom run killed", hold := count.wake(rig.waker, rig.session), rig.record.bytes)
    assert hold == "process gone"


def test_pty_the_shell_after_an_exit_gets_nothing(
    pty_rig: Callable[..., PtyRig], tmp_path: Path, count: Count
) -> None:
    record = Record(tmp_path / "record")
    run = shlex.join([sys.executable, BARE_RUN, str(tmp_path / "run.sock"), *tui(record)])
    shell = ["bash", "--norc", "--noprofile", "-c", f"{run}; echo the shell; read line; echo got $line"]
    rig = pty_rig(around=shell)
    rig.human.sees(b"> ")
    rig.human.type(b"\x04")
    rig.human.sees(b"the shell")
    hold = count.settled(rig.waker, rig.session)
    rig.human.type(b"!\n")
    rig.human.sees(b"got !")
    stray = record.bytes.removesuffix(b"\x04") + rig.human.shown.partition(b"the shell\r\n")[2]
    count.zero("pty", "exited to a shell", hold, stray.removesuffix(b"!\r\ngot !\r\n"))
    assert hold == "process gone"


@needs_tmux
def test_tmux_a_suspended_program_and_the_shell_above_it_get_nothing(
    tmux_rig: Callable[..., TmuxRig], count: Count
) -> None:
    rig = tmux_rig(shell=True)
    rig.keys("C-z", literal=False)
    rig.server.shows(rig.pane, "Stopped")
    hold = count.settled(rig.waker, rig.session)
    assert hold == "suspended"
    rig.keys("fg >/dev/null")
    rig.keys("Enter", literal=False)
    until(lambda: standing(rig.process) == "S", "fg")
    rig.keys("!")
    until(lambda: rig.record.bytes.endswith(b"!"), "the sentinel")
    stray = rig.record.bytes.removeprefix(b"\x1a").removesuffix(b"!")
    assert LINE not in rig.server.screen(rig.pane)
    count.zero("tmux", "suspended (Ctrl-Z), a shell in front", hold, stray)


@needs_tmux
def test_tmux_the_shell_after_an_exit_gets_nothing(tmux_rig: Callable[..., TmuxRig], count: Count) -> None:
    rig = tmux_rig(shell=True)
    rig.keys("C-d", literal=False)
    until(lambda: standing(rig.process) == "", "the exit")
    hold = count.settled(rig.waker, rig.session)
    rig.keys("echo sent''inel")
    rig.keys("Enter", literal=False)
    rig.server.shows(rig.pane, "sentinel")
    assert LINE not in rig.server.screen(rig.pane)
    count.zero("tmux", "exited to a shell", hold, rig.record.bytes.removesuffix(b"\x04"))
    assert hold == "process gone"


@needs_tmux
def test_tmux_a_later_process_with_the_same_number_gets_nothing(
    tmux_rig: Callable[..., TmuxRig], count: Count
) -> None:
    rig = tmux_rig()
    rig.process = Process(rig.process.pid, rig.process.started - 1)
    hold = count.settled(rig.waker, rig.session)
    count.zero("tmux", "the pid was given to another process", hold, rig.stray("!", b""))
    assert hold == "process gone"


@needs_tmux
def test_tmux_a_process_of_another_terminal_is_not_in_front(
    tmux_rig: Callable[..., TmuxRig], count: Count
) -> None:
    rig, other = tmux_rig(), tmux_rig(name="two")
    rig.process = other.process
    hold = count.settled(rig.waker, rig.session)
    count.zero("tmux", "the process is on another terminal", hold, rig.stray("!", b""))
    assert hold == "not in front"


@needs_tmux
@pytest.mark.parametrize("program", ["vim", "less", "cat"])
def test_tmux_another_program_in_front_gets_nothing(
    tmux_rig: Callable[..., TmuxRig], tmp_path: Path, count: Count, program: str
) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    text = tmp_path / "text"
    text.write_text("words\n" * 50)
    rig = tmux_rig(shell=True)
    rig.keys("C-z", literal=False)
    rig.server.shows(rig.pane, "Stopped")
    rig.keys(f"{program} {text if program != 'cat' else ''}")
    rig.keys("Enter", literal=False)
    until(
        lambda: rig.server.ask("display-message", "-p", "-t", rig.pane, "#{pane_current_command}") == program,
        program,
    )
    hold = count.settled(rig.waker, rig.session)
    assert LINE not in rig.server.screen(rig.pane)
    count.zero("tmux", f"{program} in front", hold, rig.record.bytes.removeprefix(b"\x1a"))
    assert hold == "suspended"
    assert text.read_text() == "words\n" * 50


@needs_tmux
def test_tmux_an_editor_that_the_program_itself_opened_gets_nothing(
    tmux_rig: Callable[..., TmuxRig], count: Count
) -> None:
    rig = tmux_rig("--alternate")
    hold = count.settled(rig.waker, rig.session)
    count.zero("tmux", "an editor that the program opened", hold, rig.stray("!", b""))
    assert hold == "another screen"
