"""What ends a program that runs in a terminal: Ctrl-C, a polite kill, the terminal's end."""

from __future__ import annotations

import asyncio
import contextlib
import math
import signal
from collections.abc import Callable, Iterator
from types import FrameType

ECHO_SECONDS = 0.2
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopAsked(BaseException):
    """Somebody wants the program to end while it starts, outside the event loop."""


@contextlib.contextmanager
def raising_stop() -> Iterator[None]:
    """Raise `StopAsked` in the main thread for each of the signals, so that what was begun is undone.

    Afterwards they are ignored: the program is ending.
    """

    def ask(number: int, frame: FrameType | None) -> None:
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


class StopButton:
    """Waits for the first signal; tells of each further one.

    Args:
        again: called at the second signal and at each one after it.
    """

    def __init__(self, again: Callable[[], None]) -> None:
        self._pressed = asyncio.Event()
        self._last = -math.inf
        self._again = again
        for number in wanted():
            asyncio.get_running_loop().add_signal_handler(number, self._press)

    async def wait(self) -> None:
        """Return when somebody wants the program to end."""
        await self._pressed.wait()

    def _press(self) -> None:
        now = asyncio.get_running_loop().time()
        # Programs that run others (timeout, npm) pass on what the terminal has sent to all of us.
        if self._pressed.is_set() and now - self._last > ECHO_SECONDS:
            self._again()
        self._last = now
        self._pressed.set()
