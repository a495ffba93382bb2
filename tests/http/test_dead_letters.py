"""Durable delivery on the record itself, and what its operator sees of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from api.db import Database
from api.services import nerve_queues
from api.services.nerve_queues import NerveQueues
from api.store import nerve_queues as store
from broker_bridge import queues as limits
from broker_bridge.queues import Queue, Retry
from broker_bridge.subscriptions import Subscription
from tests.conftest import run_sql
from tests.contract.nerves import ear
from tests.contract.nerves import until as heard_in_time
from tests.http.running import Running, running, settings_for

pytestmark = pytest.mark.long

LETTERS = "/v1/admin/dead-letters"
QUEUE = Queue("main", "tool", "c1", Subscription("build", "job", "c1", False), True, Retry(1, 1, 0, False))
SECRET = {"event": "job", "message": "not for the operator", "from": "build"}


@pytest.fixture
async def queues(database_url: str) -> AsyncIterator[NerveQueues]:
    db = Database(database_url)
    yield NerveQueues(db)
    await db.close()


async def dead(queues: NerveQueues, url: str) -> int:
    """A dead letter's queue."""
    queue = await queues.open(QUEUE, connection="s1")
    assert queue is not None
    await queues.keep("main", [queue], SECRET, seconds=1000)
    assert (await queues.take("main", queue, connection="s1")).messages
    await run_sql(url, "UPDATE nerve_messages SET due_at = now() WHERE dead_at IS NULL")
    assert not (await queues.take("main", queue, connection="s1")).messages
    return queue


async def count(url: str, table: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval(f"SELECT count(*) FROM {table}"))
    finally:
        await connection.close()


@pytest.fixture
async def record(database_url: str, tmp_path: Path) -> AsyncIterator[Running]:
    async with running(settings_for(database_url, tmp_path)) as record:
        yield record


async def test_the_operator_lists_revives_and_discards_them_without_reading_them(
    record: Running, queues: NerveQueues, database_url: str
) -> None:
    queue = await dead(queues, database_url)
    page = (await record.operator.get(LETTERS)).body
    [letter] = page["dead_letters"]
    assert (letter["holder"], letter["consumer"], letter["attempts"]) == ("tool", "c1", 1)
    assert (letter["producer"], letter["event"], page["next_cursor"]) == ("build", "job", None)
    assert "not for the operator" not in str(page)
    path = f"{LETTERS}/{letter['id']}"
    assert (await record.operator.post(f"{path}/revive", query={"realm": "else"})).status == 404
    assert (await record.operator.post(f"{path}/revive")).status == 204
    assert (await record.operator.delete(path)).status == 404
    assert [each.attempt for each in (await queues.take("main", queue, connection="s1")).messages] == [1]
    await run_sql(database_url, "UPDATE nerve_messages SET due_at = now()")
    await queues.take("main", queue, connection="s1")
    assert (await record.operator.delete(path)).status == 204
    assert (await record.operator.get(LETTERS)).body["dead_letters"] == []
    acts = (await record.operator.get("/v1/admin/audit")).body["acts"]
    assert [(act["act"], act["target"]) for act in acts] == [
        ("dead_letter_discarded", str(letter["id"])),
        ("dead_letter_revived", str(letter["id"])),
    ]


async def test_they_are_the_operators_and_stay_in_their_realm(
    record: Running, queues: NerveQueues, database_url: str
) -> None:
    await dead(queues, database_url)
    box = await record.box("work3")
    assert (await box.get(LETTERS)).status == 403
    assert (await record.stranger.get(LETTERS)).status == 401
    await record.operator.post("/v1/admin/realms", {"name": "else"})
    assert (await record.operator.get(LETTERS, query={"realm": "else"})).body["dead_letters"] == []
    for number in ("0", str(2**80)):
        assert (await record.operator.delete(f"{LETTERS}/{number}")).status in (404, 422)


async def test_they_come_in_pages(record: Running, queues: NerveQueues, database_url: str) -> None:
    for _ in range(3):
        await dead(queues, database_url)
    first = (await record.operator.get(LETTERS, query={"limit": "2"})).body
    rest = (await record.operator.get(LETTERS, query={"limit": "2", "cursor": first["next_cursor"]})).body
    ids = [letter["id"] for page in (first, rest) for letter in page["dead_letters"]]
    assert len(set(ids)) == 3
    assert ids == sorted(ids, reverse=True)


async def test_a_realm_goes_with_its_queues(record: Running, queues: NerveQueues, database_url: str) -> None:
    await record.operator.post("/v1/admin/realms", {"name": "main2"})
    await run_sql(database_url, "UPDATE realms SET name = 'main3' WHERE name = 'main'")
    await run_sql(database_url, "UPDATE realms SET name = 'main' WHERE name = 'main2'")
    await dead(queues, database_url)
    await run_sql(database_url, "DELETE FROM realms WHERE name = 'main'")
    assert await count(database_url, "nerve_messages") == await count(database_url, "nerve_queues") == 0


