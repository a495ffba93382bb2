"""What every store of queues promises, in memory and in PostgreSQL alike."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from api.db import Database
from api.services.nerve_queues import NerveQueues
from broker_bridge import memory_store, queues
from broker_bridge.memory_store import MemoryStore
from broker_bridge.queues import Queue, Retry, Store
from broker_bridge.subscriptions import Subscription
from tests.conftest import run_sql

pytestmark = pytest.mark.long

QUEUE = Queue("main", "tool", "c1", Subscription("build", "job", "c1", False), True, None)
ACKED = replace(QUEUE, retry=Retry(ack_seconds=10, attempts=2, delay_seconds=5, exponential=True))


class Hall:
    """A store, and a way to let time pass for it."""

    def __init__(self, store: Store, wait: Callable[[float], Awaitable[None]]) -> None:
        self.store, self.wait = store, wait

    async def open(self, queue: Queue = QUEUE, connection: str = "s1") -> int:
        id = await self.store.open(queue, connection=connection)
        assert id is not None
        return id

    async def keep(self, queue: int, *said: Any, seconds: float = 1000) -> None:
        for each in said:
            assert await self.store.keep("main", [queue], {"message": each}, seconds=seconds) == {queue}

    async def take(self, queue: int, connection: str = "s1") -> list[tuple[Any, int]]:
        batch = await self.store.take("main", queue, connection=connection)
        self.ids = [each.id for each in batch.messages]
        self.batch = batch
        return [(each.envelope["message"], each.attempt) for each in batch.messages]

    async def acknowledge(self, id: int, connection: str = "s1", holder: str = "tool") -> str:
        verdict, _ = await self.store.acknowledged("main", holder, id, connection=connection)
        return verdict


@asynccontextmanager
async def in_memory() -> AsyncIterator[Hall]:
    now = [1000.0]

    async def wait(seconds: float) -> None:
        now[0] += seconds

    yield Hall(MemoryStore(lambda: now[0]), wait)


@asynccontextmanager
async def in_postgresql(url: str) -> AsyncIterator[Hall]:
    async def wait(seconds: float) -> None:
        earlier = f"- interval '{seconds} seconds'"
        await run_sql(
            url, f"UPDATE nerve_messages SET due_at = due_at {earlier}, expires_at = expires_at {earlier}"
        )

    await run_sql(url, "INSERT INTO realms (name) VALUES ('other')")
    db = Database(url)
    try:
        yield Hall(NerveQueues(db), wait)
    finally:
        await db.close()


@pytest.fixture(params=["memory", "postgresql"])
async def hall(request: pytest.FixtureRequest, database_url: str) -> AsyncIterator[Hall]:
    async with in_memory() if request.param == "memory" else in_postgresql(database_url) as hall:
        yield hall


async def test_what_is_kept_comes_once_and_in_order(hall: Hall) -> None:
    queue = await hall.open()
    await hall.keep(queue, "a", {"b": ["🐟", None, "\0"]}, None)
    assert await hall.take(queue) == [("a", 1), ({"b": ["🐟", None, "\0"]}, 1), (None, 1)]
    assert await hall.take(queue) == []
    await hall.store.drop("main", queue, hall.ids or [])
    await hall.wait(500)


async def test_what_was_dropped_is_gone_and_what_was_not_comes_again(hall: Hall) -> None:
    queue = await hall.open()
    await hall.keep(queue, "dropped", "sent")
    await hall.take(queue)
    await hall.store.drop("main", queue, hall.ids[:1])
    assert await hall.open(connection="s2") == queue
    assert await hall.take(queue, "s2") == [("sent", 2)]
    await hall.wait(500)
    assert await hall.take(queue, "s2") == [("sent", 3)]


async def test_an_acknowledgement_is_taken_once_from_the_connection_that_got_the_message(hall: Hall) -> None:
    queue = await hall.open(ACKED)
    await hall.keep(queue, "a")
    await hall.keep(queue, "never sent", seconds=1)
    await hall.take(queue)
    id = hall.ids[0]
    assert await hall.acknowledge(id, "s2") == "anothers"
    assert await hall.acknowledge(id, holder="tool2") == "unknown"
    assert await hall.acknowledge(id + 1000) == "unknown"
    assert await hall.store.acknowledged("main", "tool", id, connection="s1") == ("acknowledged", queue)
    assert await hall.acknowledge(id) == "unknown"
    await hall.wait(100)
    assert await hall.take(queue) == []


async def test_what_is_not_acknowledged_comes_again_until_it_is_a_dead_letter(hall: Hall) -> None:
    queue = await hall.open(replace(ACKED, retry=Retry(10, 3, 5, True)))
    await hall.keep(queue, "a")
    assert await hall.take(queue) == [("a", 1)]
    for passed, comes in ((14, []), (1, [("a", 2)]), (19, []), (1, [("a", 3)]), (9, []), (1, [])):
        assert hall.batch.seconds is not None
        assert hall.batch.seconds >= passed - 1
        await hall.wait(passed)
        assert await hall.take(queue) == comes, passed
    assert hall.batch.seconds is None
    await hall.wait(1000)
    assert await hall.take(queue) == []


async def test_a_lost_link_counts_as_no_timeout_but_not_for_ever(hall: Hall) -> None:
    queue = await hall.open(ACKED)
    await hall.keep(queue, "a")
    for sending in range(1, queues.SENDINGS + 1):
        await hall.open(ACKED, f"s{sending}")
        assert await hall.take(queue, f"s{sending}") == [("a", sending)]
    await hall.open(ACKED, "last")
    assert await hall.take(queue, "last") == []


async def test_opening_again_on_the_same_connection_repeats_nothing(hall: Hall) -> None:
    queue = await hall.open(ACKED)
    await hall.keep(queue, "a")
    await hall.take(queue)
    assert await hall.open(ACKED) == queue
    assert await hall.take(queue) == []


async def test_only_so_much_is_out_at_once(hall: Hall) -> None:
    queue = await hall.open(ACKED)
    for number in range(queues.WINDOW + 3):
        await hall.keep(queue, number)
    assert len(await hall.take(queue)) == queues.WINDOW
    assert hall.batch.more
    first = hall.ids[:2]
    assert await hall.take(queue) == []
    for id in first:
        await hall.acknowledge(id)
    assert await hall.take(queue) == [(queues.WINDOW, 1), (queues.WINDOW + 1, 1)]


async def test_only_so_many_characters_are_out_at_once(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (queues, memory_store):
        monkeypatch.setattr(module, "WINDOW_SIZE", 100)
    queue = await hall.open(ACKED)
    await hall.keep(queue, "x" * 200, "y")
    assert [said[0] for said, _ in await hall.take(queue)] == ["x"]
    assert hall.batch.more
    assert await hall.take(queue) == []
    await hall.acknowledge(hall.ids[0] if hall.ids else 0)


async def test_what_has_expired_is_not_sent(hall: Hall) -> None:
    queue = await hall.open()
    await hall.keep(queue, "short", seconds=1)
    await hall.keep(queue, "long")
    await hall.wait(2)
    assert await hall.take(queue) == [("long", 1)]


async def test_a_queue_has_room_for_so_much(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (queues, memory_store):
        monkeypatch.setattr(module, "QUEUED", 2)
    full, other = await hall.open(), await hall.open(replace(QUEUE, consumer_id="c2"))
    await hall.keep(full, "a", "b")
    assert await hall.store.keep("main", [full, other], {"message": "c"}, seconds=9) == {other}
    assert [said for said, _ in await hall.take(full)] == ["a", "b"]
    assert [said for said, _ in await hall.take(other)] == ["c"]


async def test_a_holder_has_so_many_queues(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (queues, memory_store):
        monkeypatch.setattr(module, "QUEUES", 1)
    queue = await hall.open()
    assert await hall.store.open(replace(QUEUE, consumer_id="c2"), connection="s1") is None
    assert await hall.open(ACKED) == queue
    await hall.open(replace(QUEUE, holder="tool2"))
    await hall.store.forget("main", queue)
    await hall.open(replace(QUEUE, consumer_id="c2"))


async def test_queues_are_found_with_their_newest_options_and_within_their_realm(hall: Hall) -> None:
    topic = Queue(
        "main", "t", "c", Subscription("tyo-mq-all", "a/#", "c", True, "g"), True, Retry(1, 2, 3, True)
    )
    wanted = [QUEUE, topic, replace(QUEUE, consumer_id="other", durable=False)]
    ids = [await hall.open(each) for each in wanted]
    await hall.open(replace(QUEUE, realm="other"))
    await hall.open(replace(QUEUE, subscription=Subscription("build", "else", "c1", False)))
    assert await hall.open(ACKED) == ids[0]
    found = [
        (id, each)
        for id, each in await hall.store.matching("main", producer="build", event="job")
        if each.subscription.event in ("job", "a/#")
    ]
    assert found == list(zip(ids, [ACKED, *wanted[1:]], strict=True))
    assert await hall.store.matching("nowhere", producer="\ud800\0", event="\0") == []


async def test_a_forgotten_queue_is_gone_with_what_was_in_it(hall: Hall) -> None:
    queue = await hall.open()
    await hall.keep(queue, "a")
    await hall.store.forget("other", queue)
    assert len(await hall.store.matching("main", producer="build", event="job")) == 1
    await hall.store.forget("main", queue)
    assert await hall.store.matching("main", producer="build", event="job") == []
    assert await hall.store.keep("main", [queue], {"message": "b"}, seconds=9) == {queue}
    assert await hall.take(queue) == []
