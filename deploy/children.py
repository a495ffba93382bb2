"""Child processes that do not outlive us, and servers that outlived an earlier us."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

PR_SET_PDEATHSIG = 1


def dies_with_us(number: signal.Signals) -> Callable[[], None] | None:
    """What a child runs before its program, so that the kernel sends it `number` when its parent ends.

    Linux only; elsewhere None, and the next start deals with what is left. The parent is a thread: start the
    child from one that lives as long as the process. A later change of user would clear the setting.
    """
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getpid()

    def arrange() -> None:
        libc.prctl(PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:
            os.kill(os.getpid(), number)

    return arrange


def command_of(pid: int) -> str:
    """The command line of a live process; empty when it has ended, as a zombie has."""
    proc = Path(f"/proc/{pid}/cmdline")
    if Path("/proc/self/cmdline").exists():
        try:
            return proc.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            return ""
    answer = subprocess.run(
        ["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return answer.stdout.strip()


def exists(pid: int) -> bool:
    """Whether there is a process of this number, even one that has ended and was never collected."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
