"""What a program is told by signals: to end (Ctrl-C, a polite kill, its terminal's end), and to reload."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import signal
from collections.abc import Callable, Iterator
from types import FrameType

ECHO_SECONDS = 0.2
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopAsked(BaseException):
    """Somebody wants the program to end while it starts, outside the event loop."""


def spare_hangups() -> None:
    """While the program starts, SIGHUP ends it only with its terminal: there is nothing to reload yet."""
    is_over = terminal_gone()

    def hung_up(number: int, frame: FrameType | None) -> None:
        if is_over():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    if signal.SIGHUP in wanted():
        signal.signal(signal.SIGHUP, hung_up)


@contextlib.contextmanager
def raising_stop() -> Iterator[None]:
    """Raise `StopAsked` in the main thread for each of the signals, so that what was begun is undone.

    SIGHUP does so only when the terminal is gone. Afterwards they are ignored: the program is ending.
    """
    is_over = terminal_gone()

    def ask(number: int, frame: FrameType | None) -> None:
        if number != signal.SIGHUP or is_over():
            raise StopAsked

    numbers = wanted()
    for number in numbers:
        signal.signal(number, ask)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)


def wanted() -> list[signal.Signals]:
    """The signals that end the program; one that was ignored when it started (nohup) stays so."""
    return [number for number in STOPPING if signal.getsignal(number) is not signal.SIG_IGN]


def has_terminal() -> bool:
    """Whether this process has a controlling terminal that is still there."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def terminal_gone() -> Callable[[], bool]:
    """Later tells whether the terminal is gone that there is now."""
    had_one = has_terminal()
    return lambda: had_one and not has_terminal()


class StopButton:
    """Waits for the first signal that ends the program; tells of each further one.

    SIGHUP ends it only when the terminal that it was started in is gone. Otherwise it means: reload.

    Args:
        again: called at the second signal and at each one after it.
        reload: called at each SIGHUP that does not end the program.
    """

    def __init__(self, again: Callable[[], None], reload: Callable[[], None]) -> None:
        self._pressed = asyncio.Event()
        self._last = -math.inf
        self._again, self._reload = again, reload
        self._ends_with_terminal = signal.SIGHUP in wanted()
        self._terminal_gone = terminal_gone()
        self._shown = [stream for stream in (1, 2) if os.isatty(stream)]
        loop = asyncio.get_running_loop()
        for number in wanted():
            loop.add_signal_handler(number, self._press)
        loop.add_signal_handler(signal.SIGHUP, self._hung_up)

    async def wait(self) -> None:
        """Return when somebody wants the program to end."""
        await self._pressed.wait()

    def _hung_up(self) -> None:
        if self._ends_with_terminal and self._terminal_gone():
            for stream in self._shown:  # what is still to be said has nowhere to go
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            self._press()
        else:
            self._reload()

    def _press(self) -> None:
        now = asyncio.get_running_loop().time()
        # Programs that run others (timeout, npm) pass on what the terminal has sent to all of us.
        if self._pressed.is_set() and now - self._last > ECHO_SECONDS:
            self._again()
        self._last = now
        self._pressed.set()
