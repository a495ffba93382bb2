"""Flags: files, one for each process, by whose change a program is told that something waits for it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time

from notifier.paths import flag_file
from notifier.sessions import Process
from notifier.terminals.process import process_of

TAKE_UP_SECONDS = 6.0
"""A program on a calm machine asks after less than one."""


class Flags:
    """Flags that are up. Who sees one must ask before it wakes, so that one that is late wakes nobody."""

    def __init__(self, *, patience: float = TAKE_UP_SECONDS) -> None:
        self._patience = patience
        self._up: dict[Process, asyncio.Future[bool]] = {}

    async def show(self, folder: str, process: Process) -> bool | None:
        """Change the process's flag, and wait until its program asks; returns what it was told by `answer`.

        None when nobody asked in time: whoever asks later is told no.

        Raises:
            OSError: the flag cannot be written.
        """
        asked: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._up[process] = asked
        try:
            _change(flag_file(folder, process.pid, process.started))
            async with asyncio.timeout(self._patience):
                return await asked
        except TimeoutError:
            return None
        finally:
            del self._up[process]

    def answer(self, process: Process, *, wake: bool) -> bool:
        """The program asks whether it is to wake; `wake`: it still may. True at most once for each flag."""
        asked = self._up.get(process)
        if asked is None or asked.done():
            return False
        asked.set_result(wake)
        return wake


def _change(path: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(f"{time.time_ns()}\n")


def sweep(folder: str) -> None:
    """Remove the flags of processes that are gone."""
    flags = os.path.dirname(flag_file(folder, 0, 0))
    for name in os.listdir(flags) if os.path.isdir(flags) else ():
        pid, _, started = name.partition("-")
        with contextlib.suppress(OSError, ValueError):
            if process_of(int(pid)) != Process(int(pid), int(started)):
                os.unlink(os.path.join(flags, name))
