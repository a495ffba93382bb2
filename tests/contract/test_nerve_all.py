"""What every nerve promises, held against all that implement it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest

from broker_bridge.memory import MemoryNerve
from broker_bridge.nerve import Nerve
from broker_bridge.nudge import Nudge
from broker_bridge.tyo_mq import TyoMqNerve
from tests.contract.nerves import listening, served, until
from tests.contract.replicated import NewChannel, over_notify, over_redis, replica

TOKENS = {
    ("main", "work3"): "tok-work3",
    ("main", "devmac"): "tok-devmac",
    ("other", "work3"): "tok-elsewhere",
}


@dataclass
class Ground:
    """A nerve, and a way to listen to it as a box of a realm."""

    nerve: Nerve
    listen: Callable[[str, str], Awaitable[list[Nudge]]]


@pytest.fixture(params=["memory", "embedded", "tyo-mq", "replica over NOTIFY", "replica over Redis"])
def kind(request: pytest.FixtureRequest) -> str | NewChannel:
    if request.param == "replica over NOTIFY":
        return over_notify(request.getfixturevalue("database_url"))
    if request.param == "replica over Redis":
        return over_redis(request.getfixturevalue("redis").new_url())
    return str(request.param)


@pytest.fixture
async def ground(kind: str | NewChannel) -> AsyncIterator[Ground]:
    async with AsyncExitStack() as stack:
        if not isinstance(kind, str):
            near, _ = await stack.enter_async_context(replica(kind()))
            far_off, its_url = await stack.enter_async_context(replica(kind()))
            await until(lambda: near.up and far_off.up, "the replicas")
            yield Ground(near, lambda realm, name: _listen_over_socket(stack, its_url, realm, name))
            return
        if kind == "memory":
            nerve = MemoryNerve()
            await nerve.start()
            stack.push_async_callback(nerve.close)
            yield Ground(nerve, lambda realm, name: _listen_in_memory(nerve, realm, name))
            return
        broker, url = await stack.enter_async_context(served())
        listen = lambda realm, name: _listen_over_socket(stack, url, realm, name)  # noqa: E731
        if kind == "embedded":
            yield Ground(broker, listen)
            return
        far = TyoMqNerve(url, "tok-record")
        await far.start()
        stack.push_async_callback(far.close)
        await until(lambda: far.state == "ok", "the record's link")
        yield Ground(far, listen)


async def _listen_in_memory(nerve: MemoryNerve, realm: str, name: str) -> list[Nudge]:
    heard: list[Nudge] = []
    nerve.listen(heard.append, realm=realm, name=name)
    return heard


async def _listen_over_socket(stack: AsyncExitStack, url: str, realm: str, name: str) -> list[Nudge]:
    _, heard, states = await stack.enter_async_context(listening(url, TOKENS[realm, name], f"{name}-ear"))
    await until(lambda: states == [True], "the listener")
    return heard


async def test_a_nudge_reaches_the_named_boxes_and_nobody_else(ground: Ground) -> None:
    work3, devmac = await ground.listen("main", "work3"), await ground.listen("main", "devmac")
    said = Nudge.now(conv="api", sender="zoo-agent#1")
    ground.nerve.nudge(said, realm="main", names={"work3"})
    ground.nerve.nudge(Nudge.now(conv="end", sender="s"), realm="main", names=["devmac"])
    await until(lambda: work3 and devmac, "both nudges")
    assert work3 == [said]
    assert [nudge.conv for nudge in devmac] == ["end"]


async def test_nothing_crosses_realms(ground: Ground) -> None:
    here, there = await ground.listen("main", "work3"), await ground.listen("other", "work3")
    ground.nerve.nudge(Nudge.now(conv="ours", sender="a"), realm="main", names={"work3"})
    ground.nerve.nudge(Nudge.now(conv="theirs", sender="b"), realm="other", names={"work3"})
    await until(lambda: here and there, "a nudge in each realm")
    assert [n.conv for n in here] == ["ours"]
    assert [n.conv for n in there] == ["theirs"]


async def test_a_burst_is_coalesced_and_its_last_nudge_is_heard_by_all_it_was_for(ground: Ground) -> None:
    work3, devmac = await ground.listen("main", "work3"), await ground.listen("main", "devmac")
    for at in range(1000):
        name = "devmac" if at < 10 else "work3"
        ground.nerve.nudge(Nudge("api", "a", at), realm="main", names={name})
    await until(lambda: work3 and work3[-1].at == 999 and devmac, "the last of the burst")
    assert len(work3) < 100


async def test_a_nudge_that_follows_a_delivery_is_delivered(ground: Ground) -> None:
    heard = await ground.listen("main", "work3")
    for at in range(50):
        ground.nerve.nudge(Nudge("api", "a", at), realm="main", names={"work3"})
        await until(lambda: len(heard) == at + 1 and heard[-1].at == at, f"nudge {at}")  # noqa: B023


async def test_rooms_do_not_wait_for_each_other(ground: Ground) -> None:
    heard = await ground.listen("main", "work3")
    for at in range(200):
        ground.nerve.nudge(Nudge(f"room{at}", "a", at), realm="main", names={"work3"})
    await until(lambda: len(heard) == 200, "every room")
    assert [nudge.at for nudge in heard] == list(range(200))


async def test_a_nudge_for_nobody_is_no_trouble(ground: Ground) -> None:
    ground.nerve.nudge(Nudge.now(conv="api", sender="a"), realm="main", names=())
    ground.nerve.nudge(Nudge.now(conv="api", sender="a"), realm="nowhere", names={"ghost"})
    heard = await ground.listen("main", "work3")
    ground.nerve.nudge(Nudge("after", "a", 1), realm="main", names={"work3"})
    await until(lambda: heard, "the next nudge")
    assert heard == [Nudge("after", "a", 1)]


async def test_closing_is_quick_and_can_be_repeated(ground: Ground) -> None:
    states = [ground.nerve.state]
    began = time.monotonic()
    await ground.nerve.close()
    await ground.nerve.close()
    assert time.monotonic() - began < 10
    assert [*states, ground.nerve.state] == ["ok", "degraded"]
    ground.nerve.nudge(Nudge.now(conv="api", sender="a"), realm="main", names={"work3"})
