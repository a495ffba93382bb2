"""With a gate closed, not one byte of a wake reaches a program. Counted at the program's end of the terminal.

Each test ends with a sentinel that the human types: whatever a wake had sent would have come before it.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from notifier.sessions import Process, Session, TmuxPane
from notifier.terminals.base import closed_gate
from notifier.terminals.outer import Outer
from notifier.terminals.process import hold_of, standing_of
from notifier.terminals.relay import Relay
from notifier.terminals.tmux import TmuxTerminal
from notifier.wakers.base import Waker
from notifier.wakers.keystrokes import Pty, Tmux
from tests.contract.terminals import (
    BARE_RUN,
    DEADLINE,
    Human,
    Record,
    TmuxServer,
    needs_tmux,
    program_of,
    tui,
    until,
    until_async,
)

LINE = "/catchup"
TYPED = b"\x1b[200~/catchup\x1b[201~\r"
MINUTES = 600.0


class Count:
    """What became of a wake at one gate, for the table at the end."""

    rows: list[tuple[str, str, str, int]]

    def __init__(self) -> None:
        self.rows = []

    def zero(self, rung: str, gate: str, hold: str | None, stray: bytes) -> None:
        """Note what reached a program, and insist that it was nothing."""
        self.rows.append((rung, gate, hold or "sent elsewhere", len(stray)))
        assert stray == b"", f"{gate}: {stray!r} reached the program"

    def typed(self, rung: str, gate: str, hold: str | None, bytes_: bytes) -> None:
        """Note what reached a program, and insist that it was one line and one Enter."""
        self.rows.append((rung, gate, hold or "sent", len(bytes_)))
        assert (hold, bytes_) == (None, TYPED)


@pytest.fixture(scope="module")
def count(request: pytest.FixtureRequest) -> Iterator[Count]:
    counted = Count()
    yield counted
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print(f"\n{'rung':6} {'gate':44} {'answer':20} bytes")
        for rung, gate, answer, size in sorted(counted.rows):
            print(f"{rung:6} {gate:44} {answer:20} {size:5}")


class PtyRig:
    """A human at a `readyroom run` with the scripted program in it."""

    def __init__(self, folder: Path, *options: str, command: list[str] | None = None) -> None:
        self.record = Record(folder / "record")
        self.path = str(folder / "run.sock")
        self.human = Human([sys.executable, BARE_RUN, self.path, *(command or tui(self.record, *options))])
        self.session = Session(agent="work-agent#1", program="plain", pty_socket=self.path)
        until(lambda: os.path.exists(self.path), "the socket of the run")

    def wake(self) -> str | None:
        return wake(Pty(), self.session)


class TmuxRig:
    """The scripted program in a pane of a tmux server, started from a shell or alone."""

    def __init__(self, folder: Path, *options: str, shell: bool = False) -> None:
        self.record = Record(folder / "record")
        self.server = TmuxServer(folder / "tmux.sock")
        command = shlex.join(tui(self.record, *options))
        if shell:
            self.pane = self.server.new("work", "exec bash --norc --noprofile")
            self.keys(command)
            self.keys("Enter", literal=False)
            self.process = program_of(self.record)
        else:
            self.pane = self.server.new("work", f"exec {command}")
            self.process = self.server.process(self.pane)
        until(
            lambda: self.server.screen(self.pane).endswith("\n>") or self.server.screen(self.pane) == ">",
            "idle",
        )
        self.tmux = self.server.pane(self.pane)
        self.waker = Tmux()

    @property
    def session(self) -> Session:
        return Session(agent="work-agent#1", program="plain", process=self.process, tmux=self.tmux)

    def keys(self, keys: str, *, literal: bool = True, pane: str | None = None) -> None:
        self.server.ask("send-keys", "-t", pane or self.pane, *(["-l"] if literal else []), keys)

    def wake(self) -> str | None:
        return wake(self.waker, self.session)

    def stray(self, sentinel: str, known: bytes) -> bytes:
        """What reached the program beyond `known` before a key that is pressed now."""
        self.keys(sentinel)
        until(lambda: self.record.bytes.endswith(sentinel.encode()), "the sentinel")
        return self.record.bytes[len(known) : -len(sentinel)]


def wake(waker: Waker, session: Session) -> str | None:
    return asyncio.run(waker.wake(session, LINE)).hold


def wake_when_open(waker: Waker, session: Session) -> str | None:
    """The first answer that is no matter of seconds."""
    answers: list[str | None] = []

    def settled() -> bool:
        answers.append(wake(waker, session))
        return answers[-1] not in ("recent key", "output still moving")

    until(settled, f"an answer other than {answers[-1:]}")
    return answers[-1]


@pytest.fixture
def pty_rig(tmp_path: Path) -> Iterator[Callable[..., PtyRig]]:
    rigs: list[PtyRig] = []

    def make(*options: str, command: list[str] | None = None) -> PtyRig:
        rigs.append(PtyRig(tmp_path, *options, command=command))
        return rigs[-1]

    yield make
    for rig in rigs:
        rig.human.close()


@pytest.fixture
def tmux_rig(tmp_path: Path) -> Iterator[Callable[..., TmuxRig]]:
    rigs: list[TmuxRig] = []

    def make(*options: str, shell: bool = False, name: str = "one") -> TmuxRig:
        folder = tmp_path / name
        folder.mkdir()
        rigs.append(TmuxRig(folder, *options, shell=shell))
        return rigs[-1]

    yield make
    for rig in rigs:
        rig.server.kill()


# Every gate open


def test_pty_with_every_gate_open_the_program_gets_the_line_and_one_enter(
    pty_rig: Callable[..., PtyRig], count: Count
) -> None:
    rig = pty_rig()
    rig.human.sees(b"> ")
    hold = wake_when_open(Pty(), rig.session)
    rig.human.sees(b"submitted: /catchup")
    count.typed("pty", "every gate open", hold, rig.record.bytes)


def test_pty_a_program_that_did_not_ask_for_brackets_gets_none(pty_rig: Callable[..., PtyRig]) -> None:
    rig = pty_rig(command=["sh", "-c", "echo ready; exec cat"])
    rig.human.sees(b"ready")
    assert wake_when_open(Pty(), rig.session) is None
    rig.human.sees(b"/catchup\r\n/catchup\r\n")
    assert b"200~" not in rig.human.shown


@needs_tmux
def test_tmux_with_every_gate_open_the_program_gets_the_line_and_one_enter(
    tmux_rig: Callable[..., TmuxRig], count: Count
) -> None:
    rig = tmux_rig()
    hold = wake_when_open(rig.waker, rig.session)
    rig.server.shows(rig.pane, "submitted: /catchup")
    count.typed("tmux", "every gate open", hold, rig.record.bytes)


# Drafts and keys


def test_pty_a_draft_is_never_glued_to(pty_rig: Callable[..., PtyRig], count: Count) -> None:
    rig = pty_rig()
    rig.human.sees(b"> ")
    rig.human.type(b"half a line")
    rig.human.sees(b"half a line")
    count.zero("pty", "a key pressed just now", rig.wake(), rig.record.bytes.removeprefix(b"half a line"))
    hold = wake_when_open(Pty(), rig.session)
    rig.human.type(b"!")
    rig.human.sees(b"half a line!")
    count.zero("pty", "a draft", hold, rig.record.bytes.removeprefix(b"half a line").removesuffix(b"!"))
    assert hold == "draft"
    rig.human.type(b"\x7f" * 12)
    until(lambda: rig.record.bytes.endswith(b"\x7f" * 12), "the draft erased")
    before = len(rig.record.bytes)
    hold = wake_when_open(Pty(), rig.session)
    rig.human.sees(b"submitted: /catchup")
    count.typed("pty", "the draft erased again", hold, rig.record.bytes[before:])


async def test_pty_a_draft_of_ten_minutes_ago_is_still_a_draft(tmp_path: Path, count: Count) -> None:
    record = Record(tmp_path / "record")
    now = [1000.0]
    human, keyboard = os.openpty()
    screen = os.open(os.devnull, os.O_WRONLY)
    relay = Relay(tui(record), environ=os.environ, outer=Outer(keyboard, screen), clock=lambda: now[0])
    running = asyncio.create_task(relay.run())
    await until_async(lambda: relay.terminal.output.bracketed, "the prompt")
    os.write(human, b"draft")
    await until_async(lambda: record.bytes == b"draft", "the draft")
    now[0] += MINUTES
    look = await relay.terminal.look()
    assert look.key_age is not None
    assert look.key_age >= MINUTES
    os.write(human, b"\x04")
    assert await asyncio.wait_for(running, DEADLINE) == 0
    count.zero("pty", "a draft, ten minutes old", closed_gate(look), record.bytes[5:-1])
    assert closed_gate(look) == "draft"
    for fd in (human, keyboard, screen):
        os.close(fd)


def test_pty_terminal_replies_focus_and_mouse_close_no_gate(
    pty_rig: Callable[..., PtyRig], count: Count
) -> None:
    rig = pty_rig()
    rig.human.sees(b"> ")
    reports = b"\x1b[I\x1b[<0;3;4M\x1b[<0;3;4m\x1b[?62;22c\x1b]11;rgb:0000/0000/0000\x1b\\"
    rig.human.type(reports)
    until(lambda: rig.record.bytes == reports, "the reports")
    hold = wake_when_open(Pty(), rig.session)
    # The program takes reports for text; that is its own affair.
    until(lambda: rig.record.bytes.endswith(b"\r"), "Enter")
    count.typed("pty", "only reports, focus, mouse", hold, rig.record.bytes[len(reports) :])


def test_pty_a_key_between_paste_and_enter_keeps_enter_back(
    pty_rig: Callable[..., PtyRig], count: Count
) -> None:
    rig = pty_rig()
    rig.human.sees(b"> ")

    async def race() -> str | None:
        waking = asyncio.create_task(Pty().wake(rig.session, LINE))
        while not waking.done():
            if b"/catchup" in rig.record.bytes:
                rig.human.type(b"x")
                break
            await asyncio.sleep(0.001)
        return (await waking).hold

    hold: str | None = "output still moving"
    while hold == "output still moving" and b"x" not in rig.record.bytes:
        hold = asyncio.run(race())
    assert hold == "recent key"
    assert rig.record.bytes == b"\x1b[200~/catchup\x1b[201~x"
    hold = wake_when_open(Pty(), rig.session)
    rig.human.type(b"y")
    until(lambda: rig.record.bytes.endswith(b"y"), "the sentinel")
    count.zero("pty", "text of an earlier wake still there", hold, rig.record.bytes[21:-1])
    assert hold == "draft"


@needs_tmux
def test_tmux_a_draft_is_never_glued_to(tmux_rig: Callable[..., TmuxRig], count: Count) -> None:
    rig = tmux_rig()
    rig.keys("half a line")
    rig.server.shows(rig.pane, "half a line")
    hold = wake_when_open(rig.waker, rig.session)
    count.zero("tmux", "a draft", hold, rig.stray("!", b"half a line"))
    assert hold == "draft"
    rig.server.ask("send-keys", "-t", rig.pane, "-N", "12", "BSpace")
    until(lambda: rig.server.screen(rig.pane) == ">", "the draft erased")
    before = len(rig.record.bytes)
    hold = wake_when_open(rig.waker, rig.session)
    rig.server.shows(rig.pane, "submitted: /catchup")
    count.typed("tmux", "the draft erased again", hold, rig.record.bytes[before:])


@needs_tmux
def test_tmux_a_draft_of_blanks_is_not_taken_for_an_empty_prompt(
    tmux_rig: Callable[..., TmuxRig], count: Count
) -> None:
    rig = tmux_rig()
    rig.keys("   ")
    until(lambda: rig.record.bytes == b"   ", "the blanks")
    hold = wake_when_open(rig.waker, rig.session)
    count.zero("tmux", "a draft of blanks", hold, rig.stray("!", b"   "))


@needs_tmux
def test_tmux_a_key_of_a_human_who_is_looking_at_the_pane_holds(
    tmux_rig: Callable[..., TmuxRig], count: Count
) -> None:
    rig = tmux_rig()
    human = Human(["tmux", "-S", rig.server.socket, "attach"], environ={"TMUX": ""})
    try:
        human.sees(b">")
        human.type(b"a\x7f")
        until(lambda: rig.record.bytes == b"a\x7f", "the keys")
        hold = rig.wake()
        count.zero("tmux", "a key pressed just now", hold, rig.stray("!", b"a\x7f"))
        assert hold == "recent key"
    finally:
        human.close()


# The process


def test_pty_a_suspended_program_gets_nothing(pty_rig: Callable[..., PtyRig], count: Count) -> None:
    rig = pty_rig()
    rig.human.sees(b"> ")
    process = program_of(rig.record)
    os.kill(process.pid, signal.SIGSTOP)
    until(lambda: standing(process) == "T", "the suspension")
    hold = wake_when_open(Pty(), rig.session)
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
    hold = wake_when_open(Pty(), rig.session)
    rig.human.type(b"!")
    until(lambda: record.bytes.endswith(b"!"), "the sentinel")
    count.zero("pty", "another program in front", hold, record.bytes[:-1])
    assert hold == "not in front"


def test_pty_an_editor_on_the_alternate_screen_gets_nothing(
    pty_rig: Callable[..., PtyRig], tmp_path: Path, count: Count
) -> None:
    record = Record(tmp_path / "record")
    editor = shlex.join(tui(record, "--alternate", "--prompt", "editor> "))
    rig = pty_rig(command=["sh", "-c", f"read key; {editor}; true"])
    rig.human.type(b"e\r")
    rig.human.sees(b"editor> ")
    hold = wake_when_open(Pty(), rig.session)
    rig.human.type(b"!")
    until(lambda: record.bytes.endswith(b"!"), "the sentinel")
    count.zero("pty", "an editor that the program opened", hold, record.bytes[:-1])
    assert hold == "another screen"


def test_pty_a_full_screen_program_can_be_woken(pty_rig: Callable[..., PtyRig], count: Count) -> None:
    rig = pty_rig("--alternate")
    rig.human.sees(b"> ")
    hold = wake_when_open(Pty(), rig.session)
    rig.human.sees(b"submitted: /catchup")
    count.typed("pty", "a full-screen program", hold, rig.record.bytes)


def test_pty_a_run_that_is_gone_takes_nothing(pty_rig: Callable[..., PtyRig], count: Count) -> None:
    rig = pty_rig()
    rig.human.sees(b"> ")
    process = program_of(rig.record)
    os.kill(rig.human.pid, signal.SIGKILL)
    until(lambda: standing(process) == "", "the hang-up of the program")
    count.zero("pty", "readyroom run killed", hold := rig.wake(), rig.record.bytes)
    assert hold == "process gone"


@needs_tmux
def test_tmux_a_suspended_program_and_the_shell_above_it_get_nothing(
    tmux_rig: Callable[..., TmuxRig], count: Count
) -> None:
    rig = tmux_rig(shell=True)
    rig.keys("C-z", literal=False)
    rig.server.shows(rig.pane, "Stopped")
    hold = wake_when_open(rig.waker, rig.session)
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
    hold = wake_when_open(rig.waker, rig.session)
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
    hold = wake_when_open(rig.waker, rig.session)
    count.zero("tmux", "the pid was given to another process", hold, rig.stray("!", b""))
    assert hold == "process gone"


@needs_tmux
def test_tmux_a_process_of_another_terminal_is_not_in_front(
    tmux_rig: Callable[..., TmuxRig], count: Count
) -> None:
    rig, other = tmux_rig(), tmux_rig(name="two")
    rig.process = other.process
    hold = wake_when_open(rig.waker, rig.session)
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
    hold = wake_when_open(rig.waker, rig.session)
    assert LINE not in rig.server.screen(rig.pane)
    count.zero("tmux", f"{program} in front", hold, rig.record.bytes.removeprefix(b"\x1a"))
    assert hold == "suspended"
    assert text.read_text() == "words\n" * 50


@needs_tmux
def test_tmux_an_editor_that_the_program_itself_opened_gets_nothing(
    tmux_rig: Callable[..., TmuxRig], count: Count
) -> None:
    rig = tmux_rig("--alternate")
    hold = wake_when_open(rig.waker, rig.session)
    count.zero("tmux", "an editor that the program opened", hold, rig.stray("!", b""))
    assert hold == "another screen"


# The pane


@needs_tmux
def test_tmux_a_pane_that_is_gone_and_one_that_is_dead_take_nothing(
    tmux_rig: Callable[..., TmuxRig], count: Count
) -> None:
    rig = tmux_rig()
    rig.server.ask("set-option", "-w", "-t", rig.pane, "remain-on-exit", "on")
    rig.keys("C-d", literal=False)
    # Not its notice, which tmux writes once it has reaped the program: sometimes only when another one ends.
    dead = ("display-message", "-p", "-t", rig.pane, "#{pane_dead}")
    until(lambda: rig.server.ask(*dead) == "1", "the end of the pane's program")
    count.zero("tmux", "the pane is dead", hold := rig.wake(), rig.record.bytes.removesuffix(b"\x04"))
    assert hold == "pane gone"
    rig.server.new("keeps the server", "exec cat")
    rig.server.ask("kill-pane", "-t", rig.pane)
    count.zero("tmux", "the pane is gone", hold := rig.wake(), rig.record.bytes.removesuffix(b"\x04"))
    assert hold == "pane gone"


@needs_tmux
def test_tmux_after_a_restart_of_the_server_the_same_pane_number_gets_nothing(
    tmux_rig: Callable[..., TmuxRig], count: Count
) -> None:
    rig = tmux_rig()
    rig.server.kill()
    until(lambda: standing(rig.process) == "", "the end of the first program")
    assert rig.wake() == "pane gone"
    rig.record.path.unlink(missing_ok=True)
    assert rig.server.new("new", f"exec {shlex.join(tui(rig.record))}") == rig.pane
    until(lambda: rig.server.screen(rig.pane) == ">", "the second program")
    old, rig.process = rig.process, rig.server.process(rig.pane)
    hold = wake_when_open(rig.waker, rig.session)
    count.zero("tmux", "the server was restarted: pane number", hold, rig.stray("!", b""))
    assert hold == "pane gone"
    rig.tmux, rig.process = rig.server.pane(rig.pane), old
    hold = wake_when_open(Tmux(), rig.session)
    count.zero("tmux", "the server was restarted: process", hold, rig.stray("!", b"!"))
    assert hold == "process gone"


@needs_tmux
def test_tmux_copy_mode_and_switched_off_input_hold(tmux_rig: Callable[..., TmuxRig], count: Count) -> None:
    rig = tmux_rig()
    rig.server.ask("copy-mode", "-t", rig.pane)
    hold = wake_when_open(rig.waker, rig.session)
    assert rig.server.ask("display-message", "-p", "-t", rig.pane, "#{pane_in_mode}") == "1"
    rig.server.ask("send-keys", "-t", rig.pane, "-X", "cancel")
    count.zero("tmux", "copy mode", hold, rig.stray("!", b""))
    assert hold == "copy mode"
    rig.server.ask("send-keys", "-t", rig.pane, "BSpace")
    until(lambda: rig.server.screen(rig.pane) == ">", "an empty composer")
    rig.server.ask("select-pane", "-d", "-t", rig.pane)
    hold = wake_when_open(rig.waker, rig.session)
    rig.server.ask("select-pane", "-e", "-t", rig.pane)
    count.zero("tmux", "input switched off", hold, rig.stray("!", b"!\x7f"))
    assert hold == "input off"


@needs_tmux
def test_tmux_synchronised_panes_hold_and_no_neighbour_gets_anything(
    tmux_rig: Callable[..., TmuxRig], tmp_path: Path, count: Count
) -> None:
    rig = tmux_rig()
    neighbour = Record(tmp_path / "neighbour")
    rig.server.ask("split-window", "-t", rig.pane, f"exec {shlex.join(tui(neighbour))}")
    rig.server.ask("set-option", "-w", "-t", rig.pane, "synchronize-panes", "on")
    hold = wake_when_open(rig.waker, rig.session)
    assert hold == "synchronised panes"
    rig.server.ask("set-option", "-w", "-t", rig.pane, "synchronize-panes", "off")
    count.zero("tmux", "synchronised panes", hold, rig.stray("!", b"") + neighbour.bytes)


@needs_tmux
def test_tmux_the_pane_that_has_the_focus_gets_nothing_meant_for_another(
    tmux_rig: Callable[..., TmuxRig], tmp_path: Path, count: Count
) -> None:
    rig = tmux_rig()
    focused = Record(tmp_path / "focused")
    pane = rig.server.ask(
        *("split-window", "-t", rig.pane, "-P", "-F", "#{pane_id}", f"exec {shlex.join(tui(focused))}")
    )
    until(lambda: rig.server.screen(pane) == ">", "the neighbour")
    hold = wake_when_open(rig.waker, rig.session)
    rig.server.shows(rig.pane, "submitted: /catchup")
    count.typed("tmux", "another pane has the focus: ours", hold, rig.record.bytes)
    rig.keys("!", pane=pane)
    until(lambda: focused.bytes.endswith(b"!"), "the sentinel")
    count.zero("tmux", "another pane has the focus: that one", hold, focused.bytes[:-1])


@needs_tmux
def test_tmux_a_session_whose_name_begins_alike_gets_nothing(
    tmux_rig: Callable[..., TmuxRig], tmp_path: Path, count: Count
) -> None:
    rig = tmux_rig()
    alike = Record(tmp_path / "alike")
    pane = rig.server.new("work-2", f"exec {shlex.join(tui(alike))}")
    until(lambda: rig.server.screen(pane) == ">", "the namesake")
    rig.server.ask("kill-session", "-t", "=work")
    hold = wake_when_open(rig.waker, rig.session)
    rig.keys("!", pane=pane)
    until(lambda: alike.bytes.endswith(b"!"), "the sentinel")
    count.zero("tmux", "only a session of a longer name is left", hold, alike.bytes[:-1])
    assert hold == "pane gone"


@needs_tmux
def test_tmux_a_gate_that_closes_between_look_and_paste_holds(
    tmux_rig: Callable[..., TmuxRig], count: Count
) -> None:
    rig = tmux_rig()
    terminal = TmuxTerminal(rig.tmux, process=rig.process, program="plain")

    async def race() -> str | None:
        assert closed_gate(await terminal.look()) is None
        rig.server.ask("copy-mode", "-t", rig.pane)
        return await terminal.paste(LINE)

    hold = asyncio.run(race())
    rig.server.ask("send-keys", "-t", rig.pane, "-X", "cancel")
    count.zero("tmux", "copy mode, entered in the last moment", hold, rig.stray("!", b""))
    assert rig.server.ask("list-buffers") == ""


@needs_tmux
def test_tmux_a_server_that_does_not_exist_is_a_gone_pane(tmp_path: Path, count: Count) -> None:
    session = Session(
        agent="work-agent#1",
        program="plain",
        process=Process(os.getpid(), 1),
        tmux=TmuxPane(str(tmp_path / "none.sock"), 1, "%0"),
    )
    assert wake(Tmux(), session) == "pane gone"
    assert not (tmp_path / "none.sock").exists()


def standing(process: Process) -> str:
    """The kernel's letter for it; empty when it is gone."""
    if hold_of(process, tty=None) == "process gone":
        return ""
    found = standing_of(process.pid)
    return "" if found is None else {"R": "S"}.get(found.state, found.state)
