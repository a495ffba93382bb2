"""A small scripted agent program: a prompt line that understands `/catchup`, asks, and answers.

It does what a real one does: it tells its notifier through `readyroom hook` when a turn begins and ends, and
reads and writes only when it is prompted. `python -m readyroom.demo.agent --room ROOM --log FILE`.
"""

from __future__ import annotations

import argparse
import asyncio
import platform
import subprocess
import sys
from pathlib import Path

from notifier.record import Record, RecordError
from notifier.settings import Settings
from readyroom.demo.journal import Journal
from readyroom.demo.prompt import Prompt
from readyroom.screen import Screen


class Agent:
    """One turn for each submitted line: `/catchup` reads and answers, anything else is said in the room."""

    def __init__(self, *, settings: Settings, room: str, journal: Journal) -> None:
        self._settings = settings
        self._room = room
        self._journal = journal
        self._screen = Screen(as_json=False)

    def run(self) -> None:
        """Serve the prompt until end of input."""
        self._screen.line(f"{self._settings.agent} is ready.", "bold green")
        self._hook("session-start")
        with Prompt() as prompt:
            self._journal.note("ready")
            while (line := prompt.read()) is not None:
                if line.strip():
                    self._journal.note("keys", at=prompt.first_key)
                    self._journal.note("enter")
                    self._turn(line.strip())
        self._hook("session-end")

    def _turn(self, line: str) -> None:
        self._hook("prompt")
        try:
            asyncio.run(self._act(line))
        except RecordError as error:
            self._screen.line(error.detail, "red")
        self._hook("stop")
        self._journal.note("rested")

    async def _act(self, line: str) -> None:
        access = self._settings.access()
        async with Record(access.url, access.token, self._settings.agent) as record:
            if line == "/catchup":
                await self._catch_up(record)
            else:
                await self._say(record, line)

    async def _catch_up(self, record: Record) -> None:
        batch = await record.poll(max_bytes=32 * 1024)
        messages = [message for room in batch["rooms"] for message in room["messages"]]
        for message in messages:
            self._screen.message(message)
        self._screen.flush()
        if batch["lease"] is not None:
            await record.ack(batch["lease"])
        for message in messages:
            self._journal.note("read", id=message["id"])
        for message in messages:
            if message["body"].endswith("?"):
                await self._say(record, f"Python {platform.python_version()} on {platform.system()}.")

    async def _say(self, record: Record, text: str) -> None:
        said = await record.say(self._room, text)
        message = said["message"]
        self._journal.note("said", id=message["id"], created_at=message["created_at"])
        self._screen.line(f"said: {text}", "green")

    def _hook(self, event: str) -> None:
        command = [sys.executable, "-m", "readyroom", "hook", event, "--for", "plain"]
        subprocess.run(command, stdin=subprocess.DEVNULL, check=True)


def main() -> None:
    """Read the arguments and the environment, and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--room", required=True)
    parser.add_argument("--log", type=Path, required=True)
    given = parser.parse_args()
    Agent(settings=Settings.load(), room=given.room, journal=Journal(given.log)).run()


if __name__ == "__main__":
    main()
