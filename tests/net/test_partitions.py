"""The network between a box and the record loses every packet, both ways, for a while: only latency changes.

Record and nerve live in one network namespace, a real notifier with an idle session in another. Its sweep is
off, so nothing but the nerve brings a wake.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.contract.nerves import free_port, until
from tests.faults.parts import Ground, Part, World, world
from tests.faults.processes import show
from tests.faults.recoveries import LONG, Recoveries
from tests.net.namespaces import Road, road

pytestmark = [pytest.mark.net, pytest.mark.timeout(600)]

DOORWAY = Path(__file__).with_name("doorway.py")
SHORT = (1.0, 3.5, 5.0, 7.5, 10.0, 14.0, 18.0)
"""Seconds: around every timeout and pause of kernel, nerve and notifier."""
MINUTES = 150.0
FLAPS, ROUNDS = 100, 5


@pytest.fixture
def way() -> Iterator[Road]:
    with road() as way:
        yield way


@asynccontextmanager
async def apart(way: Road, database_url: str, folder: Path, *, alone: bool = False) -> AsyncIterator[World]:
    """A world whose record is at the road's far end, and whose box at its near end."""
    port, door = free_port(), folder / "door"
    command = [*way.far, sys.executable, str(DOORWAY), str(door), way.host, str(port)]
    doorway = Part(command, env={}, log=folder / "doorway.log")
    doorway.start()
    try:
        await until(door.exists, "the doorway")
        ground = Ground(far=way.far, near=way.near, host=way.host, door=str(door))
        async with world(database_url, folder, ground=ground, alone=alone, port=port) as around:
            yield around
    finally:
        doorway.kill()


@pytest.mark.parametrize("alone", [False, True], ids=["embedded nerve", "nerve alone"])
async def test_a_partition_of_any_length_costs_time_alone(
    way: Road, database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], alone: bool
) -> None:
    async with apart(way, database_url, tmp_path, alone=alone) as around:
        recoveries, links = Recoveries(around), around.links()
        for seconds in SHORT if not alone else SHORT[-1:]:
            await _partition(way, recoveries, seconds)
        recoveries.judge(capsys)
        await until(lambda: around.links() <= links, "the old links to be given up", LONG)


async def test_a_partition_of_minutes_costs_time_alone(
    way: Road, database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with apart(way, database_url, tmp_path) as around:
        recoveries, links = Recoveries(around), around.links()
        await _partition(way, recoveries, MINUTES)
        recoveries.judge(capsys)
        await until(lambda: around.links() <= links, "the old links to be given up", LONG)


async def _partition(way: Road, recoveries: Recoveries, seconds: float) -> None:
    way.close()
    waiting = [await recoveries.world.say()]
    await asyncio.sleep(seconds / 2)
    waiting.append(await recoveries.world.say())
    await asyncio.sleep(seconds / 2)
    way.open()
    await recoveries.measure(f"partition of {seconds:g} s", *waiting, since=time.time())


async def test_a_network_that_flaps_a_hundred_times_costs_time_alone(
    way: Road, database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with apart(way, database_url, tmp_path) as around:
        recoveries, links = Recoveries(around), around.links()
        before = around.weights()
        for _ in range(ROUNDS):
            said = []
            for _ in range(FLAPS // ROUNDS):
                await asyncio.sleep(0.3)
                way.close()
                said.append(await around.say())
                await asyncio.sleep(0.3)
                way.open()
            await recoveries.measure(f"{FLAPS // ROUNDS} flaps", *said, since=time.time())
        await until(lambda: around.links() <= links, "the old links to be given up", LONG)
        recoveries.judge(capsys)
        show(
            capsys,
            ("", *before),
            [("MiB before", *before.values()), ("MiB after", *around.weights().values())],
        )
