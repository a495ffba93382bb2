"""Searches that take long harm nobody but whoever asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from api import db
from api.services import messages
from tests.conftest import run_sql
from tests.http.running import DEADLINE, Party, Reply, Running, running, settings_for
from tests.http.test_rooms import bodies, said

pytestmark = pytest.mark.long

SLOW = """
    CREATE OR REPLACE FUNCTION searched_words(sought text) RETURNS tsquery LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM pg_sleep(CASE WHEN sought = 'slow' THEN 600 ELSE 0 END);
            RETURN plainto_tsquery('simple', sought);
        END
    $$
"""
LARGE = """
    INSERT INTO conv_messages (realm_id, conv_id, sender_kind, body, size)
    SELECT realm_id, conv_id, 'system', 'large ' || words, length(words)
      FROM conversations
      CROSS JOIN generate_series(1, 60) AS number
      CROSS JOIN LATERAL (SELECT string_agg(left(md5(number || ' ' || word), 5), ' ') AS words
                            FROM generate_series(1, 10000) AS word) made
     WHERE name = 'api'
"""


async def search(party: Party, words: str) -> Reply:
    return await party.call("GET", "/v1/search", query={"q": words, "limit": "1"})


@pytest.fixture
async def hasty(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Running]:
    """A record that ends searches soon."""
    monkeypatch.setattr(db, "ASIDE_SECONDS", 2.0)
    monkeypatch.setattr(messages, "SEARCH_WAIT_SECONDS", 3.0)
    async with running(settings_for(database_url, tmp_path)) as record:
        yield record


async def in_rooms(record: Running) -> tuple[Party, Party]:
    """Somebody who searches in room `api`, and somebody of another box who talks in `talk`."""
    searching = await record.session(await record.box("work3"))
    talking = await record.session(await record.box("devmac"))
    await searching.post("/v1/rooms", {"name": "api"})
    for party in (talking, searching):
        await party.post("/v1/rooms", {"name": "talk"})
    return searching, talking


async def test_endless_searches_hold_up_neither_talk_nor_the_searches_of_others(
    hasty: Running, database_url: str
) -> None:
    searching, talking = await in_rooms(hasty)
    await said(searching, "talk", "found at once")
    await run_sql(database_url, SLOW)
    endless = [asyncio.create_task(search(searching, "slow")) for _ in range(8)]
    other = await search(talking, "found")
    assert [message["body"] for message in other.body["messages"]] == ["found at once"]
    await said(talking, "talk", "meanwhile")
    assert await bodies(searching) == ["meanwhile"]
    assert (await hasty.stranger.get("/readyz")).status == 200
    assert not all(task.done() for task in endless)
    async with asyncio.timeout(DEADLINE):
        answers = await asyncio.gather(*endless)
    assert {(answer.status, answer.code) for answer in answers} == {
        (422, "search_too_broad"),
        (503, "searches_busy"),
    }
    assert (await search(searching, "found")).status == 200


async def test_large_bodies_are_found_without_taking_all_their_words_anew(
    hasty: Running, database_url: str
) -> None:
    searching, talking = await in_rooms(hasty)
    await run_sql(database_url, LARGE)
    searches = [asyncio.create_task(search(searching, "large")) for _ in range(4)]
    await said(talking, "talk", "meanwhile")
    assert await bodies(searching, rooms=["talk"]) == ["meanwhile"]
    for answer in await asyncio.gather(*searches):
        assert answer.status == 200, answer
        assert answer.body["messages"][0]["highlight"].startswith("⟦large⟧")
