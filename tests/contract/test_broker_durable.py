"""Durable subscribers of other programs, over real sockets, and with the nerve killed between two steps."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from broker_bridge import broker, pumps, sockets
from broker_bridge.actions import Attach
from broker_bridge.memory_store import MemoryStore
from broker_bridge.nudge import Nudge
from broker_bridge.queues import Kept, Queue, Unkept
from broker_bridge.subscriptions import Subscription
from tests.contract.nerves import Ear, ear, free_port, served, until
from tests.contract.stock import connected, queue

pytestmark = pytest.mark.long

JOB: dict[str, Any] = {"producer": "build", "event": "job"}
ACK: dict[str, Any] = {**JOB, "durable": True, "ack": True, "ack_timeout": "20s"}


async def produce(tool: Ear, *said: Any, **changed: Any) -> None:
    """Produce, and wait until the nerve has taken it."""
    for message in said:
        await tool.send("PRODUCE", {"event": "job", "from": "build", "message": message, **changed})
    await tool.barrier()


def heard(it: Ear) -> list[Any]:
    return [payload["message"] for payload in it.events("CONSUME-build-job")]


def attempts(it: Ear) -> list[Any]:
    return [payload.get("delivery_attempt") for payload in it.events("CONSUME-build-job")]


async def acknowledge(it: Ear, payload: Any) -> Any:
    return await it.client.call("ACK", {"msgId": payload["msgId"]}, timeout=60)


async def test_what_comes_while_nobody_is_there_waits_in_order() -> None:
    async with served(store=MemoryStore()) as (_, url), ear(url, "tok-tool") as tool:
        async with ear(url, "tok-devmac", "d1") as it:
            await it.subscribe("d1", **JOB, durable=True)
            await it.barrier()
            await produce(tool, "live")
            await until(lambda: heard(it))
        await produce(tool, *range(100))
        async with ear(url, "tok-devmac", "d1") as it:
            await it.subscribe("d1", **JOB, durable=True)
            await produce(tool, "live again")
            await until(lambda: len(heard(it)) == 101)
            assert heard(it) == [*range(100), "live again"]
            assert it.events("CONSUME-build-job")[0] == {"event": "job", "message": 0, "from": "build"}
            await it.subscribe("d1", **JOB, durable=True)
            await it.barrier()
            await produce(tool, "last")
            await until(lambda: "last" in heard(it))
        assert len(heard(it)) == 102


async def test_another_holder_under_the_same_names_gets_nothing_of_it() -> None:
    async with served(store=MemoryStore()) as (_, url), ear(url, "tok-tool") as tool:
        async with ear(url, "tok-devmac", "d1") as it:
            await it.subscribe("d1", **ACK)
            await it.barrier()
            await produce(tool, "a")
            await until(lambda: heard(it))
            theirs = it.events("CONSUME-build-job")[0]
        async with ear(url, "tok-zoo", "d1") as thief:
            await thief.subscribe("d1", **ACK)
            await thief.barrier()
            assert (await acknowledge(thief, theirs))["code"] == 404
            await produce(tool, "b")
            await until(lambda: heard(thief))
        assert heard(thief) == ["b"]


async def test_a_message_comes_again_until_it_is_acknowledged_and_then_no_more() -> None:
    store = MemoryStore()
    async with served(store=store) as (_, url), ear(url, "tok-tool") as tool, ear(url, "tok-devmac") as it:
        retry = {"max_attempts": 3, "delay": "50ms", "backoff": "exponential"}
        await it.subscribe(**JOB, durable=True, ack=True, ack_timeout="100ms", retry=retry)
        await it.barrier()
        await produce(tool, "done at last", "never done")
        await until(lambda: attempts(it).count(2) == 2)
        again = next(each for each in it.events("CONSUME-build-job") if each["message"] == "done at last")
        assert await acknowledge(it, again) == {"ok": True, "msgId": again["msgId"]}
        assert it.events("ACK_OK") == [{"ok": True, "msgId": again["msgId"]}]
        assert (await acknowledge(it, again))["code"] == 404
        await until(lambda: store.dead)
        assert [each["message"] for each in store.dead] == ["never done"]
        assert (attempts(it).count(3), heard(it).count("done at last")) == (1, 2)


async def test_a_queue_goes_as_fast_as_its_consumer() -> None:
    store = MemoryStore()
    async with served(store=store) as (_, url), ear(url, "tok-devmac") as it:
        await it.subscribe(**ACK)
        await it.barrier()
        for number in range(600):
            said = {"event": "job", "message": number, "from": "build"}
            await store.keep("main", store._queues, said, seconds=1000)
        await it.subscribe(**{**ACK, "consumer": "another name"})
        for number in range(600):
            await until(lambda: len(heard(it)) > number)  # noqa: B023
            await acknowledge(it, it.events("CONSUME-build-job")[number])
        assert it.events("ACK_FAIL") == it.events("RATE_LIMITED") == []
        assert heard(it) == [*range(600)]


async def test_a_stock_client_acknowledges_and_is_handed_again_what_failed() -> None:
    got: list[Any] = []

    def handle(message: Any, _: str, __: Any, raw: Any) -> None:
        got.append((message, raw["delivery_attempt"]))
        if len(got) == 1:
            raise RuntimeError

    options = {"durable": True, "ack": True, "ack_timeout": "100ms", "retry": {"delay": "50ms"}}
    store = MemoryStore()
    async with served(store=store) as (_, url), ear(url, "tok-tool") as tool:
        consumer = queue(url, "tok-devmac").createConsumer("worker")
        consumer.subscribe("build", "job", handle, options=options)
        async with connected(consumer):
            await produce(tool, "a")
            await until(lambda: len(got) == 2 and not store._messages)
    assert got == [("a", 1), ("a", 2)]


async def test_unsubscribe_ends_the_queue() -> None:
    store = MemoryStore()
    async with served(store=store) as (_, url), ear(url, "tok-tool") as tool, ear(url, "tok-devmac") as it:
        await it.subscribe(**ACK)
        await it.barrier()
        await it.send("UNSUBSCRIBE", "build-job")
        await until(lambda: not store._queues)
        await produce(tool, "a")
        assert heard(it) == []


async def test_nudges_are_never_kept() -> None:
    store = MemoryStore()
    async with served(store=store) as (broker, url):
        async with ear(url, "tok-devmac", "d1") as it:
            await it.subscribe("d1", durable=True, ack=True)
            await it.subscribe("d1", producer="TYO-MQ-ALL", event="#", mode="topic", durable=True)
            await it.barrier()
            broker.nudge(Nudge.now(conv="api", sender="a"), realm="main", names={"devmac"})
            await until(lambda: len(it.consumed) == 2)
            assert all("msgId" not in payload for _, payload in it.consumed)
        broker.nudge(Nudge.now(conv="api", sender="a"), realm="main", names={"devmac"})
        async with ear(url, "tok-record") as record:
            told = {"event": "msg", "from": "agent-comms", "message": {"conv": "a", "from": "b", "at": 1}}
            await record.send("PRODUCE", {**told, "to": ["devmac"], "realm": "main", "guaranteed": True})
            await record.barrier()
        assert len(store._queues) == 1
        assert store._messages == {}


async def test_without_a_store_whoever_asks_for_it_is_told_so() -> None:
    async with served() as (_, url), ear(url, "tok-tool") as tool, ear(url, "tok-devmac") as it:
        await it.subscribe(**ACK)
        await it.barrier()
        await produce(tool, "a", guaranteed=True)
        assert [error["code"] for error in (*it.events("ERROR"), *tool.events("ERROR"))] == [-7, -7]
        await it.subscribe(**JOB)
        await it.barrier()
        await produce(tool, "b")
        await until(lambda: heard(it) == ["b"])


class Away(MemoryStore):
    """A store that can be away."""

    away = False

    async def matching(self, realm: str, *, producer: str, event: str) -> Any:
        if self.away:
            raise Unkept
        return await super().matching(realm, producer=producer, event=event)

    async def take(self, realm: str, queue: int, *, connection: str) -> Any:
        if self.away:
            raise Unkept
        return await super().take(realm, queue, connection=connection)


async def test_while_the_store_is_away_nothing_is_half_done() -> None:
    store = Away()
    async with served(store=store) as (_, url), ear(url, "tok-tool") as tool, ear(url, "tok-devmac") as it:
        await it.subscribe(**ACK)
        await it.subscribe(producer="TYO-MQ-ALL", event="job")
        await it.barrier()
        store.away = True
        await produce(tool, "refused")
        assert [error["code"] for error in tool.events("ERROR")] == [-7]
        store.away = False
        await produce(tool, "taken")
        await until(lambda: len(it.consumed) == 2)
        assert {payload["message"] for _, payload in it.consumed} == {"taken"}


async def test_a_guaranteed_message_waits_for_who_did_not_ask_for_it() -> None:
    async with served(store=MemoryStore()) as (_, url), ear(url, "tok-tool") as tool:
        async with ear(url, "tok-devmac", "g1") as it:
            await it.subscribe("g1", **JOB)
            await it.barrier()
            await produce(tool, "live", guaranteed=True)
            await until(lambda: heard(it) == ["live"])
        await produce(tool, "lost")
        await produce(tool, "kept", delivery="guaranteed")
        async with ear(url, "tok-devmac", "g1") as it:
            await it.subscribe("g1", **JOB)
            await produce(tool, "plain")
            await until(lambda: len(heard(it)) == 2)
            assert sorted(heard(it)) == ["kept", "plain"]


async def test_what_one_replica_keeps_another_one_delivers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pumps, "IDLE_SECONDS", 0.05)
    store = MemoryStore()
    async with (
        served(store=store) as (_, here),
        served(store=store) as (_, there),
        ear(here, "tok-tool") as tool,
        ear(there, "tok-devmac") as it,
    ):
        await it.subscribe(**ACK)
        await it.barrier()
        await produce(tool, "a")
        await until(lambda: heard(it) == ["a"])


async def test_what_found_its_connection_gone_is_not_done_with() -> None:
    store = MemoryStore()
    subscription = Subscription("build", "job", "c", False)
    queue = await store.open(Queue("main", "tool", "c", subscription, True, None), connection="gone")
    assert queue is not None
    await store.keep("main", [queue], {"message": "a"}, seconds=9)
    tried: list[tuple[str, int]] = []

    async def deliver(connection: str, _: int, messages: Sequence[Kept]) -> bool:
        tried.extend((connection, each.attempt) for each in messages)
        return connection != "gone"

    pumping = pumps.Pumps(store, deliver)
    pumping.attach(Attach("gone", "main", queue, acknowledged=False))
    await until(lambda: tried)
    await store.open(store._queues[queue], connection="there")
    pumping.attach(Attach("there", "main", queue, acknowledged=False))
    await until(lambda: not store._messages)
    await pumping.close()
    assert tried == [("gone", 1), ("there", 2)]


@contextmanager
def keeper(port: int, dsn: str, *moment: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.contract.keeper", str(port), dsn, *moment]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


async def reachable(port: int, token: str, name: str) -> Ear:
    """A client of a nerve that is coming up."""
    for _ in range(400):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
            continue
        writer.close()
        await writer.wait_closed()
        it = Ear()
        await it.connect(f"http://127.0.0.1:{port}")
        await it.log_in(token, name)
        return it
    raise AssertionError("the nerve did not come up")


async def left(*ears: Ear) -> None:
    """Every one is gone, with what socket.io leaves open of a link that was cut."""
    for it in ears:
        await it.client.disconnect()
        if it.client.eio.http is not None:
            await it.client.eio.http.close()


@pytest.mark.parametrize("acknowledged", [True, False], ids=["ack", "no ack"])
@pytest.mark.parametrize("moment", ["kept", "taken", "sent", "done"])
async def test_a_killed_nerve_loses_nothing_that_it_took(
    moment: str, acknowledged: bool, database_url: str
) -> None:
    port, end = free_port(), "acknowledged" if acknowledged else "drop"
    wanted = {**JOB, "durable": True} | ({"ack": True} if acknowledged else {})
    stop = {"kept": "keep", "taken": "take", "sent": f"before {end}", "done": end}[moment]
    with keeper(port, database_url, stop) as process:
        tool, it = await reachable(port, "tok-tool", "tool"), await reachable(port, "tok-devmac", "d1")
        await it.subscribe("d1", **wanted)
        await it.barrier()
        await tool.send("PRODUCE", {"event": "job", "from": "build", "message": "a"})
        if moment in ("sent", "done"):
            await until(lambda: heard(it) == ["a"])
            if acknowledged:
                await it.send("ACK", {"msgId": it.events("CONSUME-build-job")[0]["msgId"]})
        assert process.stdout is not None
        assert await asyncio.to_thread(process.stdout.readline) == "reached\n"
        process.kill()
        await until(lambda: not tool.client.connected and not it.client.connected)
        await left(tool, it)
    with keeper(port, database_url):
        tool, it = await reachable(port, "tok-tool", "tool"), await reachable(port, "tok-devmac", "d1")
        await it.subscribe("d1", **wanted)
        await it.barrier()
        await produce(tool, "b")
        await until(lambda: "b" in heard(it))
        assert heard(it) == (["b"] if moment == "done" else ["a", "b"])
        if acknowledged:
            assert attempts(it)[0] == (2 if moment in ("taken", "sent") else 1)
        await left(tool, it)


@pytest.mark.parametrize("pauses", [[0.05] * 80, [4.0]], ids=["many frames", "one that takes long"])
async def test_heartbeats_do_not_wait_behind_the_work_of_frames(
    monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    class Slow(MemoryStore):
        async def matching(self, realm: str, *, producer: str, event: str) -> Sequence[tuple[int, Queue]]:
            await asyncio.sleep(pauses.pop())
            return await super().matching(realm, producer=producer, event=event)

    monkeypatch.setattr(sockets, "PING_SECONDS", 0.5)
    monkeypatch.setattr(sockets, "PONG_SECONDS", 2)
    monkeypatch.setattr(broker, "BEAT_SECONDS", 0.2)
    async with served(store=Slow()) as (_, url), ear(url, "tok-tool") as tool:
        await produce(tool, *range(len(pauses)))
        assert not pauses
        assert tool.events("RATE_LIMITED", "ERROR") == []
