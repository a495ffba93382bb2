"""One program on a terminal, started and watched over by `leader.py`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from notifier.sessions import Process
from notifier.terminals.process import process_of

_LEADER = Path(__file__).with_name("leader.py")


class CommandError(Exception):
    """The program could not be started; the text says why."""


class Child:
    """The program and what becomes of it.

    Attributes:
        process: the program's process while it runs; it leads a process group of its own.
        ended: its exit status, or minus the signal that killed it; a CommandError where it never ran.
        started: set once it runs, or has failed to.
    """

    def __init__(self, *, on_started: Callable[[], None], on_stopped: Callable[[int], None]) -> None:
        """`on_started` is called when it is in front of its terminal; `on_stopped` with the signal."""
        self.process: Process | None = None
        self.started = asyncio.Event()
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._on_started = on_started
        self._on_stopped = on_stopped
        self._name = ""
        self._said = b""
        self._status = -1
        self._leader: subprocess.Popen[bytes] | None = None

    def start(self, command: Sequence[str], *, environ: Mapping[str, str], terminal: int) -> None:
        """Start the program with `terminal`, a file descriptor, as its terminal."""
        self._name = command[0]
        self._status, told = os.pipe()
        try:
            self._leader = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_LEADER), str(told), *command],
                stdin=terminal,
                stdout=terminal,
                stderr=terminal,
                env=environ,
                start_new_session=True,
                pass_fds=[told],
            )
        finally:
            os.close(told)
        asyncio.get_running_loop().add_reader(self._status, self._hear)

    def signal(self, number: int) -> None:
        """Send a signal to the program's process group, if it still runs."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    def close(self) -> None:
        """Wait for the leader, which ends with the program, or when the terminal is closed."""
        if self._leader is not None:
            asyncio.get_running_loop().remove_reader(self._status)
            os.close(self._status)
            self._leader.wait()

    def _hear(self) -> None:
        said = os.read(self._status, 4096)
        *lines, self._said = (self._said + said).split(b"\n")
        for line in lines:
            word, number = line.split()
            self._take(word.decode(), int(number))
        if not said:
            asyncio.get_running_loop().remove_reader(self._status)
            self._end(-signal.SIGKILL)

    def _take(self, word: str, number: int) -> None:
        match word:
            case "started":
                self.process = process_of(number)
                self.started.set()
                self._on_started()
            case "failed" if not self.ended.done():
                why = f"{self._name} cannot be started: {os.strerror(number)}"
                self.ended.set_exception(CommandError(why))
            case "stopped":
                self._on_stopped(number)
            case "ended":
                self._end(number)

    def _end(self, how: int) -> None:
        self.process = None
        self.started.set()
        if not self.ended.done():
            self.ended.set_result(how)
