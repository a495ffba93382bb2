"""The play: one asks, the other is woken and answers, the first is woken by the answer."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from notifier.record import Record
from readyroom.demo.children import READYROOM, StepFailed
from readyroom.demo.latency import Leg
from readyroom.demo.stage import STEP_SECONDS, Box, Stage
from readyroom.demo.windows import Window

ROOM = "demo"
QUESTION = "Which Python do you run over there?"
ROLES = {"desk": "asker", "lab": "answerer"}

Say = Callable[[str], None]


def agent_program(*, room: str, log: Path) -> list[str]:
    """How the scripted agent program is started: where it speaks, and where it writes down what it does."""
    return [sys.executable, "-m", "readyroom.demo.agent", "--room", room, "--log", str(log)]


def launched(program: Sequence[str], *, role: str, room: str) -> list[str]:
    """How a program is started as a session of its own."""
    return [*READYROOM, "run", "--role", role, "--room", room, "--", *program]


def command_of(box: Box) -> list[str]:
    """How the box's agent program is started."""
    program = agent_program(room=ROOM, log=box.folder / "agent.jsonl")
    return launched(program, role=ROLES[box.name], room=ROOM)


async def perform(stage: Stage, windows: tuple[Window, Window], tell: Say) -> tuple[Leg, Leg]:
    """Play it, and return what was measured on the way there and on the way back.

    Raises:
        StepFailed: a step did not come in time; the text shows the terminals.
    """
    try:
        return await _perform(stage, windows, tell)
    except StepFailed as failed:
        shown = "\n".join(
            f"--- {box.name}\n{window.text()}" for box, window in zip(stage.boxes, windows, strict=True)
        )
        raise StepFailed(f"{failed}\n{shown}") from None


async def _perform(stage: Stage, windows: tuple[Window, Window], tell: Say) -> tuple[Leg, Leg]:
    desk, lab = stage.boxes
    await _both_idle(stage)
    tell("Both sessions are idle. At desk, a question is typed.")
    windows[0].type(QUESTION)
    question = await stage.wait("the question to be stored", lambda: desk.journal.first("said"))
    there = await _leg(stage, question, sender=desk, reader=lab)
    tell("lab was woken and has read it.")
    answer = await stage.wait("the answer to be stored", lambda: lab.journal.first("said"))
    back = await _leg(stage, answer, sender=lab, reader=desk)
    tell("desk was woken and has read the answer.")
    return there, back


async def _leg(stage: Stage, said: dict[str, Any], *, sender: Box, reader: Box) -> Leg:
    read = await stage.wait(
        f"{reader.name} to be woken and to read #{said['id']}",
        lambda: reader.journal.first("read", id=said["id"]),
    )
    return Leg.measured(said, read, sender=sender, reader=reader)


async def _both_idle(stage: Stage) -> None:
    """Wait until the record itself says so, through the notifiers' reports."""
    for box in stage.boxes:
        await stage.wait(f"the agent program of {box.name} to start", partial(box.journal.first, "ready"))
    async with Record(stage.url, stage.boxes[0].token()) as record:
        end = asyncio.get_running_loop().time() + STEP_SECONDS
        while (states := await _states(record)) != ["idle"] * len(ROLES):
            if asyncio.get_running_loop().time() > end:
                raise StepFailed(
                    f"Waited {STEP_SECONDS:.0f} s in vain for two idle sessions; they are {states}."
                )
            await asyncio.sleep(0.05)


async def _states(record: Record) -> list[str]:
    return [row["state"] for row in await record.agents() if row["kind"] == "session"]
