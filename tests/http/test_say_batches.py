"""Says that arrive together over HTTP, of which the database refuses one."""

from __future__ import annotations

import asyncio

import pytest

from tests.conftest import run_sql
from tests.http.running import Running
from tests.http.test_rooms import bodies

TOGETHER = 32


@pytest.mark.long
async def test_of_32_at_once_31_are_stored_and_one_is_refused(record: Running, database_url: str) -> None:
    rule = "ALTER TABLE conv_messages ADD CONSTRAINT conv_messages_polite_check CHECK (body <> 'rude')"
    await run_sql(database_url, rule)
    box = await record.box("work3")
    reader, *speakers = [await record.session(box) for _ in range(TOGETHER + 1)]
    for party in (reader, *speakers):
        assert (await party.post("/v1/rooms", {"name": "api"})).status in (200, 201)
    words = [f"m{number:02}" for number in range(TOGETHER)]
    words[17] = "rude"
    replies = await asyncio.gather(
        *(
            speaker.post("/v1/rooms/api/messages", {"body": body})
            for speaker, body in zip(speakers, words, strict=True)
        )
    )
    assert [reply.status for reply in replies] == [201] * 17 + [422] + [201] * (TOGETHER - 18)
    assert replies[17].body["field"] == "conv_messages_polite_check"
    words.remove("rude")
    assert sorted(await bodies(reader)) == words
