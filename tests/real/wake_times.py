"""How often, and how soon, the real programs begin a turn after something was said.

    python -m tests.real.wake_times                              # every rung of each program, ten minutes
    python -m tests.real.wake_times claude-code/native --wakes 40

Run it by hand; it fails nothing. Each wake finds the session idle for some time that is drawn by chance, and
another speaker comes before the damper would hold back two agents who only wake each other.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.spread import Spread
from notifier.inbox import Policy
from tests.real import claude_sessions, codex, gemini, npm
from tests.real.conftest import short_folder
from tests.real.model import Model, served
from tests.real.office import Office, opened
from tests.real.session import Session

REST_SECONDS = (0.6, 1.0)
READ_WITHIN = 120.0
"""Seconds; longer than the pauses that follow a first wake without effect."""

Sit = Callable[[Office, Model, Path], Iterator[Session[Any]]]


def _claude(rung: str, way: claude_sessions.Way) -> Sit:
    def sit(office: Office, model: Model, folder: Path) -> Iterator[Session[Any]]:
        home = claude_sessions.at_home(office, npm.claude_code(), model, folder)
        with claude_sessions.seated(
            office, model, home, way=way, room=f"claude-{rung}", rung=rung
        ) as session:
            yield session

    return sit


def _codex(rung: str, way: codex.Way) -> Sit:
    def sit(office: Office, model: Model, folder: Path) -> Iterator[Session[Any]]:
        with codex.seated(
            office, npm.codex(), model, folder, way=way, room=f"codex-{rung}", rung=rung
        ) as session:
            yield session

    return sit


def _gemini(rung: str, way: gemini.Way) -> Sit:
    def sit(office: Office, model: Model, folder: Path) -> Iterator[Session[Any]]:
        with gemini.seated(office, npm.gemini(), model, folder, way=way, room=f"gemini-{rung}") as session:
            yield session

    return sit


SEATS: dict[str, Sit] = {
    "claude-code/native": _claude("native", "tmux"),
    "claude-code/pty": _claude("pty", "run"),
    "claude-code/tmux": _claude("tmux", "tmux"),
    "codex/native": _codex("native", "run"),
    "codex/pty": _codex("pty", "run"),
    "codex/tmux": _codex("tmux", "tmux"),
    "gemini/pty": _gemini("pty", "run"),
    "gemini/tmux": _gemini("tmux", "tmux"),
}
"""Program and rung -> how its session comes about."""


@dataclass
class Series:
    """The wakes of one rung of a program.

    Attributes:
        delays: from a message's commit to the start of the turn that read it, in seconds.
        tried: how often the rung was tried.
        proved: how often that ended with a read.
        held: how often it ended with nothing sent, by the reason.
    """

    delays: list[float] = field(default_factory=list)
    tried: int = 0
    proved: int = 0
    held: Counter[str] = field(default_factory=Counter)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("seats", nargs="*", choices=[*SEATS, []], help="all unless given")
    parser.add_argument("--wakes", type=int, default=30)
    asked = parser.parse_args()
    load = os.getloadavg()[0]
    measured = {seat: measure(seat, asked.wakes) for seat in asked.seats or SEATS}
    console = Console(width=140)
    console.print(_table(measured))
    console.print(
        f"load average {load:.1f} before, {os.getloadavg()[0]:.1f} after; {os.cpu_count()} processors"
    )


def measure(seat: str, wakes: int) -> Series:
    """Wake a new session so often."""
    rung = seat.rpartition("/")[2]
    allowed = {} if rung == "native" else {"READYROOM_WAKE": "keystrokes"}
    with (
        short_folder() as data,
        short_folder() as folder,
        opened(data, **allowed) as office,
        served() as model,
        contextmanager(SEATS[seat])(office, model, folder) as session,
    ):
        series = Series(list(_delays(session, wakes)))
        tries = [event for event in office.events("wake_tried") if event["rung"] == rung]
        ends = [event["outcome"] for event in office.events("wake_reported") if event["rung"] == rung]
        series.tried, series.proved = len(tries), ends.count("read")
        series.held = Counter(event["hold"] for event in tries if not event["sent"])
        return series


def _delays(session: Session[Any], wakes: int) -> Iterator[float]:
    speaker = ""
    for number in range(wakes):
        if number % (Policy().damper_wakes - 1) == 0:
            speaker = session.office.newcomer(session.room)
        time.sleep(random.uniform(*REST_SECONDS))
        message = session.office.say_as(speaker, session.room, f"note {number}.")
        session.until_shown(f"note {number}.", seconds=READ_WITHIN)
        session.until_row(state="idle", unread=0, hold=None)
        yield _turn_after(session, message)


def _turn_after(session: Session[Any], message: dict[str, Any]) -> float:
    said = dt.datetime.fromisoformat(message["created_at"])
    turns = [
        dt.datetime.fromisoformat(event["timestamp"])
        for event in session.office.events("hook_heard")
        if event["agent"] == session.agent and event["hook"] == "prompt"
    ]
    return min(turn - said for turn in turns if turn > said).total_seconds()


def _table(measured: dict[str, Series]) -> Table:
    table = Table(title="wakes of the real programs; seconds from commit to turn start")
    for heading in ("program/rung", "tried", "read", "held"):
        table.add_column(heading)
    for heading in ("median", "p90", "p99", "max", "messages"):
        table.add_column(heading, justify="right")
    for seat, series in measured.items():
        table.add_row(
            seat, str(series.tried), str(series.proved), _reasons(series.held), *_figures(series.delays)
        )
    return table


def _reasons(held: Counter[str]) -> str:
    return ", ".join(f"{reason} ({count})" for reason, count in held.most_common()) or "none"


def _figures(delays: Sequence[float]) -> list[str]:
    spread = Spread.of(delays)
    moments = (spread.p50, spread.p90, spread.p99, spread.worst)
    return [*(f"{moment / 1000:.2f}" for moment in moments), str(spread.count)]


if __name__ == "__main__":
    main()
