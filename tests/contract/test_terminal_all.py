"""One suite for everything that implements Terminal: memory, a pseudo-terminal of ours, a tmux pane."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from notifier.terminals.base import Look, Terminal, closed_gate
from notifier.terminals.memory import MemoryTerminal
from notifier.terminals.outer import Outer
from notifier.terminals.pty import OwnPty
from notifier.terminals.relay import Relay
from notifier.terminals.tmux import TmuxTerminal
from notifier.terminals.typist import BadLine, type_line
from tests.contract.terminals import DEADLINE, Record, TmuxServer, needs_tmux, tui, until_async

LINE = "/catchup"


@dataclass
class Rig:
    """A terminal, what reached its program, and a way for a human to type."""

    terminal: Terminal
    submitted: Callable[[], list[str]]
    pasted: Callable[[], int]
    human: Callable[[str], None]


@asynccontextmanager
async def memory_rig(folder: Path, *, mute: bool) -> AsyncIterator[Rig]:
    terminal = MemoryTerminal(echoes=not mute)

    def human(text: str) -> None:
        terminal.composer += text

    yield Rig(terminal, lambda: terminal.received, lambda: terminal.composer.count(LINE), human)


@asynccontextmanager
async def pty_rig(folder: Path, *, mute: bool) -> AsyncIterator[Rig]:
    record = Record(folder / "record")
    human, keyboard = os.openpty()
    options = ["--mute"] if mute else []
    screen = os.open(os.devnull, os.O_WRONLY)
    relay = Relay(tui(record, *options), environ=os.environ, outer=Outer(keyboard, screen))
    running = asyncio.create_task(relay.run())
    try:
        await until_async(lambda: relay.terminal.output.bracketed, "the program's prompt")
        yield Rig(
            relay.terminal,
            lambda: submitted(record),
            lambda: record.bytes.count(LINE.encode()),
            lambda text: typed(human, text),
        )
        os.write(human, b"\x04")
        assert await asyncio.wait_for(running, DEADLINE) == 0
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        for fd in (human, keyboard, screen):
            os.close(fd)


@asynccontextmanager
async def tmux_rig(folder: Path, *, mute: bool) -> AsyncIterator[Rig]:
    record = Record(folder / "record")
    server = TmuxServer(folder / "tmux.sock")
    try:
        pane = server.new("work", "exec " + shlex.join(tui(record, *(["--mute"] if mute else []))))
        await until_async(lambda: server.screen(pane) == ">", "the program's prompt")
        terminal = TmuxTerminal(server.pane(pane), process=server.process(pane), program="plain")
        yield Rig(
            terminal,
            lambda: submitted(record),
            lambda: record.bytes.count(LINE.encode()),
            lambda text: (server.ask("send-keys", "-t", pane, "-l", text), None)[1],
        )
    finally:
        server.kill()


def typed(fd: int, text: str) -> None:
    os.write(fd, text.encode())


def submitted(record: Record) -> list[str]:
    text = record.bytes.replace(b"\x1b[200~", b"").replace(b"\x1b[201~", b"").decode()
    return text.split("\r")[:-1]


RIGS = {"memory": memory_rig, "pty": pty_rig, "tmux": tmux_rig}


@pytest.fixture(
    params=[
        "memory",
        "pty",
        pytest.param("tmux", marks=needs_tmux),
    ]
)
def rig(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Callable[..., contextlib.AbstractAsyncContextManager[Rig]]:
    return lambda *, mute=False: RIGS[request.param](tmp_path, mute=mute)


RigOf = Callable[..., contextlib.AbstractAsyncContextManager[Rig]]


@needs_tmux
@pytest.mark.parametrize("first", ["client of the day: nobody", "client %0 99999999999", "screen"])
async def test_a_pane_may_show_what_tmux_itself_could_say(tmp_path: Path, first: str) -> None:
    server = TmuxServer(tmp_path / "tmux.sock")
    program = shlex.join(tui(Record(tmp_path / "record")))
    try:
        pane = server.new("work", f"echo {shlex.quote(first)}; exec {program}")
        await until_async(lambda: server.screen(pane) == f"{first}\n>", "the program's prompt")
        terminal = TmuxTerminal(server.pane(pane), process=server.process(pane), program="plain")
        look = await terminal.look()
        assert (look.hold, look.draft, look.key_age) == (None, "empty", None)
    finally:
        server.kill()


async def test_an_idle_terminal_looks_open(rig: RigOf) -> None:
    async with rig() as at:
        await open_gates(at.terminal)


async def test_a_typed_line_is_submitted_once_and_the_composer_is_empty_then(rig: RigOf) -> None:
    async with rig() as at:
        await open_gates(at.terminal)
        assert await type_line(at.terminal, LINE) is None
        await until_async(lambda: at.submitted() == [LINE], "the line")
        await open_gates(at.terminal)
        assert await type_line(at.terminal, "read  what ist neu: ü") is None
        await until_async(lambda: at.submitted() == [LINE, "read  what ist neu: ü"], "the second line")


async def test_a_draft_is_seen_and_nothing_is_typed(rig: RigOf) -> None:
    async with rig() as at:
        await open_gates(at.terminal)
        at.human("half a li")
        await look_until(at.terminal, lambda look: look.draft == "draft")
        assert await type_line(at.terminal, LINE) in ("draft", "recent key")
        assert at.submitted() == []


async def test_a_paste_alone_submits_nothing_and_is_a_draft_from_then_on(rig: RigOf) -> None:
    async with rig() as at:
        await open_gates(at.terminal)
        assert await at.terminal.paste(LINE) is None
        await shown(at.terminal)
        assert await type_line(at.terminal, LINE) == "draft"
        assert at.submitted() == []
        assert await at.terminal.enter(LINE) is None
        await until_async(lambda: at.submitted() == [LINE], "the line, once")


@needs_tmux
async def test_enter_is_not_pressed_in_a_pane_where_something_else_stands_by_now(tmp_path: Path) -> None:
    async with tmux_rig(tmp_path, mute=False) as at:
        await open_gates(at.terminal)
        assert await at.terminal.paste(LINE) is None
        await shown(at.terminal)
        at.human(" and more")
        await look_until(at.terminal, lambda look: look.draft == "draft")
        await until_async(lambda: at.pasted() == 1, "the paste")
        assert await at.terminal.shows(LINE) is False
        assert await at.terminal.enter(LINE) == "echo not seen"
        assert at.submitted() == []


async def test_a_line_is_not_shown_while_something_is_in_front_of_a_known_composer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[bytes] = []
    terminal = OwnPty("/dev/null", process=lambda: None, program="claude-code", send=sent.append)
    monkeypatch.setattr(terminal, "_hold", lambda: None)
    rule = "\N{BOX DRAWINGS LIGHT HORIZONTAL}" * 20
    composer = f"\x1b[2J\x1b[H{rule}\r\n> {{}}\r\n{rule}\r\n"
    terminal.printed(composer.format("").encode())
    assert await terminal.paste(LINE) is None
    terminal.printed(composer.format(LINE).encode())
    terminal.printed(b"\x1b[2J\x1b[HDo you want to proceed?\r\n  1. Yes\r\n")
    assert not await terminal.shows(LINE)  # although it was printed since
    terminal.printed(composer.format(LINE).encode())
    assert await terminal.shows(LINE)
    assert sent == [LINE.encode()]


async def test_without_an_echo_enter_is_not_pressed_and_no_second_paste_follows(
    rig: RigOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("notifier.terminals.typist.ECHO_SECONDS", 0.5)
    async with rig(mute=True) as at:
        await open_gates(at.terminal)
        assert await type_line(at.terminal, LINE) == "echo not seen"
        assert await type_line(at.terminal, LINE) in ("draft", "output still moving")
        assert at.pasted() == 1
        assert at.submitted() == []


@pytest.mark.parametrize("line", ["", "   ", "two\nlines", "enter\r", "\x1b[A", "nul\0", "x" * 1001])
async def test_what_is_no_plain_line_is_refused(rig: RigOf, line: str) -> None:
    async with rig() as at:
        with pytest.raises(BadLine):
            await type_line(at.terminal, line)
        assert at.submitted() == []


async def open_gates(terminal: Terminal) -> None:
    await look_until(terminal, lambda look: closed_gate(look) is None)


async def shown(terminal: Terminal) -> None:
    async with asyncio.timeout(DEADLINE):
        while True:
            if await terminal.shows(LINE):
                return
            await asyncio.sleep(0.01)


async def look_until(terminal: Terminal, condition: Callable[[Look], bool]) -> None:
    async with asyncio.timeout(DEADLINE):
        while True:
            if condition(await terminal.look()):
                return
            await asyncio.sleep(0.01)
