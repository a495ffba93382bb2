"""From `say` to the nudge, with one and with many who listen."""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from bench.load import LoadFailed
from bench.spread import Spread
from notifier.record import Record
from readyroom.demo.stage import Stage, clean_environment

ROOM = "nudges"
LISTENERS = (1, 100)
LISTENERS_A_PROCESS = 100
SAYS = 100
START_SECONDS = 90.0
HEAR_SECONDS = 10.0
PAUSE_SECONDS = (0.01, 0.04)
"""Between two says, by chance, so that no clock of the nerve keeps time with them."""

Ears = asyncio.StreamReader
"""What a process of listeners tells."""


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
        made = []
        for listeners in LISTENERS:
            async with hearing(nerve["url"], [tokens[number % 2] for number in range(listeners)]) as ears:
                made.append(await fanout(speaker, ears, listeners, says=SAYS))
        return made


async def fanout(speaker: Record, ears: Sequence[Ears], listeners: int, *, says: int) -> Fanout:
    """Say so many notes in the room, one at a time; each has been heard by all before the next.

    Raises:
        LoadFailed: a nudge did not come.
    """
    answered, heard, last = [], [], []
    for number in range(says):
        await asyncio.sleep(random.uniform(*PAUSE_SECONDS))
        begun = time.time()
        await speaker.say(ROOM, f"Note {number}.")
        answered.append(time.time() - begun)
        lines = await asyncio.gather(*(_line(each, within=HEAR_SECONDS) for each in ears))
        moments = [moment for line in lines for moment in json.loads(line)]
        heard += [moment - begun for moment in moments]
        last.append(max(moments) - begun)
    return Fanout(listeners, Spread.of(answered), Spread.of(heard), Spread.of(last))


@asynccontextmanager
async def hearing(url: str, tokens: Sequence[str]) -> AsyncIterator[list[Ears]]:
    """A listener for each token, a hundred in a process of their own, once all can hear.

    Raises:
        LoadFailed: not all could in time.
    """
    async with AsyncExitStack() as stack:
        firsts = range(0, len(tokens), LISTENERS_A_PROCESS)
        started = [
            await stack.enter_async_context(_process(url, tokens[first : first + LISTENERS_A_PROCESS]))
            for first in firsts
        ]
        for ears in started:
            await _line(ears, within=START_SECONDS)
        yield started


@asynccontextmanager
async def _process(url: str, tokens: Sequence[str]) -> AsyncIterator[Ears]:
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
        wanted = {"url": url, "room": ROOM, "tokens": list(tokens)}
        process.stdin.write(json.dumps(wanted).encode() + b"\n")
        yield process.stdout
    finally:
        process.kill()
        await process.wait()


async def _line(ears: Ears, *, within: float) -> str:
    try:
        async with asyncio.timeout(within):
            line = await ears.readline()
    except TimeoutError:
        raise LoadFailed(f"Not every listener has heard a nudge within {within:.0f} s.") from None
    if not line:
        raise LoadFailed("The listeners' process ended.")
    return line.decode()
