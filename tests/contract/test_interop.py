"""Programs of several makes hear each other, at our broker and at whatever other one is named (interop.py).

Where an original broker is known to do otherwise, a test says so: `ground.ours`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from broker_bridge.nudge import EVENT, PRODUCER, Nudge
from tests.contract.interop import MESSAGES, Ground, fresh, hearing, in_its_order, log_in, opened, speaking
from tests.contract.nerves import ear, listening, talking, until
from tests.contract.stock import connected, queue

pytestmark = pytest.mark.long

PROGRAMS = ("bare", "pypi")
NUDGE = Nudge("c-42", "alice", 1796045205776)
Record = Callable[[str, object], None]


@pytest.fixture
async def ground() -> AsyncIterator[Ground]:
    async with opened() as it:
        yield it


@pytest.mark.parametrize("consumer", PROGRAMS)
@pytest.mark.parametrize("producer", PROGRAMS)
async def test_a_program_hears_another(
    ground: Ground, producer: str, consumer: str, record_property: Record
) -> None:
    build = fresh("build")
    async with (
        hearing(consumer, ground, build, "done") as heard,
        hearing(consumer, ground, build, "begun") as other,
        speaking(producer, ground, build) as say,
    ):
        for message in MESSAGES:
            await say("done", message)
        await say("begun", "the end")
        await until(lambda: other() == ["the end"])
        await until(lambda: len(heard()) == len(MESSAGES), "all messages")
        assert in_its_order(consumer, heard()) == in_its_order(consumer, MESSAGES)
    record_property("pairing", (producer, consumer, "heard"))


@pytest.mark.parametrize("consumer", [*PROGRAMS, "ours"])
async def test_the_record_is_heard(ground: Ground, consumer: str, record_property: Record) -> None:
    async with (
        hearing(consumer, ground, PRODUCER, EVENT) as heard,
        talking(ground.url, ground.record) as nerve,
    ):
        nerve.nudge(NUDGE, realm="main", names={"devmac"})
        await until(lambda: heard() == [NUDGE.to_wire()], "the nudge")
    record_property("pairing", ("ours", consumer, "heard"))


@pytest.mark.parametrize("producer", PROGRAMS)
async def test_whoever_speaks_as_the_record_is_heard_at_a_foreign_broker_and_refused_at_ours(
    ground: Ground, producer: str, record_property: Record
) -> None:
    async with (
        listening(ground.url, ground.listens, fresh("ear")) as (_, heard, states),
        talking(ground.url, ground.record) as nerve,
    ):
        await until(lambda: states == [True] and nerve.state == "ok", "our links")
        async with speaking(producer, ground, PRODUCER) as say:
            await say(EVENT, NUDGE.to_wire())
        nerve.nudge(Nudge("c-42", "alice", 2), realm="main", names={"devmac"})
        await until(lambda: heard and heard[-1].at == 2, "the record's own")
        assert (NUDGE in heard) is not ground.ours
    record_property("pairing", (producer, "ours", "refused" if ground.ours else "heard"))


async def test_a_subscription_ends_when_it_is_asked_to(ground: Ground) -> None:
    build, name = fresh("build"), fresh("ear")
    async with speaking("bare", ground, build) as say, ear(ground.url, ground.listens, name) as it:
        await it.subscribe(name, producer=build, event="done")
        await it.barrier()
        await say("done", 1)
        await it.send("UNSUBSCRIBE", f"{build}-done")
        await it.barrier()
        await say("done", 2)
        await it.barrier()
        heard = [payload["message"] for _, payload in it.consumed]
        assert heard == ([1] if ground.ours else [1, 2])  # an original takes no notice


async def test_a_subscription_again_changes_nothing(ground: Ground) -> None:
    build, name = fresh("build"), fresh("ear")
    async with speaking("bare", ground, build) as say, ear(ground.url, ground.listens, name) as it:
        for _ in range(3):
            await it.subscribe(name, producer=build, event="done")
        await it.barrier()
        await say("done", 1)
        await it.barrier()
        assert [payload["message"] for _, payload in it.consumed] == [1]


async def test_a_producer_learns_who_hears_it_and_who_left(ground: Ground) -> None:
    build, name = fresh("build"), fresh("ear")
    async with ear(ground.url, None) as producer:
        await log_in(producer, ground.speaks)
        await producer.send("PRODUCER", {"name": build, "id": build})
        await producer.barrier()
        async with ear(ground.url, ground.listens, name) as consumer:
            socket = consumer.client.get_sid()
            await consumer.subscribe(name, producer=build, event="done")
            await until(lambda: producer.events(f"SUBSCRIBE-TO-{build}"), "the subscription's notice")
            told = {"name": name, "id": name, "socket": socket, "events": [f"{build}-done"], "online": True}
            assert producer.events(f"SUBSCRIBE-TO-{build}")[-1] == told
        await until(lambda: producer.events(f"DISCONNECT-{build}"), "the consumer's end")
        gone = {"event": "DISCONNECT", "socket": socket, "consumer": name}
        assert producer.events(f"DISCONNECT-{build}") == [gone]


async def test_a_consumer_learns_when_its_producer_comes_and_goes(ground: Ground) -> None:
    build, name = fresh("build"), fresh("ear")
    async with ear(ground.url, ground.listens, name) as consumer:
        await consumer.subscribe(name, producer=build, event="done")
        await consumer.barrier()
        async with ear(ground.url, None) as producer:
            socket = producer.client.get_sid()
            await log_in(producer, ground.speaks)
            await producer.send("PRODUCER", {"name": build})
            await until(lambda: consumer.events(f"CONNECT-{name}"), "the producer's notice")
        await until(lambda: consumer.events(f"DISCONNECT-{name}"), "the producer's end")
        come = {"event": "CONNECT", "socket": socket, "producer": build}
        assert consumer.events(f"CONNECT-{name}") == [come]
        assert consumer.events(f"DISCONNECT-{name}") == [{**come, "event": "DISCONNECT"}]


async def test_the_stock_producer_learns_who_hears_it_and_who_left(ground: Ground) -> None:
    known: list[Any] = []
    lost: list[Any] = []
    producer = queue(ground.url, ground.speaks).createProducer(fresh("build"))
    producer.on_subscription_listener = known.append
    producer.on_subscriber_lost(lost.append)
    async with connected(producer):
        name = fresh("ear")
        consumer = queue(ground.url, ground.listens).createConsumer(name)
        consumer.subscribe(producer.name, "done", lambda _: None)
        async with connected(consumer):
            await until(lambda: known, "the subscription's notice")
        await until(lambda: lost, "the consumer's end")
    assert (known[-1]["name"], known[-1]["online"]) == (name, True)
    assert lost[-1]["consumer"] == name


async def test_a_ping_is_answered_when_everything_before_is_done(ground: Ground) -> None:
    build = fresh("build")
    async with ear(ground.url, None) as it, ear(ground.url, None) as producer:
        await log_in(producer, ground.speaks)
        await log_in(it, ground.listens)
        for number in range(30):
            await it.subscribe(fresh("ear"), producer=build, event=f"e{number}")
        pong = json.loads(await it.client.call("PING", {"n": 1, "who": "it"}, timeout=60))
        assert (pong["n"], pong["who"], pong["pong"]) == (1, "it", "PONG")
        assert pong["timestamp"].endswith("Z")
        await producer.send("PRODUCE", {"event": "e29", "message": "last", "from": build})
        await producer.barrier()
        await it.barrier()
        assert [payload["message"] for _, payload in it.consumed] == ["last"]


async def test_whoever_comes_second_under_a_name_takes_it_over_here_and_is_refused_elsewhere(
    ground: Ground,
) -> None:
    name = fresh("ear")
    async with ear(ground.url, ground.listens, name) as first, ear(ground.url, None) as second:
        await log_in(second, ground.listens)
        await second.send("CONSUMER", {"name": name, "id": name, "consumer_id": name})
        loser, winner = (first, second) if ground.ours else (second, first)
        await until(lambda: not loser.client.connected, "the hang-up")
        assert loser.events("ERROR")[-1]["code"] == -3
        await winner.barrier()


@pytest.mark.parametrize("program", PROGRAMS)
async def test_whoever_floods_is_told_so_and_goes_on_later(ground: Ground, program: str) -> None:
    if not ground.ours:
        pytest.skip("an original's limits are its operator's")
    build = fresh("build")
    told: list[Any] = []
    async with hearing("bare", ground, build, "done") as heard:
        if program == "pypi":
            producer = queue(ground.url, ground.speaks).createProducer(build)
            async with connected(producer):
                producer.on("RATE_LIMITED", told.append)
                for number in range(400):
                    await asyncio.to_thread(producer.produce, number, "done")
                await until(lambda: told, "the notice")
                await _heard_again(heard, lambda: asyncio.to_thread(producer.produce, "later", "done"))
        else:
            async with ear(ground.url, None) as bare:
                await log_in(bare, ground.speaks)
                frame = {"event": "done", "from": build}
                for number in range(400):
                    await bare.send("PRODUCE", {**frame, "message": number})
                await until(lambda: bare.events("RATE_LIMITED"), "the notice")
                told = bare.events("RATE_LIMITED")
                await _heard_again(heard, lambda: bare.send("PRODUCE", {**frame, "message": "later"}))
    assert told[0] == {"code": 429, "reason": "messages_per_second", "retry_after": 1}
    numbers = [message for message in heard() if message != "later"]
    assert numbers == sorted(numbers)
    assert 200 <= len(numbers) < 400


async def _heard_again(heard: Callable[[], list[Any]], say: Callable[[], Any]) -> None:
    end = time.monotonic() + 20
    while "later" not in heard():
        assert time.monotonic() < end
        await say()
        await asyncio.sleep(0.2)  # what comes too fast is dropped again
