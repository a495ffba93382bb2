"""Payloads come out as they went in, and weigh what they weigh when they come out."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from tests.http.running import Party, Reply, Running
from tests.http.test_rooms import said

SAY = "/v1/rooms/api/messages"


@pytest.fixture
async def speaker(record: Running) -> Party:
    """A session alone in room `api`."""
    speaker = await record.session(await record.box("work3"))
    await speaker.post("/v1/rooms", {"name": "api"})
    return speaker


async def say(speaker: Party, content: str) -> Reply:
    return await speaker.call(
        "POST", SAY, raw=f'{{"body": "b", "payload": {{"content": {content}}}}}'.encode()
    )


async def stored(database_url: str) -> list[tuple[int, str]]:
    """(size, payload) of every message, as PostgreSQL writes it; each body has one byte."""
    connection = await asyncpg.connect(database_url)
    try:
        return [
            (row["size"] - 1, row["payload"])
            for row in await connection.fetch("SELECT size, payload::text FROM conv_messages ORDER BY id")
        ]
    finally:
        await connection.close()


NUMBERS = [
    ("0.1234567890123456789012345", "0.1234567890123456789012345"),
    ("1.50", "1.50"),
    ("123456789012345678901234567890", "123456789012345678901234567890"),
    ("[1.5e3, -2E+2, 25e-4]", "[1500, -200, 0.0025]"),
    ("1e308", "1" + "0" * 308),
    ('"1e308"', '"1e308"'),
]


async def test_a_number_is_kept_digit_by_digit_and_weighs_what_it_is_written_with(
    speaker: Party, database_url: str, subtests: pytest.Subtests
) -> None:
    for n, (sent, kept) in enumerate(NUMBERS):
        with subtests.test(sent):
            assert (await say(speaker, sent)).status == 201
            [(size, payload)] = (await stored(database_url))[n:]
            assert payload == f'{{"content": {kept}}}'
            assert size == len(payload)


async def test_a_payload_weighs_what_it_is_written_with(speaker: Party, database_url: str) -> None:
    content = '[1,2,{"a":"b,c","d":[true,null,"1e9 \\\\"]},{},[],"ü\\n\\u0001", 7e2]'
    assert (await say(speaker, content)).status == 201
    [(size, payload)] = await stored(database_url)
    assert size == len(payload.encode())


async def test_a_number_that_readers_cannot_take_is_refused(
    speaker: Party, subtests: pytest.Subtests
) -> None:
    for number in ("1e309", "-1e309", "1e-1000", "0e1000", "9" * 5000):
        with subtests.test(number=number):
            reply = await say(speaker, f'{{"deep": [{number}]}}')
            assert (reply.status, reply.code, reply.body["field"]) == (422, "invalid", "payload[...][...][0]")


async def test_what_would_grow_beyond_the_limit_is_refused(speaker: Party) -> None:
    fits = await say(speaker, f"[{','.join(['1e308'] * 800)}]")
    grows = await say(speaker, f"[{','.join(['1e308'] * 43_000)}]")
    assert [fits.status, grows.status] == [201, 422]
    assert grows.body["field"] == "payload"


async def test_code_that_spells_the_character_nul_is_text(speaker: Party, subtests: pytest.Subtests) -> None:
    for content in (r'"print(\"\\u0000\")"', r'{"\\u0000": 1}', r'"\\\\\\u0000"'):
        with subtests.test(content):
            reply = await say(speaker, content)
            assert reply.status == 201, reply
            whole = await speaker.get(f"/v1/messages/{reply.body['message']['id']}")
            assert whole.body["message"]["payload"] == reply.body["message"]["payload"]


async def test_the_character_nul_itself_is_refused(speaker: Party, subtests: pytest.Subtests) -> None:
    for content in (r'"\u0000"', r'{"a\u0000": 1}', r'["\\\u0000"]', r'"\\\\\u0000"'):
        with subtests.test(content):
            reply = await say(speaker, content)
            assert (reply.status, reply.body["field"]) == (422, "payload")


async def test_a_repeat_is_known_by_its_numbers(speaker: Party) -> None:
    def new(number: str) -> dict[str, Any]:
        text = f'{{"body": "b", "client_id": "c", "payload": {{"content": {number}}}}}'
        return {"raw": text.encode()}

    replies = [
        await speaker.call("POST", SAY, **new(number)) for number in ("0.1", "0.1", "0.10000000000000001")
    ]
    assert [reply.status for reply in replies] == [201, 200, 409]


async def test_a_schema_checks_exact_numbers(speaker: Party) -> None:
    schema = {"type": "object", "properties": {"share": {"maximum": 1.5e300}}}
    asked = await said(
        speaker, "api", "how much?", type="task.request", payload={"summary": "s", "output_schema": schema}
    )
    for share, status in (("0.25", 201), ("1e301", 422)):
        new = f'"body": "b", "type": "task.result", "in_reply_to": {asked}'
        body = f'{{{new}, "payload": {{"content": {{"share": {share}}}}}}}'
        assert (await speaker.call("POST", SAY, raw=body.encode())).status == status
