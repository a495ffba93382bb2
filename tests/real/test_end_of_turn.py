"""What is said when a turn is about to end, or has just ended, is read once, and nobody waits for the sweep.

The model's last word ends the turn; the program's hooks follow it. In every other round something is said
100 ms before that word, in the others within half a second after it, where the hooks look and the session
comes to rest. `READYROOM_TEST_TURN_ENDS` says how many rounds, 10 unless given.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from notifier.inbox import Policy
from tests.real import claude_sessions, gemini
from tests.real.codex import seated
from tests.real.model import Model
from tests.real.office import Office
from tests.real.session import Session
from tests.real.waiting import until

ROUNDS = int(os.environ.get("READYROOM_TEST_TURN_ENDS", "10"))
ROUND_SECONDS = 60.0
"""On the whole no round takes longer."""

pytestmark = [pytest.mark.real, pytest.mark.timeout(ROUND_SECONDS * (ROUNDS + 5))]

BEFORE_SECONDS = 0.1
AFTER_SECONDS = 0.5
SWEEP = Policy().sweep
SPEAKS = 8
"""Rounds before another speaks: two who only wake each other would be held back."""

Record = Callable[[str, object], None]


def test_claude_code_reads_it_once(
    office: Office, claude_code: Path, model: Model, folder: Path, record_property: Record
) -> None:
    home = claude_sessions.at_home(office, claude_code, model, folder)
    with claude_sessions.seated(
        office, model, home, way="tmux", room="claude-ends", rung="native"
    ) as session:
        record_property("ends", _rounds(session))


def test_codex_reads_it_once(
    office: Office, codex: Path, model: Model, folder: Path, record_property: Record
) -> None:
    with seated(office, codex, model, folder, room="codex-ends") as session:
        record_property("ends", _rounds(session))


def test_gemini_reads_it_once(
    office: Office, gemini_cli: Path, model: Model, folder: Path, record_property: Record
) -> None:
    with gemini.seated(office, gemini_cli, model, folder, room="gemini-ends") as session:
        record_property("ends", _rounds(session))


def _rounds(session: Session[Any]) -> dict[str, object]:
    """Play them all; returns how each message came, and the longest time in seconds that one took."""
    ways: Counter[str] = Counter()
    longest = 0.0
    speaker = ""
    for number in range(ROUNDS):
        if number % SPEAKS == 0:
            speaker = session.office.newcomer(session.room)
        took, way = _round(session, speaker, number, before=number % 2 == 0)
        ways[way] += 1
        longest = max(longest, took)
    bodies = [session.model.times_told(f"> {_body(number)}") for number in range(ROUNDS)]
    assert bodies == [1] * ROUNDS
    return {**ways, "longest": round(longest, 2)}


def _round(session: Session[Any], speaker: str, number: int, *, before: bool) -> tuple[float, str]:
    model, thought = session.model, f"think about {number}."
    session.until_row(state="idle", unread=0, hold=None)
    model.hold()
    session.front.prompt(thought)
    until(lambda: model.was_told(thought), session.scene)
    if before:
        session.office.say_as(speaker, session.room, _body(number))
        said = time.monotonic()
        time.sleep(BEFORE_SECONDS)
        model.go_on()
    else:
        model.go_on()
        time.sleep(random.uniform(0, AFTER_SECONDS))
        session.office.say_as(speaker, session.room, _body(number))
        said = time.monotonic()
    until(lambda: model.times_told(f"> {_body(number)}"), session.scene, seconds=SWEEP)
    took = time.monotonic() - said
    moment = "100 ms before" if before else "after"
    return took, f"{moment}: {'handed over' if model.was_handed(f'> {_body(number)}') else 'woken'}"


def _body(number: int) -> str:
    return f"said in round {number}."
