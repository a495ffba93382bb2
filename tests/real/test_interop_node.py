"""Node programs hear, and are heard by, programs of every other make: at our broker, or at another one.

See tests/contract/interop.py for how to name one. The stock client of tyo-mq is tried where
READYROOM_TEST_NODE_CLIENT names its folder.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from broker_bridge.nudge import EVENT, PRODUCER, Nudge
from tests.contract import interop
from tests.contract.interop import MESSAGES, Ground, Heard, Say, fresh, opened
from tests.contract.nerves import listening, talking, until
from tests.real import node, npm
from tests.real.node import STOCK, TRANSPORTS, bare, barrier

pytestmark = pytest.mark.real

NODE = (*TRANSPORTS, STOCK) if npm.STOCK_NODE_CLIENT else TRANSPORTS
PYTHON = ("bare", "pypi")
PAIRINGS = [
    *((producer, consumer) for producer in NODE for consumer in (*PYTHON, *NODE)),
    *((producer, consumer) for producer in PYTHON for consumer in NODE),
]
NUDGE = Nudge("c-42", "alice", 1796045205776)
Record = Callable[[str, object], None]


@pytest.fixture
async def ground() -> AsyncIterator[Ground]:
    async with opened() as it:
        yield it


def speaking(program: str, *about: Any) -> AbstractAsyncContextManager[Say]:
    return node.speaking(program, *about) if program in NODE else interop.speaking(program, *about)


def hearing(program: str, *about: Any) -> AbstractAsyncContextManager[Heard]:
    return node.hearing(program, *about) if program in NODE else interop.hearing(program, *about)


@pytest.mark.parametrize(("producer", "consumer"), PAIRINGS)
async def test_a_program_hears_another(
    ground: Ground, producer: str, consumer: str, record_property: Record
) -> None:
    build = fresh("build")
    async with hearing(consumer, ground, build, "done") as heard, speaking(producer, ground, build) as say:
        for message in MESSAGES:
            await say("done", message)
        await until(lambda: len(heard()) == len(MESSAGES), "all messages")
        assert interop.in_its_order(consumer, heard()) == interop.in_its_order(consumer, MESSAGES)
    record_property("pairing", (producer, consumer, "heard"))


@pytest.mark.parametrize("consumer", NODE)
async def test_the_record_is_heard(ground: Ground, consumer: str, record_property: Record) -> None:
    async with (
        hearing(consumer, ground, PRODUCER, EVENT) as heard,
        talking(ground.url, ground.record) as nerve,
    ):
        nerve.nudge(NUDGE, realm="main", names={"devmac"})
        await until(lambda: heard() == [NUDGE.to_wire()], "the nudge")
    record_property("pairing", ("ours", consumer, "heard"))


@pytest.mark.parametrize("producer", NODE)
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


@pytest.mark.parametrize("program", TRANSPORTS)
async def test_what_it_was_told_to_connect_with_is_what_it_uses(ground: Ground, program: str) -> None:
    async with bare(program, ground, ground.listens) as one:
        if program == "node":
            assert one.of("open") == ["polling"]
            assert await one.heard_of("upgrade") == "websocket"
        else:
            assert one.of("open") == ["websocket"]
            assert one.of("upgrade") == []
        await barrier(one)


@pytest.mark.parametrize("program", TRANSPORTS)
async def test_it_is_told_why_when_it_may_not(ground: Ground, program: str) -> None:
    async with bare(program, ground, ground.listens) as one:
        one.tell({"emit": ["AUTHENTICATION", {"token": "another"}]})
        assert (await one.heard_of("AUTH_FAIL"))["code"] == 403
        one.tell({"emit": ["CONSUMER", {"id": "nobody"}]})
        assert (await one.heard_of("ERROR"))["code"] == -1
        await barrier(one)


async def test_a_flood_is_told_so_and_a_hang_up_is_seen(ground: Ground) -> None:
    if not ground.ours:
        pytest.skip("an original's limits are its operator's")
    async with bare("node", ground, ground.speaks) as one:
        await one.heard_of("upgrade")
        for number in range(2500):
            one.tell({"emit": ["HELLO", {"n": number}]})
        limited = {"code": 429, "reason": "messages_per_second", "retry_after": 1}
        assert await one.heard_of("RATE_LIMITED") == limited
        assert await one.heard_of("disconnect") in ("io server disconnect", "transport close")
