"""Calls that wait for something to arrive, and can be ended before it does."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from api.errors import BadToken
from api.models import Caller
from api.services.identity import Gone
from api.services.limits import Waiting


@dataclass(eq=False, slots=True)
class Wait:
    """One call that waits."""

    caller: Caller
    task: asyncio.Task[Any]
    reason: Exception | None = None

    def end(self, reason: Exception) -> None:
        """End it: `reason` is raised where it waits."""
        if self.reason is None:
            self.reason = reason
            self.task.cancel()


class Waits:
    """The calls of this process that wait now, through whichever face.

    Args:
        most: so many of one caller may wait at a time.
    """

    def __init__(self, most: int) -> None:
        self._may_wait = Waiting(most)
        self._waiting: set[Wait] = set()

    def end(self, gone: Gone) -> None:
        """End those whose token is valid no longer."""
        for waiting in list(self._waiting):
            caller = waiting.caller
            if gone.covers(realm=caller.realm, name=caller.name, token_id=caller.token_id):
                waiting.end(BadToken())

    @contextlib.asynccontextmanager
    async def one(self, caller: Caller) -> AsyncIterator[Wait]:
        """A call of the current task, for as long as the block lasts.

        Raises:
            RateLimited: as many of the caller's wait as may.
            BadToken: the token went meanwhile.
        """
        task = asyncio.current_task()
        assert task is not None
        waiting = Wait(caller, task)
        with self._may_wait.one(caller.agent_id):
            self._waiting.add(waiting)
            try:
                yield waiting
            except asyncio.CancelledError:
                if waiting.reason is None:
                    raise
                task.uncancel()
                raise waiting.reason from None
            finally:
                self._waiting.discard(waiting)
