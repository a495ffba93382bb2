"""Work that makes sense only while something holds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

Result = TypeVar("Result")


async def unless_lost(work: Awaitable[None], lost: asyncio.Future[None]) -> None:
    """Do `work`; when `lost` is done first, stop it. Raises what either raised, `lost` first."""
    working = asyncio.ensure_future(work)
    try:
        await asyncio.wait({working, lost}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    for ended in (lost, working):
        if ended.done() and not ended.cancelled():
            ended.result()


async def heeding(work: Awaitable[Result]) -> Result:
    """Do `work`, and end as cancelled if that was asked for meanwhile.

    Before Python 3.12 `asyncio.wait_for` forgets that it was cancelled when what it waits for comes in the
    same instant. socket.io's client waits so: whoever cancels it and waits for its end would wait for ever.
    """
    result = await work
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
    return result
