"""Taking turns at what costs much, so that nobody keeps the others from it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from weakref import WeakValueDictionary

from api.errors import Unavailable
from api.models import Caller


class Turns:
    """Lets a few at a time, of one box or person one.

    So the places go round boxes and people, and within a box round its sessions.

    Args:
        places: how many at a time.
        wait_seconds: how long a turn is waited for.
        busy: makes what is raised when it did not come.
    """

    def __init__(self, places: int, *, wait_seconds: float, busy: Callable[[], Unavailable]) -> None:
        self._places = asyncio.Semaphore(places)
        self._wait_seconds = wait_seconds
        self._busy = busy
        self._agents: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
        self._holders: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    @contextlib.asynccontextmanager
    async def turn(self, caller: Caller) -> AsyncIterator[None]:
        """Wait for the caller's turn; it lasts as long as the block."""
        holder_id = caller.agent_id if caller.box_id is None else caller.box_id
        agents_turn = self._agents.setdefault(caller.agent_id, asyncio.Lock())
        holders_turn = self._holders.setdefault(holder_id, asyncio.Lock())
        async with contextlib.AsyncExitStack() as held:
            try:
                async with asyncio.timeout(self._wait_seconds):
                    await held.enter_async_context(agents_turn)
                    await held.enter_async_context(holders_turn)
                    await held.enter_async_context(self._places)
            except TimeoutError:
                raise self._busy() from None
            yield