async def test_what_is_over_is_swept(
    queues: NerveQueues, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nerve_queues, "DEAD_LETTERS", 2)
    for _ in range(3):
        queue = await dead(queues, database_url)
    await queues.keep("main", [queue], SECRET, seconds=1000)
    await queues.sweep()
    assert await count(database_url, "nerve_messages") == 3
    await run_sql(database_url, "UPDATE nerve_messages SET expires_at = now() WHERE dead_at IS NULL")
    await queues.sweep()
    assert await count(database_url, "nerve_messages") == 2
    await run_sql(database_url, "UPDATE nerve_queues SET seen_at = now() - interval '6 days'")
    await queues.sweep()
    assert await count(database_url, "nerve_queues") == 1
    await run_sql(database_url, "UPDATE nerve_queues SET durable = false")
    await queues.sweep()
    assert await count(database_url, "nerve_queues") == 1, "there is something in it"
    await run_sql(database_url, "DELETE FROM nerve_messages")
    await queues.sweep()
    assert await count(database_url, "nerve_queues") == 0


async def test_the_nerve_inside_the_record_keeps_and_delivers(record: Running, queues: NerveQueues) -> None:
    box = await record.box("work3")
    wanted = {"producer": "build", "event": "job", "durable": True, "ack": True}
    async with ear(record.url, box.token, "w1") as it:
        await it.subscribe("w1", **wanted)
        await it.barrier()
        [(queue, _)] = await queues.matching("main", producer="build", event="job")
    await queues.keep("main", [queue], SECRET, seconds=1000)
    async with ear(record.url, box.token, "w1") as it:
        await it.subscribe("w1", **wanted)
        await heard_in_time(lambda: it.consumed)
        [(event, envelope)] = it.consumed
        assert (event, envelope["message"]) == ("CONSUME-build-job", SECRET["message"])
        assert (await it.client.call("ACK", {"msgId": envelope["msgId"]}, timeout=60))["ok"]
        assert (await queues.acknowledged("main", "work3", 1, connection="x"))[0] == "unknown"


async def test_questions_that_come_together_are_one_statement_and_each_gets_its_own_answer(
    queues: NerveQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"event{number}" for number in range(5)]
    made = [
        await queues.open(
            replace(QUEUE, subscription=Subscription("build", name, "c1", False)), connection="s1"
        )
        for name in names
    ]
    statements: list[int] = []
    matching = store.matching

    async def counted(db: Any, pairs: Any) -> Any:
        statements.append(len(pairs))
        return await matching(db, pairs)

    monkeypatch.setattr(store, "matching", counted)
    asked = [queues.matching("main", producer="build", event=name) for name in [*names, *names, "none"]]
    found = await asyncio.gather(*asked)
    assert [[id for id, _ in each] for each in found] == [*([id] for id in made), *([id] for id in made), []]
    assert sum(statements) <= 1 + 6
    assert len(statements) <= 2


async def test_a_question_is_not_answered_by_a_statement_that_began_before_it(
    queues: NerveQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go_on = asyncio.Event(), asyncio.Event()
    matching = store.matching

    async def slow(db: Any, pairs: Any) -> Any:
        rows = await matching(db, pairs)
        began.set()
        await go_on.wait()
        return rows

    monkeypatch.setattr(store, "matching", slow)
    early = asyncio.create_task(queues.matching("main", producer="build", event="job"))
    await began.wait()
    queue = await queues.open(QUEUE, connection="s1")
    late = asyncio.create_task(queues.matching("main", producer="build", event="job"))
    await asyncio.sleep(0)
    go_on.set()
    assert await early == []
    assert [id for id, _ in await late] == [queue]


async def test_what_waits_is_not_counted_for_each_message(
    queues: NerveQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    waiting = store.waiting

    async def counted(db: Any, realm: str, wanted: Any) -> Any:
        counts.append(len(wanted))
        return await waiting(db, realm, wanted)

    monkeypatch.setattr(store, "waiting", counted)
    monkeypatch.setattr(limits, "QUEUED", 3)
    queue = await queues.open(QUEUE, connection="s1")
    assert queue is not None
    kept = [await queues.keep("main", [queue], SECRET, seconds=1000) for _ in range(5)]
    assert kept == [{queue}] * 3 + [set()] * 2
    assert counts == [1]
    await queues.take("main", queue, connection="s1")
    await queues.drop("main", queue, [1, 2, 3])
    queues._rooms[queue].until = 0  # it was counted long ago
    assert await queues.keep("main", [queue], SECRET, seconds=1000) == {queue}
    assert counts == [1, 1]


async def test_a_revived_letter_comes_at_once_to_who_is_connected(
    record: Running, queues: NerveQueues, database_url: str
) -> None:
    box = await record.box("work3")
    wanted = {"producer": "build", "event": "job", "durable": True, "ack": True, "retry": {"max_attempts": 1}}
    async with ear(record.url, box.token, "w1") as it:
        await it.subscribe("w1", **wanted)
        await it.barrier()
        [(queue, _)] = await queues.matching("main", producer="build", event="job")
        await queues.keep("main", [queue], SECRET, seconds=1000)
        await run_sql(database_url, "UPDATE nerve_messages SET dead_at = now()")
        [letter] = (await record.operator.get(LETTERS)).body["dead_letters"]
        began = time.monotonic()
        assert (await record.operator.post(f"{LETTERS}/{letter['id']}/revive")).status == 204
        await heard_in_time(lambda: it.consumed)
        assert time.monotonic() - began < 10


async def test_every_list_says_that_there_is_no_such_realm(record: Running) -> None:
    for what in ("boxes", "people", "nerve-tokens", "invites", "dead-letters"):
        answer = await record.operator.get(f"/v1/admin/{what}", query={"realm": "nope"})
        assert (answer.status, answer.body["code"]) == (404, "not_found"), what
