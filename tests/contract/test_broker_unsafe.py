"""What is unsafe at the original broker, tried on ours: a nerve in a process of its own, real connections."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from broker_bridge.nudge import Nudge
from tests.contract.nerves import Ear, ear, free_port, lone_broker, talking, until

NUDGE = Nudge("api", "work3-agent#1", 1796000000000)
FORGED = NUDGE.to_wire()


@asynccontextmanager
async def alone() -> AsyncIterator[tuple[str, subprocess.Popen[bytes]]]:
    """A broker process that answers, and its URL."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with lone_broker(port) as process:
        async with talking(url) as record:
            await until(lambda: record.state == "ok", "the broker")
        yield url, process


async def hears(url: str, it: Ear) -> None:
    """Say something, and wait until `it` has heard it."""
    async with talking(url) as record:
        record.nudge(NUDGE, realm="main", names={"devmac"})
        await until(lambda: NUDGE in it.nudges, "the nudge")


@pytest.mark.parametrize(
    "login",
    [
        None,
        {"realm": "main", "role": "consumer"},
        {"realm": "default"},
        {"token": "nope", "realm": "main"},
        {"token": "nope", "realm": "main", "role": "consumer", "key": "x"},
    ],
)
async def test_a_stranger_is_no_reader(login: Any) -> None:
    async with alone() as (url, _), ear(url, "tok-devmac") as it, ear(url, None) as stranger:
        if login is not None:
            await stranger.send("AUTHENTICATION", login)
        await stranger.send("CONSUMER", {"name": "ear", "id": "ear", "consumer_id": "ear"})
        await stranger.subscribe()
        await stranger.subscribe(producer="TYO-MQ-ALL", event="#", mode="topic")
        await until(lambda: len(stranger.events("AUTH_FAIL")) == 3 + (login is not None), "the refusals")
        await hears(url, it)
        assert stranger.consumed == []


async def test_what_is_sent_beside_the_login_never_comes_before_it() -> None:
    async with alone() as (url, _), aiohttp.ClientSession() as http:
        for _ in range(20):
            async with http.ws_connect(f"{url}/socket.io/?EIO=4&transport=websocket") as link:
                for frame in (
                    "40",
                    '42["AUTHENTICATION",{"token":"tok-devmac"}]',
                    '42["CONSUMER",{"name":"ear","id":"ear"}]',
                    '42["SUBSCRIBE",{"event":"msg","producer":"agent-comms","consumer":"ear"}]',
                    '421["PING",{}]',
                ):
                    await link.send_str(frame)
                heard: list[str] = []
                while not any(frame.startswith("431") for frame in heard):
                    heard.append((await link.receive(timeout=60)).data)
                async with talking(url) as record:
                    record.nudge(NUDGE, realm="main", names={"devmac"})
                    while "CONSUME-agent-comms-msg" not in heard[-1]:
                        heard.append((await link.receive(timeout=60)).data)
                assert "AUTH_FAIL" not in "".join(heard)


BODIES: list[Any] = [None, "null", {}, {"event": 5}, {"event": "e", "from": 5}, []]
NO_NAMES: list[Any] = [5, {}, [], True]
KILLING: list[tuple[str, Any]] = [
    *(("PRODUCE", body) for body in BODIES),
    *((event, None) for event in ("CONSUMER", "PRODUCER", "SUBSCRIBE", "HELLO", "PRODUCE_CHUNK")),
    *(("SUBSCRIBE", {"event": value, "producer": "p"}) for value in NO_NAMES),
    *(("SUBSCRIBE", {"event": "e", "producer": value}) for value in NO_NAMES),
    ("PRODUCE_CHUNK", {"transferId": "t", "index": 0, "total": -1, "data": "x"}),
    ("PRODUCE_CHUNK", {"transferId": "t", "index": 0, "total": 1, "data": "null"}),
    ("CONSUMER", {"name": "__proto__", "id": "__proto__"}),
    ("PRODUCE", {"event": "e", "from": "tool", "message": 1}),
    ("PRODUCE", {"event": "f", "from": "tool", "message": 2}),
]
"""Each of these ended the original's process; the last two do where a consumer wants to acknowledge."""


async def test_no_frame_that_ends_the_original_ends_ours() -> None:
    async with alone() as (url, process), ear(url, "tok-devmac") as it, ear(url, None) as silent:
        await it.subscribe(event="e", producer="tool", ack=True)
        await it.subscribe(event="f", producer="tool", manual_ack=True)
        await it.barrier()
        for event, body in KILLING:
            async with ear(url, "tok-tool") as rude:
                await rude.send(event, body)
                await rude.barrier()
            await silent.send(event, body)
        await hears(url, it)
        assert [payload["message"] for _, payload in it.consumed][:2] == [1, 2]
        assert process.poll() is None


async def test_nobody_takes_a_producers_name_or_a_consumers_messages() -> None:
    async with (
        alone() as (url, _),
        ear(url, "tok-devmac") as it,
        ear(url, "tok-tool") as tool,
        ear(url, "tok-tool2") as liar,
    ):
        await it.subscribe(producer="build", event="done")
        await it.barrier()
        await tool.send("PRODUCER", {"name": "build"})
        await tool.barrier()
        await liar.subscribe("ear", producer="build", event="done", consumer_id="ear")
        for name in ("build", "BUILD", "agent-comms", "Agent-Comms"):
            await liar.send("PRODUCER", {"name": name})
            await liar.send("PRODUCE", {"event": "msg", "from": name, "message": FORGED, "to": ["devmac"]})
            await liar.send("PRODUCE", {"event": "done", "from": name, "message": "forged"})
        await liar.barrier()
        assert {refusal["code"] for refusal in liar.events("AUTH_FAIL")} == {403}
        assert len(liar.events("AUTH_FAIL")) == 12
        await tool.send("PRODUCE", {"event": "done", "from": "build", "message": "real"})
        await until(lambda: it.consumed, "the real one")
        assert [payload["message"] for _, payload in it.consumed] == ["real"]


async def test_two_pairs_that_read_alike_are_two() -> None:
    async with alone() as (url, _), ear(url, "tok-devmac") as it, ear(url, "tok-tool") as tool:
        await it.subscribe(producer="a-b", event="c")
        await it.subscribe(producer="agent", event="comms-msg")
        await it.barrier()
        await tool.send("PRODUCE", {"event": "b-c", "from": "a", "message": "another pair"})
        await tool.send("PRODUCE", {"event": "comms-msg", "from": "agent", "message": FORGED})
        await tool.send("PRODUCE", {"event": "C", "from": "A-B", "message": "this pair"})
        await until(lambda: it.consumed, "the pair")
        await hears(url, it)
        others = [payload["message"] for event, payload in it.consumed if "agent-comms" not in event]
        assert others == ["this pair"]
        assert it.nudges == [NUDGE]
        assert [refusal["code"] for refusal in tool.events("AUTH_FAIL")] == [403]
