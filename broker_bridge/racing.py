"""Work that makes sense only while something holds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable


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
