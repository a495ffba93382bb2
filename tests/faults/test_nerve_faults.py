"""The nerve is killed, hung, cut off and read slowly, and the record with it: only latency changes.

A real notifier and an idle session; its sweep is off, so nothing but the nerve brings a wake. What was said
during a fault wakes within five seconds after it, without a restart of anything that was well.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import socket
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import socketio
import structlog
import websocket

from broker_bridge import link, sockets
from broker_bridge.connection import Connection
from broker_bridge.nudge import Nudge
from broker_bridge.subscriptions import Subscription
from tests.contract.nerves import free_port, listening, served, until
from tests.faults.parts import world
from tests.faults.processes import show
from tests.faults.recoveries import BACK_SECONDS, LONG, Recoveries
from tests.faults.wire import Wire

pytestmark = [pytest.mark.faults, pytest.mark.timeout(400)]

ROUNDS = 3
FLAPS = 100
WARM_UP = 20
"""Flaps after which nothing may grow any more."""
CHAINED_SECONDS = 20.0
"""For so long nothing answers that every pause between attempts has reached its longest."""
ASLEEP_SECONDS = 100.0
"""For so long, as a laptop does: every link and every call that was open is over on the other side."""
GROWTH_MIB = 8.0
SLOW_SECONDS = 0.2
"""Each way; to the other side of the earth and back takes less."""


async def test_a_nerve_that_is_killed_or_hangs_costs_time_alone(
    database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with world(database_url, tmp_path, alone=True) as around:
        recoveries, nerve = Recoveries(around), around.nerve
        assert nerve is not None
        for _ in range(ROUNDS):
            nerve.kill()
            await until(lambda: not around.hears(), "the loss", LONG)
            waiting = [await around.say() for _ in range(3)]
            nerve.start()
            await until(lambda: nerve.says("The nerve listens"), "the nerve", LONG)
            await recoveries.measure("nerve killed", *waiting, since=time.time())
        nerve.freeze()
        waiting = [await around.say()]
        await until(lambda: not around.hears(), "the silence to be noticed", LONG)
        waiting.append(await around.say())
        nerve.thaw()
        await recoveries.measure("nerve hung", *waiting, since=time.time())
        recoveries.judge(capsys)


async def test_a_record_that_is_killed_or_hangs_with_its_nerve_costs_time_alone(
    database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with world(database_url, tmp_path) as around:
        recoveries = Recoveries(around)
        for _ in range(ROUNDS):
            waiting = await around.say()
            around.record.kill()
            await until(lambda: not around.hears(), "the loss", LONG)
            around.record.start()
            await around.until_ready()
            await recoveries.measure("record killed", waiting, since=time.time())
        waiting = await around.say()
        around.record.freeze()
        await until(lambda: not around.hears(), "the silence to be noticed", LONG)
        around.record.thaw()
        await recoveries.measure("record hung", waiting, since=time.time())
        recoveries.judge(capsys)


async def test_record_and_notifier_may_start_in_either_order(
    database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with world(database_url, tmp_path) as around:
        recoveries = Recoveries(around)
        around.notifier.kill()
        waiting = await around.say()
        around.record.kill()
        around.record.start()
        await around.until_ready()
        around.notifier.start()
        await until(around.status, "the notifier", LONG)
        await recoveries.measure("record, then notifier", waiting, since=time.time())
        around.notifier.kill()
        waiting = await around.say()
        around.record.kill()
        around.notifier.start()
        await until(around.status, "the notifier", LONG)
        await asyncio.sleep(CHAINED_SECONDS)
        around.record.start()
        await around.until_ready()
        await recoveries.measure("notifier, then record", waiting, since=time.time())
        recoveries.judge(capsys)


async def test_a_notifier_that_was_asleep_wakes_for_what_was_said_meanwhile(
    database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with world(database_url, tmp_path) as around:
        recoveries = Recoveries(around)
        for seconds in (0.0, ASLEEP_SECONDS):
            around.notifier.freeze()
            waiting = [await around.say()]
            await asyncio.sleep(seconds)
            waiting.append(await around.say())
            around.notifier.thaw()
            await recoveries.measure(f"notifier asleep, {seconds:.0f} s", *waiting, since=time.time())
        recoveries.judge(capsys)


async def test_a_link_that_flaps_a_hundred_times_leaves_nothing_and_misses_nothing(
    database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_port()
    async with Wire(port) as wire, world(database_url, tmp_path, port=port, by=wire.url) as around:
        recoveries, parts = Recoveries(around), (around.record, around.notifier)
        links, said = around.links(), []
        rows: list[tuple[Any, ...]] = []
        for flap in range(FLAPS + 1):
            await until(lambda: around.notifier.says("nerve_heard") > flap, "the link", LONG)  # noqa: B023
            if flap in (0, WARM_UP, FLAPS):
                rows.append((flap, around.links(), *(f"{part.weighs():.1f}" for part in parts)))
            if flap == WARM_UP:
                weights = [part.weighs() for part in parts]
            if flap < FLAPS:
                said.append(await around.say())
                wire.cut()
        await recoveries.measure("link flapped", *said, since=time.time())
        await until(lambda: around.links() <= links, "the links to be given up", LONG)
        grown = [part.weighs() - weight for part, weight in zip(parts, weights, strict=True)]
        rows.append(("after", around.links(), *(f"{part.weighs():.1f}" for part in parts)))
        recoveries.judge(capsys)
        show(capsys, ("flaps", "links of the record", "record MiB", "notifier MiB"), rows)
        assert max(grown) < GROWTH_MIB


async def test_a_line_around_the_world_is_heard_again_as_soon(
    database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_port()
    async with Wire(port) as wire, world(database_url, tmp_path, port=port, by=wire.url) as around:
        recoveries, wire.delay = Recoveries(around), SLOW_SECONDS
        for _ in range(ROUNDS):
            wire.cut()
            await recoveries.measure("slow line cut", await around.say(), since=time.time())
        recoveries.judge(capsys)


async def test_links_that_flap_leave_the_nerve_and_its_listeners_as_they_were(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(link, "LONGEST_PAUSE", 0.05)
    port, listeners = free_port(), 8
    counts: dict[str, Callable[[], int]] = {
        "connections": lambda: broker.connections,
        "sockets": lambda: len(broker._sockets.server.eio.sockets),
        "their objects": lambda: _count(Connection),
        "subscriptions": lambda: _count(Subscription),
        "clients": lambda: _count(socketio.AsyncClient),
        "tasks": lambda: len(asyncio.all_tasks()),
        "files": lambda: len(os.listdir("/proc/self/fd")),
    }

    def counted() -> list[int]:
        gc.collect()
        return [count() for count in counts.values()]

    async with served(port=port) as (broker, _), Wire(port) as wire, _ears(wire.url, listeners) as ears:
        rows: list[tuple[Any, ...]] = []
        for flap in range(FLAPS + 1):
            await until(lambda: all(len(states) == 2 * flap + 1 for _, states in ears), "all links")  # noqa: B023
            if flap in (0, WARM_UP, FLAPS):
                if rows:
                    await until(lambda: counted() == list(rows[0][1:-1]), f"the counts of {rows}", LONG)
                rows.append((flap, *counted(), f"{_own_weight():.1f}"))
            if flap < FLAPS:
                wire.cut()
        broker.nudge(Nudge("api", "a", 1), realm="main", names={"work3"})
        await until(lambda: all(heard for heard, _ in ears), "a nudge for all")
        show(capsys, ("flaps", *counts, "MiB"), rows)
        assert float(rows[-1][-1]) - float(rows[1][-1]) < GROWTH_MIB


async def test_readers_that_stand_still_delay_no_wake_and_are_parted_with(
    database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with world(database_url, tmp_path) as around:
        recoveries, links = Recoveries(around), around.links()
        box = await around.running.box("slow")
        for party in (around.speaker, await around.running.session(box)):
            for number in range(20):
                assert (await party.post("/v1/rooms", {"name": f"noise{number}"})).status in (200, 201)
        async with _standing_still(around.running.url, box.token or "", readers=20):
            await until(lambda: around.links() >= links + 20, "the readers", LONG)
            for turn in range(100):
                said = await around.speaker.post(f"/v1/rooms/noise{turn % 20}/messages", {"body": "noise"})
                assert said.status == 201
            await recoveries.measure("readers stand still", await around.say(), since=time.time())
            await until(lambda: around.links() <= links, "the readers to be parted with", LONG)
        recoveries.judge(capsys)


async def test_a_reader_that_stands_still_is_held_for_within_bounds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rooms, readers = 10_000, 5
    monkeypatch.setattr(sockets, "PONG_SECONDS", LONG)  # nothing but the bounds is to end a reader
    async with contextlib.AsyncExitStack() as stack:
        broker, url = await stack.enter_async_context(served())
        _, heard, states = await stack.enter_async_context(listening(url))
        await until(lambda: states == [True], "the listener")
        logs = stack.enter_context(structlog.testing.capture_logs())
        async with _standing_still(url, "tok-zoo", readers=readers):
            await until(lambda: broker.connections == readers + 1, "the readers")
            before = heaviest = _own_weight()
            for number in range(rooms):
                broker.nudge(Nudge(f"room{number}", "devmac-agent#1", number), realm="main", names={"zoo"})
            while broker.connections > 1:
                began, told = time.monotonic(), len(heard)
                broker.nudge(Nudge("api", "devmac-agent#1", told), realm="main", names={"work3"})
                await until(lambda: len(heard) > told, "a nudge", LONG)  # noqa: B023
                assert time.monotonic() - began < BACK_SECONDS
                heaviest = max(heaviest, _own_weight())
        row = (readers, f"{before:.1f}", f"{heaviest:.1f}", len(heard))
        show(capsys, ("readers that stand still", "MiB before", "MiB at most", "nudges for others"), [row])
        assert [line["event"] for line in logs].count("nerve_reader_dropped") == readers
        assert states == [True]
        assert heaviest - before < 2 * GROWTH_MIB


@contextlib.asynccontextmanager
async def _standing_still(url: str, token: str, *, readers: int) -> AsyncIterator[None]:
    """So many listeners that never read what they are told."""
    with contextlib.ExitStack() as stack:
        for number in range(readers):
            reader = await asyncio.to_thread(_stand_still, url, token, f"slow{number}")
            stack.callback(reader.shutdown)
        yield


def _stand_still(url: str, token: str, name: str) -> Any:
    reader = websocket.create_connection(
        f"{url.replace('http', 'ws')}/socket.io/?EIO=4&transport=websocket",
        sockopt=[(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)],
        timeout=LONG,
    )
    wanted = {"event": "msg", "producer": "agent-comms", "consumer": name, "consumer_id": name}
    reader.send("40")
    for frame in (["AUTHENTICATION", {"token": token}], ["SUBSCRIBE", wanted]):
        reader.send(f"42{json.dumps(frame)}")
    return reader


@contextlib.asynccontextmanager
async def _ears(url: str, number: int) -> AsyncIterator[list[tuple[list[Nudge], list[bool]]]]:
    """So many listeners of one box; what each heard, and when it could."""
    async with contextlib.AsyncExitStack() as stack:
        ears = [await stack.enter_async_context(listening(url, name=f"ear{one}")) for one in range(number)]
        yield [(heard, states) for _, heard, states in ears]


def _count(kind: type) -> int:
    return sum(issubclass(type(thing), kind) for thing in gc.get_objects())


def _own_weight() -> float:
    return float(psutil.Process().memory_info().rss) / 2**20
