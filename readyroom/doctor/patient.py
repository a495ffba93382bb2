"""The throw-away session: a prompt line that knows `/catchup`, and reads what was written to it alone.

`python -m readyroom.doctor.patient JOURNAL`, started by `readyroom run`.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from notifier.record import Record
from notifier.settings import Settings
from readyroom.demo.journal import Journal
from readyroom.demo.prompt import Prompt


def main() -> None:
    """Serve the prompt until end of input."""
    settings, journal = Settings.load(), Journal(Path(sys.argv[1]))
    _hook("session-start")
    with Prompt() as prompt:
        journal.note("ready", agent=settings.agent)
        while (line := prompt.read()) is not None:
            if line.strip() == "/catchup":
                journal.note("keys", at=prompt.first_key)
                _hook("prompt")
                for message in asyncio.run(_read(settings)):
                    journal.note("read", id=message)
                _hook("stop")
    _hook("session-end")


async def _read(settings: Settings) -> list[int]:
    """What waits in our own room; whatever else there is was meant for others, too, and stays theirs."""
    access = settings.access()
    async with Record(access.url, access.token, settings.agent) as record:
        batch = await record.poll(ack="auto", rooms=[f"@{settings.agent}"])
    return [message["id"] for room in batch["rooms"] for message in room["messages"]]


def _hook(event: str) -> None:
    command = [sys.executable, "-P", "-m", "readyroom", "hook", event, "--for", "plain"]
    subprocess.run(command, stdin=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    main()
