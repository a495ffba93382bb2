"""Our two clients and the brokers that they have to live with: restarted, hung, closed, odd, and not ours."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import socket
import time
from typing import Any

import engineio
import pytest

from broker_bridge import link
from broker_bridge.nudge import Nudge
from broker_bridge.tyo_mq import Listener, TyoMqNerve
from tests.contract.nerves import (
    free_port,
    listening,
    lone_broker,
    served,
    serving,
    talking,
    until,
)
from tests.contract.odd_brokers import OddBroker


def nudge(at: int = 1, conv: str = "api") -> Nudge:
    return Nudge(conv, "devmac-agent#1", at)


async def test_a_listener_is_back_after_the_broker_restarted() -> None:
    port = free_port()
    async with listening(f"http://127.0.0.1:{port}") as (listener, heard, states):
        for round_ in range(3):
            async with served(port=port) as (broker, _):
                await until(lambda: states[-1:] == [True], "the listener")
                assert listener.trouble is None
                broker.nudge(nudge(round_), realm="main", names={"work3"})
                await until(lambda: heard and heard[-1].at == round_, "a nudge")  # noqa: B023
            await until(lambda: states[-1] is False, "the loss to be noticed")
        await until(lambda: listener.trouble)
    assert states == [True, False] * 3


@pytest.mark.long
async def test_the_record_is_heard_again_after_the_broker_was_killed() -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    async with listening(url) as (_, heard, states), talking(url) as nerve:
        with lone_broker(port):
            await until(lambda: states[-1:] == [True] and nerve.state == "ok", "both links")
        await until(lambda: nerve.state == "degraded" and states[-1] is False, "the loss")
        for at in range(100):
            nerve.nudge(nudge(at), realm="main", names={"work3"})
        with lone_broker(port) as process:
            await until(lambda: nerve.state == "ok" and states[-1], "both links again")
            nerve.nudge(nudge(1000, "after"), realm="main", names={"work3"})
            await until(lambda: nudge(1000, "after") in heard, "a nudge")
            assert process.poll() is None
    assert heard.count(nudge(99)) <= 1
    assert all(at.at in (99, 1000) for at in heard)


@pytest.mark.long
async def test_a_broker_that_hangs_costs_the_record_nothing_and_is_used_again() -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with lone_broker(port) as process:
        async with listening(url) as (_, heard, states), talking(url) as nerve:
            await until(lambda: states == [True] and nerve.state == "ok", "both links")
            process.send_signal(signal.SIGSTOP)
            assert await _dearest_nudge(nerve, rooms=500) < 0.005
            await until(lambda: nerve.state == "degraded", "the silence to be noticed")
            process.send_signal(signal.SIGCONT)
            await until(lambda: nerve.state == "ok" and states[-1], "both links again")
            nerve.nudge(nudge(7, "after"), realm="main", names={"work3"})
            await until(lambda: nudge(7, "after") in heard, "a nudge")


@pytest.mark.parametrize("broker", ["accepts and says nothing", "is closed", "has no such name"])
async def test_a_broker_that_is_not_there_costs_the_record_nothing(broker: str) -> None:
    with contextlib.ExitStack() as stack:
        url = f"http://127.0.0.1:{free_port()}"
        if broker == "accepts and says nothing":
            mute = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=128))
            url = f"http://127.0.0.1:{mute.getsockname()[1]}"
        elif broker == "has no such name":
            url = "http://nowhere.invalid:1"
        nerve = TyoMqNerve(url, "tok-record")
        await nerve.start()
        assert await _dearest_nudge(nerve, rooms=12_000) < 0.005
        assert nerve.state == "degraded"
        began = time.monotonic()
        await nerve.close()
        assert time.monotonic() - began < 10


async def _dearest_nudge(nerve: TyoMqNerve, *, rooms: int) -> float:
    """Seconds that the 99th of a hundred nudges cost its caller, over many rooms."""
    costs = []
    for number in range(20_000):
        began = time.perf_counter()
        nerve.nudge(nudge(number, f"room{number % rooms}"), realm="main", names={"work3"})
        costs.append(time.perf_counter() - began)
        if number % 200 == 0:
            await asyncio.sleep(0)
    return sorted(costs)[int(len(costs) * 0.99)]


async def test_a_link_that_is_closed_before_it_begins_never_does() -> None:
    listener = Listener("http://127.0.0.1:1", "t", "ear", lambda _: None, lambda _: None)
    await listener.close()
    await asyncio.wait_for(listener.run(), 20)
    nerve = TyoMqNerve("http://127.0.0.1:1", "t")
    await nerve.close()
    await nerve.start()
    await nerve.close()
    assert nerve.trouble is None


async def test_what_waits_for_a_broker_is_bounded_and_counted() -> None:
    async with talking(f"http://127.0.0.1:{free_port()}") as nerve:
        for number in range(12_000):
            nerve.nudge(nudge(number, f"room{number}"), realm="main", names={"work3"})
        assert nerve.dropped == 2_000


@pytest.mark.long
async def test_a_long_backlog_is_said_when_the_broker_is_back() -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    async with talking(url) as nerve, listening(url) as (_, heard, states):
        with lone_broker(port):
            await until(lambda: states == [True] and nerve.state == "ok", "both links")
        await until(lambda: nerve.state == "degraded" and not states[-1], "the loss")
        for number in range(5000):
            nerve.nudge(nudge(number, f"room{number}"), realm="main", names={"zoo"})
        nerve.nudge(nudge(1, "last"), realm="main", names={"work3"})
        with lone_broker(port):
            await until(lambda: states[-1] and nerve.state == "ok", "both links again")
            nerve.nudge(nudge(2, "last"), realm="main", names={"work3"})
            await until(lambda: nudge(2, "last") in heard, "the last nudge")


async def test_a_refused_token_is_told_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "REFUSED_PAUSE", 0.05)
    async with served() as (_, url), listening(url, token="nope") as (listener, _, states):
        await until(lambda: listener.trouble == "This token is not valid here")
        assert states == []
    async with served() as (_, url), talking(url, token="tok-devmac") as nerve:
        await until(lambda: "may not produce" in str(nerve.trouble))
        assert nerve.state == "degraded"


async def test_a_name_that_a_half_open_link_still_holds_is_tried_until_it_is_free() -> None:
    broker = OddBroker()

    async def on_consumer(id: str, _: Any) -> None:
        if broker.logins <= 3:
            await broker.server.emit("ERROR", {"code": -3, "message": "Duplicate consumer name"}, to=id)
            await broker.server.disconnect(id)

    broker.server.on("CONSUMER", on_consumer)
    async with serving(broker.app) as url, listening(url) as (listener, _, states):
        await until(lambda: states == [True], "the name to be free")
        assert broker.logins == 4
        assert listener.trouble is None


async def test_a_broker_that_hangs_up_without_a_word_is_dialled_again() -> None:
    broker = OddBroker()
    async with serving(broker.app) as url, listening(url) as (_, heard, states):
        await until(lambda: states == [True])
        await broker.hang_up()
        await until(lambda: states == [True, False, True], "the listener to be back")
        await broker.say(nudge())
        await until(lambda: heard == [nudge()])


async def test_a_broker_without_logins_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "LOGIN_SECONDS", 0.3)
    broker = OddBroker()
    broker.server.on("AUTHENTICATION", lambda *_: None)
    async with serving(broker.app) as url, listening(url) as (listener, _, states):
        await until(lambda: listener.trouble == "the broker does not answer")
        assert states == []


async def test_rubbish_from_a_broker_is_no_nudge() -> None:
    broker = OddBroker()
    message = nudge().to_wire()
    rubbish = [
        None,
        "text",
        [message],
        {"message": message},
        {"from": "someone", "event": "msg", "message": message},
        {"from": "agent-comms", "event": "msg", "message": {**message, "at": "now"}},
    ]
    async with serving(broker.app) as url, listening(url) as (_, heard, states):
        await until(lambda: states == [True])
        for payload in [*rubbish, {"from": "agent-comms", "event": "msg", "message": message}]:
            await broker.server.emit("CONSUME-agent-comms-msg", payload)
        await until(lambda: heard)
        assert heard == [nudge()]
        assert states == [True]


async def test_a_foreign_broker_learns_no_names_and_nothing_of_other_realms() -> None:
    broker = OddBroker()
    async with serving(broker.app) as url, talking(url, realm="main") as nerve:
        nerve.nudge(nudge(1, "elsewhere"), realm="other", names={"work3"})
        nerve.nudge(nudge(2), realm="main", names={"work3", "devmac"})
        await until(lambda: broker.of("PRODUCE"))
        assert broker.of("PRODUCE") == [
            {
                "event": "msg",
                "from": "agent-comms",
                "message": {"conv": "api", "from": "devmac-agent#1", "at": 2},
            }
        ]
        assert nerve.foreign == 1


async def test_a_record_of_one_realm_speaks_to_that_realm_alone() -> None:
    async with (
        served() as (_, url),
        listening(url, "tok-work3") as (_, here, one),
        listening(url, "tok-elsewhere") as (_, there, two),
        talking(url, "tok-record-main") as nerve,
    ):
        await until(lambda: one == two == [True])
        nerve.nudge(nudge(1), realm="other", names={"work3"})
        nerve.nudge(nudge(2), realm="main", names={"work3"})
        await until(lambda: here)
        assert (here, there, nerve.foreign) == ([nudge(2)], [], 1)


async def test_more_names_than_a_frame_holds_are_told_in_several() -> None:
    names = [f"box-{number}-{'x' * 50}" for number in range(12_000)]
    async with served() as (_, url), listening(url) as (_, heard, states), talking(url) as nerve:
        await until(lambda: states == [True])
        nerve.nudge(nudge(), realm="main", names=[*names, "work3"])
        await until(lambda: heard)
        assert heard == [nudge()]


@pytest.mark.long
async def test_nothing_is_left_of_links_that_were_lost() -> None:
    async with served() as (broker, url), listening(url) as (_, _, states):
        for _ in range(6):
            await until(lambda: states and states[-1])
            broker.hang_up(lambda _: True)
            await until(lambda: not states[-1], "the loss")
        await until(lambda: states[-1], "the link")
        gc.collect()
        assert len([c for c in gc.get_objects() if type(c) is link.Client]) <= 2
        assert len(engineio.base_client.connected_clients) <= 1
