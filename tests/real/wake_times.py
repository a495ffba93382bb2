"""How long the real Claude Code takes to begin a turn after something was said.

    python -m tests.real.wake_times --rung native --wakes 40

Run it by hand; it fails nothing. Each wake finds the session idle for some time that is drawn by chance. A
new session, with a new handle, follows before the damper would hold back two agents who only wake each other.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import random
import time
from collections.abc import Iterator

from bench.spread import Spread
from notifier.inbox import Policy
from tests.real import npm
from tests.real.conftest import short_folder
from tests.real.model import Model, served
from tests.real.office import Office, opened
from tests.real.sessions import Session, Way, at_home, seated

REST_SECONDS = (0.6, 1.0)
WAYS: dict[str, Way] = {"native": "tmux", "pty": "run", "tmux": "tmux"}
"""Rung -> how the session is started."""


def main() -> None:
    """Measure one rung, and print how its delays lie."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rung", choices=WAYS, default="native")
    parser.add_argument("--wakes", type=int, default=40)
    asked = parser.parse_args()
    allowed = {} if asked.rung == "native" else {"READYROOM_WAKE": "keystrokes"}
    with short_folder() as folder, opened(folder, **allowed) as office, served() as model:
        delays = list(_delays(office, model, asked.rung, asked.wakes))
        held = [row["hold"] for row in _events(office, "wake_tried") if not row["sent"]]
    spread = Spread.of(delays).to_json()
    print(json.dumps({"rung": asked.rung, "commit → turn started": spread, "held": held}, ensure_ascii=False))


def _delays(office: Office, model: Model, rung: str, wakes: int) -> Iterator[float]:
    sitting = Policy().damper_wakes - 1
    for first in range(0, wakes, sitting):
        with short_folder() as folder:
            home = at_home(office, npm.claude_code(), model, folder)
            room = f"{rung}-{first}"
            with seated(office, model, home, way=WAYS[rung], room=room, rung=rung) as session:
                for number in range(first, min(first + sitting, wakes)):
                    yield _delay(session, f"note {number}")


def _delay(session: Session, body: str) -> float:
    session.until_row(state="idle", unread=0, hold=None)
    time.sleep(random.uniform(*REST_SECONDS))
    message = session.office.say_elsewhere(session.room, body)
    session.until_shown(body)
    said = dt.datetime.fromisoformat(message["created_at"])
    turns = [
        dt.datetime.fromisoformat(row["timestamp"])
        for row in _events(session.office, "hook_heard")
        if row["agent"] == session.agent and row["hook"] == "prompt"
    ]
    return min(turn - said for turn in turns if turn > said).total_seconds()


def _events(office: Office, name: str) -> list[dict[str, str]]:
    lines = (office.data / "notifier.log").read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["event"] == name]


if __name__ == "__main__":
    main()
