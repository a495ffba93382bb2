"""The terminal that `readyroom run` itself stands in, or the lack of one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import struct
import termios
import tty
from typing import Any

_SIZE = struct.Struct("HHHH")
DEFAULT_SIZE = _SIZE.pack(24, 80, 0, 0)


class Outer:
    """Where a human's keys come from and where the program's output goes.

    Attributes:
        keyboard: the file descriptor that keys are read from.
        screen: the file descriptor that output is written to.
        is_terminal: whether the keyboard is a terminal.
    """

    def __init__(self, keyboard: int = 0, screen: int = 1) -> None:
        self.keyboard = keyboard
        self.screen = screen
        self.is_terminal = os.isatty(keyboard)
        self.modes: list[Any] | None = termios.tcgetattr(keyboard) if self.is_terminal else None

    @property
    def has_keyboard(self) -> bool:
        """False where nothing will ever be typed: /dev/null, or no standard input at all."""
        try:
            return not os.path.samestat(os.fstat(self.keyboard), os.stat(os.devnull))
        except OSError:
            return False

    def raw(self) -> None:
        """Hand every key on as it is. In the background this stops us, as it stops any program."""
        if self.is_terminal:
            with contextlib.suppress(termios.error):
                tty.setraw(self.keyboard, termios.TCSANOW)

    def restore(self) -> None:
        """Give the terminal back as it was found. Twice is fine."""
        if self.modes is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self.keyboard, termios.TCSANOW, self.modes)

    def size(self) -> bytes:
        """The window's size, pixels and all, in the form that TIOCSWINSZ takes."""
        for fd in (self.screen, self.keyboard, 2):
            with contextlib.suppress(OSError):
                size: bytes = fcntl.ioctl(fd, termios.TIOCGWINSZ, DEFAULT_SIZE)
                if any(_SIZE.unpack(size)[:2]):
                    return size
        return DEFAULT_SIZE

    def has_unread_keys(self) -> bool:
        """Whether a key was pressed that nobody has read yet."""
        if not self.is_terminal:
            return False
        return bool(select.select([self.keyboard], [], [], 0)[0])

    def suspend(self) -> bool:
        """Stop with the rest of our job until the shell continues it; False where no shell would."""
        if not self.is_terminal:
            return False
        self.restore()
        ours = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCONT})
        try:
            os.kill(0, signal.SIGTSTP)
            # An orphaned group is not stopped by that; whoever was stopped has a SIGCONT waiting.
            return signal.SIGCONT in signal.sigpending()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            signal.signal(signal.SIGTSTP, ours)
            signal.siginterrupt(signal.SIGTSTP, False)
            self.raw()
