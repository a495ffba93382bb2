"""What a human writes is never touched. With every gate open, one line is typed and nothing else.

Each test ends with a sentinel that the human types: whatever a wake had sent would have come before it.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from notifier.terminals import tmux
from notifier.terminals.outer import Outer
from notifier.terminals.relay import Relay
from notifier.wakers.keystrokes import Pty
from tests.contract.terminals import (
    DEADLINE,
    Human,
    Record,
    needs_tmux,
    tui,
    until,
    until_async,
)
from tests.gates.rigs import LINE, Count, PtyRig, TmuxRig

pytestmark = pytest.mark.long

MINUTES = 600.0


def test_pty_with_every_gate_open_the_program_gets_the_line_and_one_enter(
    pty_rig: Callable[..., PtyRig], count: Count
) -> None:
    rig = pty_rig()
    rig.human.sees(b"> ")
    hold = count.settled(rig.waker, rig.session)
    rig.human.sees(b"submitted: /catchup")
    count.typed("pty", "every gate open", hold, rig.record.bytes)


def test_pty_a_program_that_did_not_ask_for_brackets_gets_none(
    pty_rig: Callable[..., PtyRig], count: Count
) -> None:
    rig = pty_rig(command=["sh", "-c", "echo ready; exec cat"])
    rig.human.sees(b"ready")
    assert count.settled(rig.waker, rig.session) is None
    rig.human.sees(b"/catchup\r\n/catchup\r\n")
    assert b"200~" not in rig.human.shown


@needs_tmux
def test_tmux_with_every_gate_open_the_program_gets_the_line_and_one_enter(
    tmux_rig: Callable[..., TmuxRig], count: Count
) -> None:
    rig = tmux_rig()
    hold = count.settled(rig.waker, rig.session)
    rig.server.shows(rig.pane, "submitted: /catchup")
    count.typed("tmux", "every gate open", hold, rig.record.bytes)


def test_pty_a_draft_is_never_glued_to(pty_rig: Callable[..., PtyRig], count: Count) -> None:
    rig = pty_rig()
    rig.human.sees(b"> ")
    rig.human.type(b"half a line")
    rig.human.sees(b"half a line")
    count.zero(
        "pty",
        "a key pressed just now",
        count.wake(rig.waker, rig.session),
        rig.record.bytes.removeprefix(b"half a line"),
    )
    hold = count.settled(rig.waker, rig.session)
    rig.human.type(b"!")
    rig.human.sees(b"half a line!")
    count.zero("pty", "a draft", hold, rig.record.bytes.removeprefix(b"half a line").removesuffix(b"!"))
    assert hold == "draft"
    rig.human.type(b"\x7f" * 12)
    until(lambda: rig.record.bytes.endswith(b"\x7f" * 12), "the draft erased")
    before = len(rig.record.bytes)
    hold = count.settled(rig.waker, rig.session)
    rig.human.sees(b"submitted: /catchup")
    count.typed("pty", "the draft erased again", hold, rig.record.bytes[before:])


@dataclass
class AtRelay:
    """A relay in this process, whose clock is the test's."""

    relay: Relay
    human: int
    """Where the human's keys go in."""
    now: float = 1000.0


@pytest.fixture
async def at_relay(tmp_path: Path) -> AsyncIterator[AtRelay]:
    human, keyboard = os.openpty()
    screen = os.open(os.devnull, os.O_WRONLY)
    command = tui(Record(tmp_path / "record"))
    relay = Relay(command, environ=os.environ, outer=Outer(keyboard, screen), clock=lambda: at.now)
    at = AtRelay(relay, human)
    running = asyncio.create_task(relay.run())
    await until_async(lambda: relay.terminal.output.bracketed, "the prompt")
    yield at
    os.write(human, b"\x04")
    assert await asyncio.wait_for(running, DEADLINE) == 0
    for fd in (human, keyboard, screen):
        os.close(fd)


async def test_pty_a_draft_of_ten_minutes_ago_is_still_a_draft(
    at_relay: AtRelay, tmp_path: Path, count: Count
) -> None:
    record = Record(tmp_path / "record")
    os.write(at_relay.human, b"draft")
    await until_async(lambda: record.bytes == b"draft", "the draft")
    at_relay.now += MINUTES
    look = await at_relay.relay.terminal.look()
    assert look.key_age is not None
    assert look.key_age >= MINUTES
    hold = await count.type(at_relay.relay.terminal)
    os.write(at_relay.human, b"!")
    await until_async(lambda: record.bytes.endswith(b"!"), "the sentinel")
    count.zero("pty", "a draft, ten minutes old", hold, record.bytes[5:-1])
    assert hold == "draft"


