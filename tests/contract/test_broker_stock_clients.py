"""The PyPI package `tyo-mq-client` as consumer and as producer, against the embedded nerve."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from broker_bridge.nudge import Nudge
from tests.contract.nerves import ear, free_port, lone_broker, served, talking, until
from tests.contract.stock import connected, leave, queue


async def test_it_hears_the_records_nudges() -> None:
    heard: list[tuple[Any, str]] = []
    async with served() as (broker, url):
        consumer = queue(url, "tok-devmac").createConsumer("ear")
        consumer.subscribe("agent-comms", "msg", lambda message, sender: heard.append((message, sender)))
        async with connected(consumer):
            broker.nudge(Nudge("api", "a-agent#1", 5), realm="main", names={"devmac"})
            await until(lambda: heard)
    assert heard == [({"conv": "api", "from": "a-agent#1", "at": 5}, "agent-comms")]


async def test_it_hears_them_in_each_of_its_other_ways_too() -> None:
    heard: list[str] = []
    async with served() as (broker, url):
        consumer = queue(url, "tok-devmac").createConsumer("ear")
        consumer.subscribe_all("msg", lambda _: heard.append("any producer"))
        consumer.subscribe("agent-comms", None, lambda _: heard.append("every event"))
        consumer.subscribe_topic("#", lambda _: heard.append("topic"))
        async with connected(consumer):
            broker.nudge(Nudge("api", "a-agent#1", 5), realm="main", names={"devmac"})
            await until(lambda: len(heard) == 3)
    assert sorted(heard) == ["any producer", "every event", "topic"]


async def test_it_publishes_to_our_clients_and_to_itself_and_learns_who_listens() -> None:
    heard: list[Any] = []
    known: list[Any] = []
    async with served() as (_, url), ear(url, "tok-devmac") as it:
        consumer = queue(url, "tok-work3").createConsumer("build-log")
        consumer.subscribe("build", "done", heard.append)
        producer = queue(url, "tok-tool").createProducer("build")
        producer.on_subscription_listener = known.append
        async with connected(producer), connected(consumer):
            await it.subscribe(producer="build", event="done")
            await it.barrier()
            await until(lambda: len(known) == 2, "the notices")
            await asyncio.to_thread(producer.produce, {"ok": True}, "done")
            await until(lambda: heard and it.consumed)
    assert heard == [{"ok": True}]
    assert it.consumed == [
        ("CONSUME-build-done", {"event": "done", "message": {"ok": True}, "from": "build"})
    ]
    assert {notice["name"] for notice in known} == {"build-log", "ear"}


async def test_its_groups_and_broadcasts_work() -> None:
    heard: dict[str, list[Any]] = {"one": [], "two": [], "own": []}
    async with served() as (_, url):
        one, two = (queue(url, "tok-tool2").createConsumer(name) for name in ("one", "two"))
        one.subscribe("build", "job", heard["one"].append, options={"group": "workers"})
        two.subscribe("build", "job", heard["two"].append, options={"group": "workers"})
        producer = queue(url, "tok-tool").createProducer("build")
        producer.subscribe("build", "all", heard["own"].append)
        async with connected(one), connected(two), connected(producer):
            for number in range(4):
                await asyncio.to_thread(producer.produce, number, "job")
            await until(lambda: len(heard["one"]) + len(heard["two"]) == 4)
            await asyncio.to_thread(producer.broadcast, "stop", "job", "workers")
            await asyncio.to_thread(producer.broadcast, "to all", "all")
            await until(lambda: heard["own"])
            await until(lambda: len(heard["one"]) + len(heard["two"]) == 6)
    assert heard == {"one": [0, 2, "stop"], "two": [1, 3, "stop"], "own": ["to all"]}


@pytest.mark.long
async def test_its_large_messages_come_and_go_in_pieces() -> None:
    heard: list[Any] = []
    large = {"text": "héllo 🐟\\" * 70_000, "end": True}
    async with served() as (_, url), ear(url, "tok-devmac") as it:
        consumer = queue(url, "tok-tool2").createConsumer("build-log")
        consumer.subscribe("build", "log", heard.append)
        producer = queue(url, "tok-tool").createProducer("build")
        async with connected(consumer), connected(producer):
            await it.subscribe(producer="build", event="log")
            await it.barrier()
            await asyncio.to_thread(producer.produce, large, "log")
            await until(lambda: heard and it.consumed)
    assert heard == [large]
    pieces = [payload for event, payload in it.consumed if event == "CONSUME_CHUNK"]
    assert [piece["event"] for piece in pieces] == ["CONSUME-build-log"] * pieces[0]["total"]
    assert json.loads("".join(piece["data"] for piece in pieces))["message"] == large


async def test_it_cannot_speak_as_the_record() -> None:
    errors: list[Any] = []
    async with served() as (_, url), ear(url, "tok-devmac") as it:
        producer = queue(url, "tok-tool").createProducer("agent-comms")
        producer.on_error_listener = errors.append
        async with connected(producer):
            await asyncio.to_thread(producer.produce, {"conv": "api", "from": "a", "at": 1}, "msg")
            await asyncio.to_thread(producer.produce, "x" * 300_000, "msg")
            await until(lambda: len(errors) == 3)
        assert {error["code"] for error in errors} == {403}
        assert it.consumed == []


async def test_a_wrong_token_is_told_to_its_error_listener() -> None:
    errors: list[Any] = []
    async with served() as (_, url):
        consumer = queue(url, "nope").createConsumer("ear")
        consumer.on_error_listener = errors.append
        await asyncio.to_thread(consumer.connect)
        await until(lambda: errors)
        await leave(consumer)
    assert errors == [{"code": 401, "message": "This token is not valid here"}]


@pytest.mark.long
async def test_it_is_back_after_the_broker_was_killed() -> None:
    heard: list[Any] = []
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    consumer = queue(url, "tok-devmac").createConsumer("ear")
    consumer.subscribe("agent-comms", "msg", heard.append)
    async with talking(url) as nerve:
        with lone_broker(port):
            await until(lambda: nerve.state == "ok")
            await asyncio.to_thread(consumer.connect)
            await until(lambda: consumer.authenticated)
            dropped = consumer.socket.eio.ws
        await until(lambda: not consumer.connected)
        dropped.shutdown()
        with lone_broker(port):
            await until(lambda: consumer.authenticated and nerve.state == "ok", "both to be back")
            await asyncio.to_thread(consumer.socket.call, "PING", {}, timeout=60)
            nerve.nudge(Nudge("api", "a-agent#1", 6), realm="main", names={"devmac"})
            await until(lambda: heard)
            await leave(consumer)
