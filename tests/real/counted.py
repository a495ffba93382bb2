"""Becomes a program, and keeps a copy of every byte that is typed at it: `counted.py LOG PROGRAM ARGUMENT…`.

The program keeps this process's number, its terminal and its place in front there; only its standard input is
another pseudo-terminal, into which a child of this process pours what comes from the real one.
"""

from __future__ import annotations

import os
import pty
import signal
import sys
import termios
import time
import tty

GRACE_SECONDS = 5.0


def main(log: str, command: list[str]) -> None:
    """Fork off the child that counts, and become the program."""
    outer = os.dup(0)
    set_raw(outer)
    master, slave = pty.openpty()
    program = os.getpid()
    if os.fork() == 0:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        os.close(slave)
        pour(outer, master, log)
        see_off(program)
        os._exit(0)
    os.dup2(slave, 0)
    for fd in (outer, master, slave):
        os.close(fd)
    os.execv(command[0], command)


def set_raw(terminal: int) -> None:
    """As programs do to their input; what they print is still processed, since some count on it."""
    before = termios.tcgetattr(terminal)[1]
    tty.setraw(terminal)
    mode = termios.tcgetattr(terminal)
    mode[1] = before
    termios.tcsetattr(terminal, termios.TCSANOW, mode)


def pour(outer: int, master: int, log: str) -> None:
    """Pass bytes on until either side is gone; each is in the log before the program can see it."""
    kept = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        while data := os.read(outer, 4096):
            os.write(kept, data)
            os.write(master, data)
    except OSError:
        pass


def see_off(program: int) -> None:
    """End a program, and all that it runs, that does not end with its terminal: some do not at a dialog."""
    end = time.monotonic() + GRACE_SECONDS
    while os.getppid() == program:
        if time.monotonic() > end:
            os.killpg(0, signal.SIGKILL)
        time.sleep(0.05)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
