"""Is the process that checked in still there, awake, and in front of its terminal?

Linux reads /proc. macOS asks `ps` (untested: written after its manual, never run); there, `started` is in
seconds since 1970.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Literal

from notifier.sessions import Process

LifeHold = Literal["process gone", "suspended"]
ProcessHold = Literal["process gone", "suspended", "not in front"]


@dataclass(frozen=True, slots=True)
class Standing:
    """How a process stands to its terminal.

    Attributes:
        state: the kernel's letter, such as `S`, `R`, `T`, `Z`.
        group: its process group.
        front: the foreground process group of its terminal; -1 without a terminal.
        terminal: its controlling terminal as a device number, or as a name; empty without one.
        started: when it started, as `Process.started` counts it.
    """

    state: str
    group: int
    front: int
    terminal: int | str
    started: int


def hold_of(process: Process, *, tty: str | None) -> ProcessHold | None:
    """Why nothing may be typed to `process` on the terminal `tty` (a path); None when it is in front there.

    Without `tty` the process's own controlling terminal is taken.
    """
    standing = standing_of(process.pid)
    hold = _life_hold(process, standing)
    if standing is None or hold is not None:
        return hold
    if tty is not None and not _is_terminal(standing.terminal, tty):
        return "not in front"
    if standing.front != standing.group:
        return "not in front"
    return None


def life_hold_of(process: Process) -> LifeHold | None:
    """Why `process` cannot take anything up, wherever it runs; None when it is there and awake."""
    return _life_hold(process, standing_of(process.pid))


def _life_hold(process: Process, standing: Standing | None) -> LifeHold | None:
    if standing is None or standing.started != process.started or standing.state in "ZXx":
        return "process gone"
    return "suspended" if standing.state in "Tt" else None


def process_of(pid: int) -> Process | None:
    """The process with this number as it can be told apart from later ones; None when there is none."""
    standing = standing_of(pid)
    return None if standing is None else Process(pid, standing.started)


def standing_of(pid: int) -> Standing | None:
    """How the process with this number stands now; None when there is none."""
    return _from_proc(pid) if sys.platform == "linux" else _from_ps(pid)


def _from_proc(pid: int) -> Standing | None:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field, the name, may hold blanks and parentheses.
    fields = text[text.rindex(")") + 2 :].split()
    return Standing(
        state=fields[0],
        group=int(fields[2]),
        front=int(fields[5]),
        terminal=_device(int(fields[4])),
        started=int(fields[19]),
    )


def _device(number: int) -> int:
    """A device number as stat(2) gives it, from the 32 bits that the kernel prints in /proc."""
    number &= 0xFFFFFFFF
    return os.makedev((number >> 8) & 0xFFF, (number & 0xFF) | ((number >> 12) & 0xFFF00))


def _from_ps(pid: int) -> Standing | None:
    answer = subprocess.run(
        ["ps", "-o", "state=,pgid=,tpgid=,tty=,lstart=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    fields = answer.stdout.split(maxsplit=4)
    if len(fields) < 5:
        return None
    started = time.mktime(time.strptime(fields[4].strip(), "%a %b %d %H:%M:%S %Y"))
    return Standing(
        state=fields[0][0],
        group=int(fields[1]),
        front=int(fields[2]),
        terminal="" if fields[3] == "??" else fields[3],
        started=int(started),
    )


def _is_terminal(terminal: int | str, tty: str) -> bool:
    if isinstance(terminal, str):
        return terminal == os.path.basename(tty)
    try:
        return os.stat(tty).st_rdev == terminal
    except OSError:
        return False
