"""A terminal with a program in it, and a human before it: a private tmux server with a client attached."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ptyprocess import PtyProcess

from tests.real.need import need
from tests.real.waiting import until

ROWS, COLUMNS = 40, 110
KEYS = {"Enter": b"\r", "Escape": b"\x1b", "Backspace": b"\x7f"}


@dataclass(frozen=True)
class Terminal:
    """One pane, looked at and typed into as a human does, through a client of the server."""

    socket: Path
    client: PtyProcess

    def screen(self) -> str:
        """What it shows, with one kind of blank."""
        return tmux(self.socket, "capture-pane", "-p").replace("\xa0", " ")

    def type(self, text: str) -> None:
        """Press the keys of a text, and no Enter."""
        self.client.write(text.encode())

    def press(self, key: str, *, times: int = 1) -> None:
        """Press a key that has a name."""
        self.client.write(KEYS[key] * times)

    def until_shown(self, text: str) -> None:
        """Wait until the screen holds a text."""
        until(lambda: text in self.screen(), lambda: f"{text!r} on the screen:\n{self.screen()}")

    def until_gone(self, text: str) -> None:
        """Wait until the screen does not hold a text."""
        until(lambda: text not in self.screen(), lambda: f"no {text!r} on the screen:\n{self.screen()}")


@contextmanager
def opened(folder: Path, command: Sequence[str], *, env: dict[str, str], cwd: Path) -> Iterator[Terminal]:
    """Run a command in a terminal of its own; everything ends with the block."""
    socket = folder / "tmux.sock"
    size = ("-x", str(COLUMNS), "-y", str(ROWS))
    tmux(socket, "-f", os.devnull, "new-session", "-d", *size, "-c", str(cwd), "--", *command, env=env)
    server, program = tmux(socket, "display-message", "-p", "#{pid} #{pane_pid}").split()
    try:
        client = PtyProcess.spawn(
            [need("tmux"), "-S", str(socket), "attach-session"], env=env, dimensions=(ROWS, COLUMNS)
        )
        eyes = threading.Thread(target=_see_all, args=(client,))
        eyes.start()
        try:
            until(lambda: tmux(socket, "list-clients"), "the client")
            yield Terminal(socket, client)
        finally:
            _end(socket, server, program)
            eyes.join()
            client.close()
    finally:
        _end(socket, server, program)


def _end(socket: Path, *pids: str) -> None:
    """End the server, and with it the client and, by a hang-up, the program."""
    with contextlib.suppress(subprocess.CalledProcessError):
        tmux(socket, "kill-server")
    for pid in pids:
        until(lambda: not Path(f"/proc/{pid}").exists(), f"the end of process {pid}")  # noqa: B023


def _see_all(client: PtyProcess) -> None:
    with contextlib.suppress(EOFError, OSError):
        while True:
            client.read(65536)


def tmux(socket: Path, *arguments: str, env: dict[str, str] | None = None) -> str:
    """The answer of one tmux command."""
    command = [need("tmux"), "-S", str(socket), *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=20).stdout
