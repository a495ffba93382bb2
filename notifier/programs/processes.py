"""Who is running: processes as the system shows them: /proc on Linux, `ps` elsewhere (untested on macOS)."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_DEPTH = 12
_SHELLS = ("sh", "bash", "dash", "zsh", "fish", "ksh", "busybox", "env")
_PTS_MAJORS = range(136, 144)


class Seen:
    """One process at one moment.

    Attributes:
        pid: the process id.
        parent: its parent's.
        started: its start time; Linux: clock ticks since boot, elsewhere: epoch seconds.
        stopped: it was suspended (Ctrl-Z, SIGSTOP).
        tty: path of its controlling terminal.
        name: the first 15 bytes of its program's name.
    """

    __slots__ = ("name", "parent", "pid", "started", "stopped", "tty")

    def __init__(
        self, pid: int, *, parent: int, started: int, stopped: bool, tty: str | None, name: str
    ) -> None:
        self.pid = pid
        self.parent = parent
        self.started = started
        self.stopped = stopped
        self.tty = tty
        self.name = name


def look(pid: int) -> Seen | None:
    """The process as it is now; None when there is none, or only a zombie."""
    return _look_in_proc(pid) if sys.platform == "linux" else _look_with_ps(pid)


def ancestors(pid: int) -> Iterator[Seen]:
    """`pid` and its parents, nearest first, as far as they are of interest."""
    for _ in range(_DEPTH):
        seen = look(pid) if pid > 1 else None
        if seen is None:
            return
        yield seen
        pid = seen.parent


def nearest_program(ancestors: Sequence[Seen]) -> Seen | None:
    """The first that is no shell; if all are shells, the first."""
    return next((seen for seen in ancestors if seen.name not in _SHELLS), next(iter(ancestors), None))


def _look_in_proc(pid: int) -> Seen | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            stat = file.read().decode(errors="replace")
        # The name stands in brackets and may hold blanks and brackets itself.
        name, _, rest = stat.partition("(")[2].rpartition(")")
        field = rest.split()
        if field[0] in "ZX":
            return None
        return Seen(
            pid,
            parent=int(field[1]),
            started=int(field[19]),
            stopped=field[0] in "Tt",
            tty=_terminal(int(field[4])),
            name=name,
        )
    except (OSError, ValueError, IndexError):
        return None


def _terminal(device: int) -> str | None:
    major, minor = os.major(device), os.minor(device)
    if major in _PTS_MAJORS:
        return f"/dev/pts/{(major - _PTS_MAJORS[0]) * 256 + minor}"
    return f"/dev/tty{minor}" if major == 4 else None


def _look_with_ps(pid: int) -> Seen | None:
    import subprocess
    import time

    columns = "ppid=,stat=,tty=,lstart=,ucomm="
    try:
        done = subprocess.run(
            ["ps", "-o", columns, "-p", str(pid)],
            capture_output=True,
            text=True,
            timeout=1,
            check=True,
            env={**os.environ, "LC_ALL": "C"},
        )
        parent, state, tty, *when, name = done.stdout.split(maxsplit=8)
        if state.startswith("Z"):
            return None
        return Seen(
            pid,
            parent=int(parent),
            started=int(time.mktime(time.strptime(" ".join(when)))),
            stopped=state.startswith("T"),
            tty=None if tty.startswith("?") else f"/dev/{tty}",
            name=name.strip()[:15],
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