async def test_pty_a_program_that_has_just_printed_gets_nothing(
    at_relay: AtRelay, tmp_path: Path, count: Count
) -> None:
    record = Record(tmp_path / "record")
    hold = await count.type(at_relay.relay.terminal)
    os.write(at_relay.human, b"!")
    await until_async(lambda: record.bytes.endswith(b"!"), "the sentinel")
    count.zero("pty", "output still moving", hold, record.bytes[:-1])
    assert hold == "output still moving"


@needs_tmux
def test_tmux_a_program_that_keeps_printing_gets_nothing(
    tmux_rig: Callable[..., TmuxRig], count: Count
) -> None:
    rig = tmux_rig("--ticking")
    hold = count.wake(rig.waker, rig.session)
    count.zero("tmux", "output still moving", hold, rig.stray("!", b""))
    assert hold == "output still moving"


@needs_tmux
def test_tmux_a_draft_of_ten_minutes_ago_is_still_a_draft(
    tmux_rig: Callable[..., TmuxRig], count: Count, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = tmux_rig()
    human = Human(["tmux", "-S", rig.server.socket, "attach"], environ={"TMUX": ""})
    try:
        human.sees(b">")
        human.type(b"draft")
        until(lambda: rig.record.bytes == b"draft", "the draft")
        clock = SimpleNamespace(monotonic=time.monotonic, time=lambda: time.time() + MINUTES)
        monkeypatch.setattr(tmux, "time", clock)
        hold = count.settled(rig.waker, rig.session)
        count.zero("tmux", "a draft, ten minutes old", hold, rig.stray("!", b"draft"))
        assert hold == "draft"
    finally:
        human.close()


def test_pty_terminal_replies_focus_and_mouse_close_no_gate(
    pty_rig: Callable[..., PtyRig], count: Count
) -> None:
    rig = pty_rig()
    rig.human.sees(b"> ")
    reports = b"\x1b[I\x1b[<0;3;4M\x1b[<0;3;4m\x1b[?62;22c\x1b]11;rgb:0000/0000/0000\x1b\\"
    rig.human.type(reports)
    until(lambda: rig.record.bytes == reports, "the reports")
    hold = count.settled(rig.waker, rig.session)
    # The program takes reports for text; that is its own affair.
    until(lambda: rig.record.bytes.endswith(b"\r"), "Enter")
    count.typed("pty", "only reports, focus, mouse", hold, rig.record.bytes[len(reports) :])


def test_pty_a_key_between_paste_and_enter_keeps_enter_back(
    pty_rig: Callable[..., PtyRig], count: Count
) -> None:
    rig = pty_rig()
    rig.human.sees(b"> ")

    async def race() -> str | None:
        count.tried()
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
    hold = count.settled(rig.waker, rig.session)
    rig.human.type(b"y")
    until(lambda: rig.record.bytes.endswith(b"y"), "the sentinel")
    count.zero("pty", "text of an earlier wake still there", hold, rig.record.bytes[21:-1])
    assert hold == "draft"


@needs_tmux
def test_tmux_a_draft_is_never_glued_to(tmux_rig: Callable[..., TmuxRig], count: Count) -> None:
    rig = tmux_rig()
    rig.keys("half a line")
    rig.server.shows(rig.pane, "half a line")
    hold = count.settled(rig.waker, rig.session)
    count.zero("tmux", "a draft", hold, rig.stray("!", b"half a line"))
    assert hold == "draft"
    rig.server.ask("send-keys", "-t", rig.pane, "-N", "12", "BSpace")
    until(lambda: rig.server.screen(rig.pane) == ">", "the draft erased")
    before = len(rig.record.bytes)
    hold = count.settled(rig.waker, rig.session)
    rig.server.shows(rig.pane, "submitted: /catchup")
    count.typed("tmux", "the draft erased again", hold, rig.record.bytes[before:])


@needs_tmux
def test_tmux_a_draft_of_blanks_is_not_taken_for_an_empty_prompt(
    tmux_rig: Callable[..., TmuxRig], count: Count
) -> None:
    rig = tmux_rig()
    rig.keys("   ")
    until(lambda: rig.record.bytes == b"   ", "the blanks")
    hold = count.settled(rig.waker, rig.session)
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
        hold = count.wake(rig.waker, rig.session)
        count.zero("tmux", "a key pressed just now", hold, rig.stray("!", b"a\x7f"))
        assert hold == "recent key"
    finally:
        human.close()
