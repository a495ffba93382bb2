"""The two terminals of the demo: tmux panes to look at, or plain pseudo-terminals."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import ptyprocess

SIZE = (24, 100)
"""Rows and columns."""


SESSION = "demo"
FOLDER_PATH_BYTES = 80
"""The kernels end a socket's path at 104 (macOS) or 108 bytes (Linux)."""


class Window(Protocol):
    """A terminal with an agent program in it."""

    def type(self, line: str) -> None:
        """Type a line as a human would, and submit it."""

    def text(self) -> str:
        """What it shows, for an error."""

    def close(self) -> None:
        """Hang up. Twice is fine."""


class PtyWindow:
    """A pseudo-terminal; each line that is printed into it goes to `show`."""

    def __init__(
        self, command: Sequence[str], *, env: Mapping[str, str], show: Callable[[bytes], None]
    ) -> None:
        self._process = ptyprocess.PtyProcess.spawn(list(command), env=dict(env), dimensions=SIZE)
        self._show = show
        self._printed = b""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._process.fd, self._read)

    def type(self, line: str) -> None:
        """Type a line and submit it."""
        self._process.write(line.encode() + b"\r")

    def text(self) -> str:
        """The last of what was printed."""
        return self._printed[-2000:].decode(errors="replace")

    def close(self) -> None:
        """Hang up and wait for the program's end."""
        self._loop.remove_reader(self._process.fd)
        self._process.close(force=True)

    def _read(self) -> None:
        try:
            data = os.read(self._process.fd, 65536)
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._process.fd)
        self._printed += data
        self._show(data)


class Tmux:
    """A tmux server of our own with one pane for each program."""

    def __init__(self, socket: Path, *, env: Mapping[str, str]) -> None:
        self._tmux = ("tmux", "-S", str(socket), "-f", "/dev/null")
        self._env = dict(env)
        self._panes = 0

    def open(self, name: str, command: Sequence[str], *, own: Mapping[str, str]) -> TmuxPane:
        """Start a program in a new pane. `own` is seen in process lists."""
        rows, columns = SIZE
        where = (
            ["split-window", "-h"]
            if self._panes
            else ["new-session", "-d", "-s", SESSION, "-x", f"{2 * columns}", "-y", f"{rows}"]
        )
        variables = [f"{key}={value}" for key, value in own.items()]
        pane = self._run(*where, "-P", "-F", "#{pane_id}", "env", *variables, *command)
        self._panes += 1
        self._run("select-pane", "-t", pane, "-T", name)
        self._run("set-option", "-g", "status", "off")
        self._run("set-option", "-g", "pane-border-status", "top")
        self._run("set-option", "-g", "pane-border-format", " #{pane_title} ")
        self._run("select-layout", "even-horizontal")
        return TmuxPane(self._run, pane)

    def attach(self) -> subprocess.Popen[bytes]:
        """Show the panes on our own terminal, for looking only."""
        return subprocess.Popen([*self._tmux, "attach-session", "-r"], env=self._env)

    def detach(self) -> None:
        """Give our own terminal back, without tmux's word of farewell."""
        subprocess.run(
            [*self._tmux, "detach-client", "-s", SESSION, "-E", "true"],
            env=self._env,
            capture_output=True,
            check=False,
        )

    def close(self) -> None:
        """End the server and what runs in it."""
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, check=False)

    def _run(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self._tmux, *arguments], env=self._env, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()


@contextmanager
def short_folder(folder: Path) -> Iterator[Path]:
    """A private folder whose path leaves room for a socket's name: `folder`, or one that goes away again."""
    if len(os.fsencode(folder)) <= FOLDER_PATH_BYTES:
        yield folder
    else:
        with tempfile.TemporaryDirectory(prefix="readyroom-", dir="/tmp") as short:
            yield Path(short)


class TmuxPane:
    """One pane."""

    def __init__(self, run: Callable[..., str], pane: str) -> None:
        self._run = run
        self._pane = pane

    def type(self, line: str) -> None:
        """Type a line and submit it."""
        self._run("send-keys", "-t", self._pane, "-l", line)
        self._run("send-keys", "-t", self._pane, "Enter")

    def text(self) -> str:
        """What the pane shows."""
        try:
            return self._run("capture-pane", "-p", "-t", self._pane)
        except subprocess.CalledProcessError:
            return "(gone)"

    def close(self) -> None:
        """Nothing: panes end with their server."""
