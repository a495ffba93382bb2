"""Idle sessions of the scripted agent program: one behind `readyroom run`, one in a plain tmux pane."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from notifier.record import Record
from readyroom.demo.journal import Journal
from readyroom.demo.play import agent_program, launched
from readyroom.demo.stage import Box, Stage, clean_environment
from readyroom.demo.windows import PtyWindow, Tmux, Window


@dataclass(frozen=True, slots=True)
class Sleeper:
    """One session. Its rung is the name of its role and of its room, too."""

    rung: str
    window: Window
    journal: Journal

    def rested_at(self) -> float | None:
        """When it came to rest after its last turn, in seconds since 1970; None while it works or starts."""
        rests = [noted for noted in self.journal.events() if noted["event"] in ("ready", "enter", "rested")]
        return rests[-1]["at"] if rests and rests[-1]["event"] != "enter" else None

    def wake_that_read(self, message: int) -> dict[str, float] | None:
        """When the keys of that wake came, when its Enter, when the message was read; None before that."""
        moments: dict[str, float] = {}
        for noted in self.journal.events():
            moments[noted["event"]] = noted["at"]
            if noted["event"] == "read" and noted["id"] == message:
                return {event: moments[event] for event in ("keys", "enter", "read")}
        return None


@contextmanager
def sleepers(stage: Stage, box: Box, tmux_handle: str | None) -> Iterator[list[Sleeper]]:
    """Start them; the one in tmux only where it has a handle. On leaving they end."""
    with ExitStack() as undo:
        yield [_behind_run(box, undo), *([_in_tmux(stage, box, tmux_handle, undo)] if tmux_handle else [])]


async def handle_for_tmux(record: Record) -> str | None:
    """Check its session in, since no `readyroom run` does; None where there is no tmux."""
    if shutil.which("tmux") is None:
        return None
    answer: dict[str, Any] = await record.checkin(role="tmux")
    record.agent = answer["agent"]
    await record.start("tmux")
    record.agent = None
    return str(answer["agent"])


def _behind_run(box: Box, undo: ExitStack) -> Sleeper:
    log, program = _journal(box, "pty")
    command = launched(program, role="pty", room="pty")
    window = PtyWindow(command, env=clean_environment() | box.own, show=lambda _: None)
    undo.callback(window.close)
    return Sleeper("pty", window, Journal(log))


def _in_tmux(stage: Stage, box: Box, handle: str, undo: ExitStack) -> Sleeper:
    log, program = _journal(box, "tmux")
    tmux = Tmux(stage.folder / "tmux.sock", env=clean_environment())
    undo.callback(tmux.close)
    pane = tmux.open("tmux", program, own=box.own | {"READYROOM_AGENT": handle})
    return Sleeper("tmux", pane, Journal(log))


def _journal(box: Box, rung: str) -> tuple[Path, list[str]]:
    log = box.folder / f"{rung}.jsonl"
    return log, agent_program(room=rung, log=log)
