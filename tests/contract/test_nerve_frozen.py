"""A link whose packets go nowhere for a while: neither end is told."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from broker_bridge.nudge import Nudge
from tests.contract.nerves import listening, served, talking, until

# A link that is cut off while it hangs leaves its connection to the collector, which says so. It is made to
# do that here, and not in the middle of another test.
pytestmark = [
    pytest.mark.faults,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Leave nothing to the collector of the next test."""
    yield
    gc.collect()


class Wire:
    """A TCP proxy that can stop carrying, both ways, without closing anything."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._thawed = asyncio.Event()
        self._thawed.set()
        self._pipes: set[asyncio.Task[None]] = set()
        self.carried = 0

    def freeze(self) -> None:
        self._thawed.clear()

    def thaw(self) -> None:
        self._thawed.set()

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.carried += 1
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        for pipe in (self._carry(reader, far_writer), self._carry(far_reader, writer)):
            task = asyncio.create_task(pipe)
            self._pipes.add(task)
            task.add_done_callback(self._pipes.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                await self._thawed.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def close(self) -> None:
        for pipe in list(self._pipes):
            pipe.cancel()
        await asyncio.gather(*self._pipes, return_exceptions=True)


@asynccontextmanager
async def wired(target: str) -> AsyncIterator[tuple[Wire, str]]:
    wire = Wire(int(urlsplit(target).port or 0))
    server = await asyncio.start_server(wire.connect, "127.0.0.1", 0)
    try:
        yield wire, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        await wire.close()
        server.close()


async def test_both_links_are_back_within_five_seconds_after_a_long_silence() -> None:
    async with (
        served() as (broker, near),
        wired(near) as (wire, url),
        listening(url) as (_, heard, states),
        talking(url) as nerve,
    ):
        await until(lambda: states == [True] and nerve.state == "ok", "both links")
        wire.freeze()
        await until(lambda: states[-1] is False and nerve.state == "degraded", "the silence", 60)
        await until(lambda: broker.connections == 0, "the broker to give them up", 60)
        nerve.nudge(Nudge("api", "a", 1), realm="main", names={"work3"})
        wire.thaw()
        began = time.monotonic()
        await until(lambda: states[-1] and nerve.state == "ok", "both links again")
        assert time.monotonic() - began < 15
        nerve.nudge(Nudge("api", "a", 2), realm="main", names={"work3"})
        await until(lambda: heard and heard[-1].at == 2, "a nudge")
        await until(lambda: broker.connections == 2, "nothing else to be left")
