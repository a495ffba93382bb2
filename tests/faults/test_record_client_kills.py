"""The record is killed under load, again and again; its clients notice nothing but the pause."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from notifier.record import Record

WRITERS, SAYS, KILLS = 8, 100, 3
RETURN_SECONDS = 60.0


class Up:
    """A `readyroom up` that can be killed and started again on the same data and port."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._port = 0
        self._start()

    def _start(self) -> None:
        command = [sys.executable, "-m", "readyroom", "up", "--data-dir", str(self.folder), "--no-notifier"]
        env = {name: value for name, value in os.environ.items() if not name.startswith("READYROOM_")}
        self.process = subprocess.Popen(
            [*command, "--port", str(self._port)], stdout=subprocess.DEVNULL, env=env
        )

    async def url(self) -> str:
        await until((self.folder / "up.json").exists)
        url = str(json.loads((self.folder / "up.json").read_text())["url"])
        self._port = int(url.rpartition(":")[2])
        return url

    def kill_and_restart(self) -> None:
        self.process.kill()
        self.process.wait()
        self._start()

    def close(self) -> None:
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(60) == 0
        location = self.folder / "postgres.location"
        if location.exists():
            shutil.rmtree(location.read_text().strip())


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(RETURN_SECONDS):
        while not done():  # noqa: ASYNC110 - what is waited for happens in another process
            await asyncio.sleep(0.02)


def _more_than(said: list[str], count: int) -> bool:
    return len(said) > count


@pytest.mark.faults
@pytest.mark.timeout(400)
async def test_a_record_killed_under_load_stores_each_message_once_and_in_order(tmp_path: Path) -> None:
    up = Up(tmp_path / "d")
    try:
        url = await up.url()
        token = (tmp_path / "d" / "box.token").read_text().strip()
        async with Record(url, token, patience=RETURN_SECONDS) as record:
            said: list[str] = []

            async def write(writer: int) -> None:
                for number in range(SAYS):
                    await record.say("kills", f"{writer}-{number}")
                    said.append(f"{writer}-{number}")

            async def kill() -> None:
                for _ in range(KILLS):
                    before = len(said)
                    await until(partial(_more_than, said, before + 60))
                    up.kill_and_restart()

            await record.start("kills")
            await asyncio.gather(kill(), *map(write, range(WRITERS)))
            messages = await record.history("kills", limit=1000)
        assert sorted(message["body"] for message in messages) == sorted(said)
        assert len(said) == WRITERS * SAYS
        assert [message["id"] for message in messages] == sorted(message["id"] for message in messages)
    finally:
        up.close()
