"""Many listeners of the nerve in a process of their own: `python -m bench.ears`.

Its first line of input is JSON: `url`, `room`, and `tokens`, one for each listener. It prints `ready`, then
for each nudge of that room, once every listener has heard it, a JSON list of when each did (seconds since
1970). It ends with its input.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import time

import structlog

from broker_bridge.nudge import Nudge
from broker_bridge.tyo_mq import Listener


class Ears:
    """Counts what its listeners hear; one nudge at a time is under way."""

    def __init__(self, url: str, room: str, tokens: list[str]) -> None:
        self._room = room
        self._heard: list[float] = []
        self._up = 0
        self._listeners = [
            Listener(url, token, f"ear-{os.getpid()}-{number}", self._on_nudge, self._on_state)
            for number, token in enumerate(tokens)
        ]

    async def run(self) -> None:
        """Listen until cancelled."""
        await asyncio.gather(*(listener.run() for listener in self._listeners))

    def _on_nudge(self, nudge: Nudge) -> None:
        if nudge.conv == self._room:
            self._heard.append(time.time())
            if len(self._heard) == len(self._listeners):
                _tell(json.dumps(self._heard))
                self._heard = []

    def _on_state(self, hears: bool) -> None:
        self._up += 1 if hears else -1
        if self._up == len(self._listeners):
            _tell("ready")


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def _main() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    wanted = json.loads(sys.stdin.readline())
    listening = asyncio.create_task(Ears(wanted["url"], wanted["room"], wanted["tokens"]).run())
    await asyncio.to_thread(sys.stdin.read)
    listening.cancel()


if __name__ == "__main__":
    asyncio.run(_main())
