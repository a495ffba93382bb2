"""How long the small programs take from start to end that agents call all day, beside a bare Python."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.load import LoadFailed
from bench.machine import Machine
from bench.spread import Spread
from bench.surroundings import surroundings
from readyroom.demo.children import READYROOM, StepFailed
from readyroom.demo.stage import build, clean_environment

NAME = "starts"
TITLE = "from start to end of a small program"
BARE = "bare Python"
SWEEP_SECONDS = 3600.0
ONE_SECONDS = 30.0
"""A program that takes longer hangs."""
CALL = b'{"hook_event_name": "PreToolUse", "session_id": "bench", "cwd": "/", "tool_name": "Read"}'
"""What Claude Code gives its hook of a tool."""
HOOK = [*READYROOM, "hook", "tool", "--for", "claude-code"]


@dataclass(frozen=True)
class Program:
    """A command with its environment and what it is given to read."""

    command: list[str]
    environment: dict[str, str]
    reads: bytes = b""

    def seconds(self) -> float:
        """Run it once; how long that took.

        Raises:
            LoadFailed: it failed, or hangs.
        """
        began = time.perf_counter()
        try:
            done = subprocess.run(
                self.command,
                input=self.reads,
                env=self.environment,
                capture_output=True,
                timeout=ONE_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise LoadFailed(f"{' '.join(self.command)} did not end.") from None
        took = time.perf_counter() - began
        if done.returncode:
            said = done.stderr.decode(errors="replace")[-500:]
            raise LoadFailed(f"{' '.join(self.command)} ended with status {done.returncode}: {said}")
        return took


@dataclass(frozen=True)
class Starts:
    """The seconds of each program, a sample a round, the bare Python's among them."""

    seconds: dict[str, list[float]]
    surroundings: dict[str, str]

    def spreads(self) -> dict[str, Spread]:
        """How each one's samples lie."""
        return {name: Spread.of(samples) for name, samples in self.seconds.items()}

    def ratios(self) -> dict[str, float]:
        """How many times the bare Python's time each takes: the median of what each round says."""
        bare = self.seconds[BARE]
        return {
            name: statistics.median(mine / its for mine, its in zip(samples, bare, strict=True))
            for name, samples in self.seconds.items()
        }


def measure(rounds: int, parent: Path | None, *, progress: Callable[[str], None]) -> Starts:
    """Measure in a world of its own, of which nothing is left.

    Raises:
        LoadFailed: a program failed, or something did not come up.
    """
    try:
        return asyncio.run(_measure(rounds, parent, progress))
    except StepFailed as failed:
        raise LoadFailed(str(failed)) from None


async def _measure(rounds: int, parent: Path | None, progress: Callable[[str], None]) -> Starts:
    async with build(nerve=True, sweep_seconds=SWEEP_SECONDS, parent=parent) as stage:
        facts = {"load average": f"{os.getloadavg()[0]:.2f} at the start"}
        facts |= await asyncio.to_thread(surroundings, Machine.at(stage.folder / "record"))
        clean = clean_environment()
        box = clean | stage.boxes[0].own
        nobody = clean | {"READYROOM_RUNTIME_DIR": str(stage.folder / "nobody")}
        programs = {
            BARE: Program([sys.executable, "-c", "pass"], clean),
            "hook, no notifier": Program(HOOK, nobody, CALL),
            "hook, its notifier answers": Program(HOOK, box, CALL),
            "poll, nothing unread": Program([*READYROOM, "poll"], box),
        }
        return Starts(await asyncio.to_thread(_rounds, programs, rounds, progress), facts)


def _rounds(
    programs: dict[str, Program], rounds: int, progress: Callable[[str], None]
) -> dict[str, list[float]]:
    """Each in turn, again and again, so that all meet the same weather; first once unmeasured."""
    for program in programs.values():
        program.seconds()
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    for number in range(rounds):
        progress(f"round {number + 1} of {rounds}")
        for name, program in programs.items():
            seconds[name].append(program.seconds())
    return seconds


def document(measured: Starts) -> dict[str, Any]:
    """Everything that was measured, as JSON can hold it."""
    ratios = measured.ratios()
    return {
        "scenario": NAME,
        "at": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "surroundings": measured.surroundings,
        "programs": {
            name: {**spread.to_json(), "ratio": round(ratios[name], 2)}
            for name, spread in measured.spreads().items()
        },
    }
