"""Schemas and results that take for ever harm nobody but whoever sent them."""

from __future__ import annotations

import asyncio
import os
import statistics
from pathlib import Path
from typing import Any

import pytest

from api.services import schemas
from tests.http.running import DEADLINE, Party, Reply, Running, until
from tests.http.test_rooms import said

pytestmark = pytest.mark.long

ENDLESS = {"type": "string", "pattern": "^(a+)+$"}
CONTENT = "a" * 60 + "!"


async def request(party: Party, schema: Any) -> int:
    """Ask for a result of this form; the request's id."""
    asked = await party.post(
        "/v1/rooms/api/messages",
        {"type": "task.request", "payload": {"summary": "x", "output_schema": schema}},
    )
    assert asked.status == 201, asked
    id_: int = asked.body["message"]["id"]
    return id_


def result(request_id: int, content: Any) -> dict[str, Any]:
    payload = {"summary": "x", "content": content}
    return {"type": "task.result", "in_reply_to": request_id, "payload": payload}


@pytest.fixture
async def parties(record: Running) -> list[Party]:
    """Four in one room."""
    box = await record.box("work3")
    parties = [await record.session(box) for _ in range(4)]
    for party in parties:
        await party.post("/v1/rooms", {"name": "api"})
    return parties


async def test_endless_patterns_hold_up_neither_talk_nor_the_checks_of_others(parties: list[Party]) -> None:
    asking, attacker, answering, talking = parties
    bad, good = await request(asking, ENDLESS), await request(asking, {"type": "string", "maxLength": 5})
    loop, over, answers = asyncio.get_running_loop(), asyncio.Event(), list[Reply]()

    async def attack() -> None:
        while not over.is_set():
            answers.append(await attacker.post("/v1/rooms/api/messages", result(bad, CONTENT)))

    async with asyncio.TaskGroup() as attacks:
        for _ in range(10):
            attacks.create_task(attack())
        await until(lambda: bool(checks()), "a check runs")
        cost = []
        for number in range(100):
            began = loop.time()
            await said(talking, "api", str(number))
            cost.append(loop.time() - began)
        right = await answering.post("/v1/rooms/api/messages", result(good, "fine"))
        wrong = await answering.post("/v1/rooms/api/messages", result(good, "too long"))
        over.set()
    assert (right.status, wrong.status) == (201, 422)
    assert statistics.median(cost) < schemas.SECONDS / 2
    assert {(answer.status, answer.code) for answer in answers} == {(422, "invalid"), (503, "checks_busy")}
    await until(lambda: not checks(), "every check has ended")


@pytest.mark.timeout(120)
async def test_no_box_keeps_others_from_their_checks_however_many_sessions_it_has(record: Running) -> None:
    calm = await record.session(await record.box("calm"))
    await calm.post("/v1/rooms", {"name": "api"})
    bad, good = await request(calm, ENDLESS), await request(calm, {"type": "string", "maxLength": 5})

    async def attacking(name: str) -> list[asyncio.Task[Reply]]:
        box = await record.box(name)
        sessions = [await record.session(box) for _ in range(7)]
        for session in sessions:
            await session.post("/v1/rooms/api/join", {"backfill": "none"})
        return [
            asyncio.create_task(session.post("/v1/rooms/api/messages", result(bad, CONTENT)))
            for session in sessions
            for _ in range(2)
        ]

    attacks = await attacking("first")
    await until(lambda: bool(checks()), "a check runs")
    assert (await calm.post("/v1/rooms/api/messages", result(good, "fine"))).status == 201
    assert len(checks()) <= 1
    attacks += await attacking("second")
    await until(lambda: len(checks()) == schemas.AT_ONCE, "every place is taken")
    right = await calm.post("/v1/rooms/api/messages", result(good, "fine"))
    wrong = await calm.post("/v1/rooms/api/messages", result(good, "too long"))
    assert (right.status, wrong.status) == (201, 422)
    assert not all(task.done() for task in attacks)
    async with asyncio.timeout(3 * DEADLINE):
        answers = await asyncio.gather(*attacks)
    assert {(answer.status, answer.code) for answer in answers} == {(422, "invalid"), (503, "checks_busy")}
    assert schemas.TOO_LONG in str([answer.body for answer in answers])


def checks() -> list[int]:
    """The processes that check a schema for this one."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    found = []
    for pid in children.read_text().split():
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if b"schema_check" in command:
            found.append(int(pid))
    return found


DEEP: Any = {"type": "string"}
for _ in range(400):
    DEEP = {"properties": {"a": DEEP}}


TOO_MUCH = {
    "deep": DEEP,
    "parentheses": {"pattern": "(" * 5000},
    "repetitions": {"pattern": "a{1,65535}" * 300},
    "a circle": {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
    "itself twice": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
    "an enumeration": {"enum": [list(range(6000))]},
}


async def test_a_schema_that_is_too_much_is_refused_or_its_results_are(
    parties: list[Party], subtests: pytest.Subtests
) -> None:
    asking, answering, *_ = parties
    for what, schema in TOO_MUCH.items():
        with subtests.test(what):
            asked = await asking.post(
                "/v1/rooms/api/messages",
                {"type": "task.request", "payload": {"summary": "x", "output_schema": schema}},
            )
            if asked.status == 201:
                asked = await answering.post(
                    "/v1/rooms/api/messages", result(asked.body["message"]["id"], {"a": "b"})
                )
            assert asked.status in (201, 422), asked
            assert (await said(asking, "api", "the record goes on")) > 0


async def test_a_fault_far_down_a_long_path_is_told_in_short(parties: list[Party]) -> None:
    asking, answering, *_ = parties
    asked = await request(asking, {"additionalProperties": {"type": "integer"}})
    content = {f"{n}{'k' * 20_000}": "x" for n in range(8)}
    refused = await answering.post("/v1/rooms/api/messages", result(asked, content))
    assert (refused.status, refused.body["field"]) == (422, "payload.content")
    assert len(str(refused.body)) < 5_000
