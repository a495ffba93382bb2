"""One direction of a relay: bytes that wait to be written, without ever making the event loop wait."""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import Callable

_CHUNK = 4096
"""A terminal or pipe that can be written to takes this much without making us wait."""


class Outlet:
    """Writes to one file descriptor in order; what it does not take yet is kept.

    The descriptor may be a blocking one: others may have it open too, so it is left as it is.

    Attributes:
        gone: nobody reads there any more; what is written is dropped.
    """

    def __init__(self, fd: int, *, on_change: Callable[[int], None], on_gone: Callable[[], None]) -> None:
        """`on_change` is told how many bytes wait, each time that changes from or to none, or grows."""
        self.gone = False
        self._fd = fd
        self._waiting = bytearray()
        self._watched = False
        self._on_change = on_change
        self._on_gone = on_gone

    @property
    def waiting(self) -> int:
        """How many bytes were not taken yet."""
        return len(self._waiting)

    def write(self, data: bytes) -> None:
        """Write as much as is taken now, and keep the rest for later."""
        if not self.gone:
            self._waiting += data
            self._flush()

    def close(self) -> None:
        """Write no more. The descriptor stays open."""
        self._watch(on=False)

    def _flush(self) -> None:
        before = len(self._waiting)
        try:
            while self._waiting and select.select([], [self._fd], [], 0)[1]:
                del self._waiting[: os.write(self._fd, self._waiting[:_CHUNK])]
        except BlockingIOError:
            pass
        except OSError:
            self.gone = True
            self._waiting.clear()
            self._on_gone()
        self._watch(on=bool(self._waiting))
        if before != len(self._waiting) or self._waiting:
            self._on_change(len(self._waiting))

    def _watch(self, *, on: bool) -> None:
        if on == self._watched:
            return
        self._watched = on
        loop = asyncio.get_running_loop()
        if on:
            loop.add_writer(self._fd, self._flush)
        else:
            loop.remove_writer(self._fd)
