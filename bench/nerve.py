"""The nerve with few and with many connected notifiers: how fast its nudges are, what an idle one costs."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import math
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
import structlog

from bench import machine
from bench.machine import Machine
from bench.meter import Meter
from bench.nudges import ROOM, Fanout, fanout, hearing
from bench.surroundings import surroundings
from notifier.record import Record

NAME = "nerve"
TITLE = "from say to nudge"
LISTENERS = (1, 100, 500)
LISTENERS_A_BOX = 50
"""Fewer than the links that one box may have."""
SETTLE_SECONDS = 3.0
TELLING_SECONDS, TELLING_BYTES = 0.1, 1024 * 1024
"""What the record's process needs of either by itself differs by less from one time to the next."""


@dataclass(frozen=True, slots=True)
class Idle:
    """What idle connections cost the record's process, in which the nerve is.

    Attributes:
        connections: how many there were.
        seconds: for how long they were watched.
        cpu_micros: of processor time, for each connection and second; None: too little in all to tell.
        kib: of memory, for each connection; None likewise.
    """

    connections: int
    seconds: float
    cpu_micros: float | None
    kib: float | None


@dataclass(frozen=True)
class Measured:
    """All of it."""

    fanouts: list[Fanout]
    idle: Idle
    surroundings: dict[str, str]


def measure(
    listeners: Sequence[int],
    *,
    says: int,
    idle_seconds: float,
    folder: Path | None,
    progress: Callable[[str], None],
) -> Measured:
    """Measure on a machine of its own.

    Raises:
        LoadFailed: a nudge did not come.
        NotUp: the machine did not come up.
    """
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with machine.running(folder) as up:
        facts = surroundings(up)
        fanouts, idle = asyncio.run(_measure(up, listeners, says, idle_seconds, progress))
        return Measured(fanouts, idle, facts)


async def _measure(
    up: Machine, listeners: Sequence[int], says: int, seconds: float, progress: Callable[[str], None]
) -> tuple[list[Fanout], Idle]:
    """The most come first: memory that others have used and left would hide what they take."""
    most = max(listeners)
    async with AsyncExitStack() as stack:
        speaker, tokens = await _boxes(up, math.ceil(most / LISTENERS_A_BOX), stack)
        url = (await speaker.nerve())["url"]
        fanouts, costs = [], None
        progress("nobody listens")
        alone = await _watched(up, seconds)
        for number in sorted(listeners, reverse=True):
            progress(f"{number} listen")
            async with hearing(url, [tokens[each % len(tokens)] for each in range(number)]) as ears:
                costs = costs or _each(number, seconds, alone, await _watched(up, seconds))
                fanouts.append(await fanout(speaker, ears, number, says=says))
    assert costs is not None
    return fanouts[::-1], costs


async def _boxes(up: Machine, number: int, stack: AsyncExitStack) -> tuple[Record, list[str]]:
    """Somebody who speaks, and the tokens of so many boxes that each have a session in the room."""
    tokens: list[str] = []
    speaker: Record | None = None
    async with Record(up.url, up.operators_token()) as operator:
        for name in ["speaker", *(f"ears{each}" for each in range(number))]:
            made = await operator.call("POST", "/v1/admin/boxes", {"name": name}, repeatable=False)
            record = await stack.enter_async_context(Record(up.url, made["token"]))
            record.agent = (await record.checkin(role="nerve"))["agent"]
            await record.start(ROOM)
            tokens.append(made["token"])
            speaker = speaker or record
    assert speaker is not None
    return speaker, tokens[1:]


async def _watched(up: Machine, seconds: float) -> tuple[float, float]:
    """Processor seconds of the record in so many seconds, and the bytes it has in use at their end."""
    await asyncio.sleep(SETTLE_SECONDS)
    meter = Meter(up.pid)
    before = meter.read()
    await asyncio.sleep(seconds)
    return (meter.read() - before).record, float(psutil.Process(up.pid).memory_info().rss)


def _each(number: int, seconds: float, alone: tuple[float, float], with_them: tuple[float, float]) -> Idle:
    spent, bytes_ = (now - before for before, now in zip(alone, with_them, strict=True))
    return Idle(
        number,
        seconds,
        1e6 * spent / seconds / number if spent >= TELLING_SECONDS else None,
        bytes_ / 1024 / number if bytes_ >= TELLING_BYTES else None,
    )


def document(measured: Measured) -> dict[str, Any]:
    """Everything that was measured, as JSON can hold it."""
    return {
        "scenario": NAME,
        "at": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "surroundings": measured.surroundings,
        "listeners": {
            str(one.listeners): {name: spread.to_json() for name, spread in one.steps().items()}
            for one in measured.fanouts
        },
        "idle": {name: figure and round(figure, 1) for name, figure in asdict(measured.idle).items()},
    }
