"""Real terminals with a program that keeps every byte, and the count of what wakes did there."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from notifier.sessions import Process, Session
from notifier.terminals.base import Hold, Terminal
from notifier.terminals.process import hold_of, process_of, standing_of
from notifier.terminals.typist import type_line
from notifier.wakers.base import Waker
from notifier.wakers.keystrokes import Pty, Tmux
from tests.contract.terminals import BARE_RUN, Human, Record, TmuxServer, arguments, program_of, tui, until

LINE = "/catchup"
TYPED = b"\x1b[200~/catchup\x1b[201~\r"
AGAIN = 3
"""How often a closed gate is tried once more."""

PASSING = ("recent key", "output still moving")
"""Holds that are over by themselves after seconds."""

Row = tuple[str, str, str, int, int]
"""Gate, rung, answer, tries, unwanted bytes."""


class Count:
    """Tries wakes, and notes for the table at the end what became of them."""

    def __init__(self, note: Callable[[str, Row], None]) -> None:
        self._note = note
        self._tries = 0

    def tried(self, times: int = 1) -> None:
        """So many wakes were tried that `wake` has not seen."""
        self._tries += times

    def wake(self, waker: Waker, session: Session) -> str | None:
        """Try once; None when the whole wake was sent, else the closed gate."""
        self.tried()
        return asyncio.run(waker.wake(session, LINE)).hold

    async def type(self, terminal: Terminal) -> Hold | None:
        """Try once at a terminal itself."""
        self.tried()
        return await type_line(terminal, LINE)

    def settled(self, waker: Waker, session: Session) -> str | None:
        """Try until the answer is no matter of seconds; a gate that is closed then is tried again."""
        hold: str | None = None

        def over() -> bool:
            nonlocal hold
            hold = self.wake(waker, session)
            return hold not in PASSING

        until(over, "a hold that stays")
        for _ in range(AGAIN if hold is not None else 0):
            hold = self.wake(waker, session)
        return hold

    def zero(self, rung: str, gate: str, hold: str | None, stray: bytes) -> None:
        """Note what reached a program, and insist that it was nothing."""
        self._row(gate, rung, hold or "woken elsewhere", len(stray))
        assert stray == b"", f"{gate}: {stray!r} reached the program"

    def typed(self, rung: str, gate: str, hold: str | None, arrived: bytes) -> None:
        """Note what reached a program, and insist that it was one line and one Enter."""
        self._row(gate, rung, hold or "woken", 0 if arrived == TYPED else len(arrived))
        assert (hold, arrived) == (None, TYPED)

    def _row(self, gate: str, rung: str, answer: str, unwanted: int) -> None:
        self._note("gate", (gate, rung, answer, self._tries, unwanted))
        self._tries = 0


def table(rows: list[Row]) -> str:
    """What the gates did, and the one number that counts."""
    lines = [f"{'gate':45} {'rung':5} {'answer':22} tries  unwanted bytes"]
    lines += [
        f"{gate:45} {rung:5} {answer:22} {tries:5} {unwanted:15}"
        for gate, rung, answer, tries, unwanted in rows
    ]
    closed = [row for row in rows if row[2] != "woken"]
    total = sum(row[4] for row in rows)
    lines.append(
        f"{sum(row[3] for row in closed)} tries at {len(closed)} closed gates, "
        f"{len(rows) - len(closed)} at open ones: {total} unwanted bytes"
    )
    return "\n".join(lines)


class PtyRig:
    """A human at a `readyroom run` with the scripted program in it."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        command: list[str] | None = None,
        around: list[str] | None = None,
    ) -> None:
        """`command`: in place of the scripted program. `around`: in place of the whole run."""
        self.record = Record(folder / "record")
        self.path = str(folder / "run.sock")
        run = [sys.executable, BARE_RUN, self.path, *(command or tui(self.record, *options))]
        self.human = Human(around or run)
        self.waker = Pty()
        until(lambda: os.path.exists(self.path), "the socket of the run")
        self.process = launched_by(self.path)

    @property
    def session(self) -> Session:
        return Session(agent="work-agent#1", program="plain", process=self.process, pty_socket=self.path)

    def press(self, keys: bytes) -> None:
        """Press keys as a human does."""
        self.human.type(keys)


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
        until(lambda: "\n>\n" in f"\n{self.server.screen(self.pane)}\n", "idle")
        self.tmux = self.server.pane(self.pane)
        self.waker = Tmux()

    @property
    def session(self) -> Session:
        return Session(agent="work-agent#1", program="plain", process=self.process, tmux=self.tmux)

    def press(self, keys: bytes) -> None:
        """Press keys as a human does."""
        self.server.ask("send-keys", "-t", self.pane, "-H", *(f"{key:x}" for key in keys))

    def keys(self, keys: str, *, literal: bool = True, pane: str | None = None) -> None:
        self.server.ask("send-keys", "-t", pane or self.pane, *(["-l"] if literal else []), keys)

    def stray(self, sentinel: str, known: bytes) -> bytes:
        """What reached the program beyond `known` before a key that is pressed now."""
        self.keys(sentinel)
        until(lambda: self.record.bytes.endswith(sentinel.encode()), "the sentinel")
        return self.record.bytes[len(known) : -len(sentinel)]


def launched_by(path: str) -> Process:
    """The program of the run whose socket is `path`: the child of its only child."""
    found: list[Process] = []

    def look() -> bool:
        runs = [folder for folder in Path("/proc").glob("[0-9]*") if path.encode() in arguments(folder)[2:3]]
        pids = [child for run in runs for leader in children(int(run.name)) for child in children(leader)]
        found[:] = [process for process in map(process_of, pids) if process is not None]
        return bool(found)

    until(look, "the program of the run")
    return found[0]


def children(pid: int) -> list[int]:
    """The children of a process, as far as they live."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def standing(process: Process) -> str:
    """The kernel's letter for it; empty when it is gone."""
    if hold_of(process, tty=None) == "process gone":
        return ""
    found = standing_of(process.pid)
    return "" if found is None else {"R": "S"}.get(found.state, found.state)
