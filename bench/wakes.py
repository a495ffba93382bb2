"""How long it takes until an idle session is woken and has read what was said, rung by rung."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from bench import nudges
from bench.load import LoadFailed
from bench.machine import Machine
from bench.sleepers import Sleeper, handle_for_tmux, sleepers
from bench.spread import Spread
from bench.surroundings import surroundings
from broker_bridge.nudge import Nudge
from broker_bridge.tyo_mq import Listener
from notifier.record import Record
from readyroom.demo.children import StepFailed
from readyroom.demo.stage import STEP_SECONDS, Stage, build

NAME = "wakes"
TITLE = "from say to keys and read, for an idle session"
MOST_ROUNDS = 200
"""The wake budget of a session, which stays on, allows 240 an hour."""
SCENARIO_SECONDS = 285.0
SERIES_SECONDS = 220.0
"""No round begins later than this; a slow machine gives fewer of them."""
REST_SECONDS = (0.6, 1.0)
"""For how long nobody has done anything when something is said, by chance."""
SWEEP_SECONDS = 60.0
"""So seldom that a re-check finds next to nothing before the nudge does."""
STEPS = {
    "commit → nudge": ("commit", "nudge"),
    "nudge → keys": ("nudge", "keys"),
    "commit → keys": ("commit", "keys"),
    "keys → Enter": ("keys", "enter"),
    "Enter → read": ("enter", "read"),
    "commit → read": ("commit", "read"),
}


@dataclass
class Series:
    """The wakes of one rung.

    Attributes:
        rung: which.
        rounds: what happened when, in seconds since 1970, a dictionary a round.
        held: how often a wake was put off, by the reason.
    """

    rung: str
    rounds: list[dict[str, float]] = field(default_factory=list)
    held: Counter[str] = field(default_factory=Counter)

    def steps(self) -> dict[str, Spread]:
        """The spread of each step."""
        return {
            name: Spread.of([moments[until] - moments[since] for moments in self.rounds])
            for name, (since, until) in STEPS.items()
        }


@dataclass(frozen=True)
class Wakes:
    """All that was measured."""

    fanouts: list[nudges.Fanout]
    series: list[Series]
    surroundings: dict[str, str]


def measure(rounds: int, parent: Path | None, *, progress: Callable[[str], None]) -> Wakes:
    """Measure in a world of its own, within five minutes; nothing of it is left, even when interrupted.

    The pairs' damper is off: nothing else would let one session wake another so often.

    Raises:
        LoadFailed: something did not come in time.
        KeyboardInterrupt: it was interrupted, or told to end.
    """
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        return asyncio.run(_measure(rounds, parent, progress))
    except StepFailed as failed:
        raise LoadFailed(str(failed)) from None
    except TimeoutError:
        raise LoadFailed(f"It was not done within {SCENARIO_SECONDS:.0f} s.") from None
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _measure(rounds: int, parent: Path | None, progress: Callable[[str], None]) -> Wakes:
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    async with (
        asyncio.timeout(SCENARIO_SECONDS),
        build(
            nerve=True, sweep_seconds=SWEEP_SECONDS, notifier_options=["--no-damper"], parent=parent
        ) as stage,
    ):
        facts = {"load average": f"{os.getloadavg()[0]:.2f} at the start"}
        facts |= await asyncio.to_thread(surroundings, Machine.at(stage.folder / "record"))
        progress("say to nudge")
        fanouts = await nudges.fanouts(stage)
        return Wakes(fanouts, await _all_series(stage, rounds, progress), facts)


async def _all_series(stage: Stage, rounds: int, progress: Callable[[str], None]) -> list[Series]:
    desk, lab = stage.boxes
    async with Record(stage.url, desk.token()) as speaker, Record(stage.url, lab.token()) as watcher:
        with sleepers(stage, lab, await handle_for_tmux(watcher)) as asleep:
            speaker.agent = (await speaker.checkin(role="speaker"))["agent"]
            for sleeper in asleep:
                await stage.wait(f"the agent program ({sleeper.rung}) to start", sleeper.rested_at)
                await speaker.start(sleeper.rung)
            nerve = await watcher.nerve()
            alarm = _Alarm(stage, speaker, watcher, asleep)
            listener = Listener(nerve["url"], lab.token(), "bench", alarm.on_nudge, alarm.on_state)
            listening = asyncio.create_task(listener.run())
            try:
                return await alarm.ring(rounds, progress)
            finally:
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)


class _Alarm:
    """Says something to one sleeper after the other, each time that all are idle, and takes the time."""

    def __init__(self, stage: Stage, speaker: Record, watcher: Record, asleep: list[Sleeper]) -> None:
        self._stage, self._speaker, self._watcher, self._asleep = stage, speaker, watcher, asleep
        self._nudges: dict[str, float] = {}
        self._hears = False

    def on_nudge(self, nudge: Nudge) -> None:
        """The first nudge of a room since the last word said there counts."""
        self._nudges.setdefault(nudge.conv, time.time())

    def on_state(self, hears: bool) -> None:
        """The listener hears, or does not."""
        self._hears = hears

    async def ring(self, rounds: int, progress: Callable[[str], None]) -> list[Series]:
        """Take the rounds, the rungs in turn."""
        await self._stage.wait("the listener to hear", lambda: self._hears or None)
        end = time.monotonic() + SERIES_SECONDS
        series = [Series(sleeper.rung) for sleeper in self._asleep]
        for number in range(rounds):
            if time.monotonic() > end:
                break
            progress(f"wake {number + 1} of {rounds} of each rung")
            for sleeper, one in zip(self._asleep, series, strict=True):
                await self._all_idle()
                one.rounds.append(await self._wake(sleeper, f"Note {number}."))
        for one in series:
            one.held = Counter(self._held(one.rung))
        return series

    async def _all_idle(self) -> None:
        for sleeper in self._asleep:
            await self._stage.wait(f"the session ({sleeper.rung}) to rest", sleeper.rested_at)
        end = time.monotonic() + STEP_SECONDS
        while (states := await self._states()) != {"idle"}:
            if time.monotonic() > end:
                raise LoadFailed(f"Not every session came to rest; they are {', '.join(states)}.")
            await asyncio.sleep(0.05)
        rest = random.uniform(*REST_SECONDS)
        rested = max(sleeper.rested_at() or 0.0 for sleeper in self._asleep)
        await asyncio.sleep(max(0.0, rested + rest - time.time()))

    async def _states(self) -> set[str]:
        rungs = {sleeper.rung for sleeper in self._asleep}
        return {row["state"] for row in await self._watcher.agents() if row["role"] in rungs}

    async def _wake(self, sleeper: Sleeper, words: str) -> dict[str, float]:
        self._nudges.clear()
        message = (await self._speaker.say(sleeper.rung, words))["message"]
        woken = await self._stage.wait(
            f"the session ({sleeper.rung}) to read #{message['id']}",
            partial(sleeper.wake_that_read, message["id"]),
        )
        if sleeper.rung not in self._nudges:
            raise LoadFailed(f"No nudge told of #{message['id']}.")
        committed = dt.datetime.fromisoformat(message["created_at"]).timestamp()
        return {"commit": committed, "nudge": self._nudges[sleeper.rung], **woken}

    def _held(self, rung: str) -> list[str]:
        """Why the notifier put wakes off, by its own log."""
        return [
            str(noted["hold"])
            for noted in self._stage.boxes[1].notifier_events()
            if noted["event"] == "wake_tried" and noted["rung"] == rung and not noted["sent"]
        ]


def document(measured: Wakes) -> dict[str, Any]:
    """Everything that was measured, as JSON can hold it."""
    return {
        "scenario": NAME,
        "at": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "surroundings": measured.surroundings,
        "rungs": {
            one.rung: {"steps": _spreads(one.steps()), "held": dict(one.held)} for one in measured.series
        },
        "listeners": {str(one.listeners): _spreads(one.steps()) for one in measured.fanouts},
    }


def _spreads(steps: dict[str, Spread]) -> dict[str, dict[str, float]]:
    return {name: spread.to_json() for name, spread in steps.items()}
