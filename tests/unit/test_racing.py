"""What is cancelled ends, whatever comes in the same instant."""

from __future__ import annotations

import asyncio

import pytest

from broker_bridge.racing import heeding

WITHIN = 60.0


@pytest.mark.parametrize("turns", range(8))
async def test_work_that_ends_as_it_is_cancelled_is_cancelled(turns: int) -> None:
    came = asyncio.Event()

    async def work() -> None:
        await heeding(asyncio.wait_for(came.wait(), WITHIN))
        await asyncio.Event().wait()

    working = asyncio.create_task(work())
    for _ in range(4):  # it waits
        await asyncio.sleep(0)
    came.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    working.cancel()
    done, _ = await asyncio.wait({working}, timeout=WITHIN)
    assert done == {working}
    assert working.cancelled()


async def test_work_that_nobody_cancels_gives_its_result() -> None:
    assert await heeding(asyncio.sleep(0, "done")) == "done"
