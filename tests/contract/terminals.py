"""What the terminal tests stand on: a human at a terminal, tmux servers, the program's record of bytes."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from notifier.sessions import Process, TmuxPane
from notifier.terminals.process import process_of

TUI = str(Path(__file__).with_name("tui.py"))
BARE_RUN = str(Path(__file__).with_name("bare_run.py"))
DEADLINE = 60.0

needs_tmux = pytest.mark.skipif(
    shutil.which("tmux") is None, reason="TMUX IS MISSING: the gates of the tmux rung were NOT tested"
)


def until(condition: Callable[[], bool], what: str, *, within: float = DEADLINE) -> None:
    """Wait for the thing itself."""
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"never happened: {what}")
        time.sleep(0.01)


async def until_async(condition: Callable[[], bool], what: str, *, within: float = DEADLINE) -> None:
    """Wait for the thing itself, while the loop goes on."""
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"never happened: {what}")
        await asyncio.sleep(0.01)


class Record:
    """Every byte that reached a program."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def bytes(self) -> bytes:
        return self.path.read_bytes() if self.path.exists() else b""


class Human:
    """A terminal with a human at it, in front of one command."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        environ: dict[str, str] | None = None,
        cwd: Path | None = None,
        reading: bool = True,
    ) -> None:
        """`reading`: keep what is shown; without it the test reads `fd` itself."""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            if cwd is not None:
                os.chdir(cwd)
            os.execvpe(command[0], list(command), {**os.environ, "TERM": "xterm-256color", **(environ or {})})
        self.shown = b""
        self._status: int | None = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        if reading:
            self._reader.start()
        self.resize(30, 100)

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while data := os.read(self.fd, 65536):
                self.shown += data

    def type(self, keys: bytes) -> None:
        os.write(self.fd, keys)

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def sees(self, text: bytes, *, times: int = 1) -> None:
        until(lambda: self.shown.count(text) >= times, f"{text!r} in {self.shown[-2000:]!r}")

    def wait(self) -> int:
        """The exit status, or minus the signal."""

        def ended() -> bool:
            if self._status is None:
                pid, how = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self._status = os.waitstatus_to_exitcode(how)
            return self._status is not None

        until(ended, f"end of {self.pid}; shown: {self.shown[-500:]!r}")
        assert self._status is not None
        return self._status

    def close(self) -> None:
        if self._status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
                os.kill(self.pid, signal.SIGCONT)
            self.wait()
        with contextlib.suppress(OSError):
            os.close(self.fd)
        if self._reader.is_alive():
            self._reader.join(DEADLINE)


class TmuxServer:
    """A tmux server of its own socket."""

    def __init__(self, socket: Path) -> None:
        self.socket = str(socket)

    def ask(self, *arguments: str) -> str:
        return subprocess.run(
            ["tmux", "-S", self.socket, "-f", "/dev/null", *arguments],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "LC_ALL": "C.UTF-8", "TMUX": ""},
            timeout=DEADLINE,
        ).stdout.strip()

    def new(self, name: str, command: str) -> str:
        """A session with one window; returns the pane's id."""
        return self.ask(
            *("new-session", "-d", "-s", name, "-x", "100", "-y", "30", "-P", "-F", "#{pane_id}"), command
        )

    def pane(self, pane: str) -> TmuxPane:
        return TmuxPane(self.socket, int(self.ask("display-message", "-p", "#{pid}")), pane)

    def process(self, pane: str) -> Process:
        process = process_of(int(self.ask("display-message", "-p", "-t", pane, "#{pane_pid}")))
        assert process is not None
        return process

    def screen(self, pane: str) -> str:
        return self.ask("capture-pane", "-p", "-t", pane)

    def shows(self, pane: str, text: str) -> None:
        until(lambda: text in self.screen(pane), f"{text!r} in pane {pane}")

    def kill(self) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):
            self.ask("kill-server")


def tui(record: Record, *options: str) -> list[str]:
    """The command line of the scripted program."""
    return [sys.executable, "-I", "-S", TUI, str(record.path), *options]


def program_of(record: Record) -> Process:
    """The scripted program that writes `record`, known by its arguments."""
    ours = [TUI.encode(), str(record.path).encode()]

    def pids() -> list[int]:
        return [int(folder.name) for folder in Path("/proc").glob("[0-9]*") if arguments(folder)[3:5] == ours]

    until(lambda: bool(pids()), "the scripted program")
    process = process_of(pids()[0])
    assert process is not None
    return process


def arguments(folder: Path) -> list[bytes]:
    try:
        return (folder / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return []
