"""From `say` to the nudge, with one and with many who listen."""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bench.load import LoadFailed
from bench.spread import Spread
from notifier.record import Record
from readyroom.demo.stage import Stage, clean_environment

ROOM = "nudges"
LISTENERS = (1, 100)
SAYS = 100
START_SECONDS = 30.0
HEAR_SECONDS = 10.0
PAUSE_SECONDS = (0.01, 0.04)
"""Between two says, by chance, so that no clock of the nerve keeps time with them."""


@dataclass(frozen=True, slots=True)
class Fanout:
    """What so many listeners heard of so many says.

    Attributes:
        listeners: how many.
        answered: from the request to its answer.
        heard: from the request to the nudge, each listener of each say a sample.
        last: from the request to the nudge of the last who heard it.
    """

    listeners: int
    answered: Spread
    heard: Spread
    last: Spread

    def steps(self) -> dict[str, Spread]:
        """Their names in tables and results."""
        return {"say → answer": self.answered, "say → nudge": self.heard, "say → last nudge": self.last}


async def fanouts(stage: Stage) -> list[Fanout]:
    """Measure them all.

    Raises:
        LoadFailed: a nudge did not come.
    """
    tokens = [box.token() for box in stage.boxes]
    async with Record(stage.url, tokens[0]) as speaker, Record(stage.url, tokens[1]) as other:
        for record in (other, speaker, speaker):
            record.agent = (await record.checkin(role=ROOM))["agent"]
            await record.start(ROOM)
        nerve = await speaker.nerve()
        return [
            await _fanout(speaker, nerve["url"], [tokens[number % 2] for number in range(listeners)])
            for listeners in LISTENERS
        ]


async def _fanout(speaker: Record, url: str, tokens: list[str]) -> Fanout:
    answered, heard, last = [], [], []
    async with _ears(url, tokens) as ears:
        for number in range(SAYS):
            await asyncio.sleep(random.uniform(*PAUSE_SECONDS))
            begun = time.time()
            await speaker.say(ROOM, f"Note {number}.")
            answered.append(time.time() - begun)
            moments = json.loads(await _line(ears, within=HEAR_SECONDS))
            heard += [moment - begun for moment in moments]
            last.append(max(moments) - begun)
    return Fanout(len(tokens), Spread.of(answered), Spread.of(heard), Spread.of(last))


@asynccontextmanager
async def _ears(url: str, tokens: list[str]) -> AsyncIterator[asyncio.StreamReader]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.ears"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=clean_environment(),
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps({"url": url, "room": ROOM, "tokens": tokens}).encode() + b"\n")
        await _line(process.stdout, within=START_SECONDS)
        yield process.stdout
    finally:
        process.kill()
        await process.wait()


async def _line(ears: asyncio.StreamReader, *, within: float) -> str:
    try:
        async with asyncio.timeout(within):
            line = await ears.readline()
    except TimeoutError:
        raise LoadFailed(f"Not every listener has heard a nudge within {within:.0f} s.") from None
    if not line:
        raise LoadFailed("The listeners' process ended.")
    return line.decode()
