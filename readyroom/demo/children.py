"""Processes that the demo starts and, whatever happens, ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from deploy.children import dies_with_us

READYROOM = (sys.executable, "-m", "readyroom")


class StepFailed(Exception):
    """Something did not come in time, or ended before it should; the text says what."""


class Child:
    """A process in a session of its own, its output in a file."""

    def __init__(self, name: str, command: Sequence[str], *, env: Mapping[str, str], log: Path) -> None:
        self.name = name
        self.log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=dies_with_us(signal.SIGTERM),
            )

    def check(self) -> None:
        """Raise StepFailed if it has ended, with its last lines."""
        status = self._process.poll()
        if status is not None:
            tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-8:])
            raise StepFailed(f"{self.name} ended with status {status}:\n{tail}")

    def end(self, *, within: float) -> None:
        """Ask it to end, and kill its process group after `within` seconds."""
        self._process.terminate()
        try:
            self._process.wait(within)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
