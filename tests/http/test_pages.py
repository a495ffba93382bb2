"""Pages of messages have an end in bytes, too, and lead on exactly."""

from __future__ import annotations

import pytest

from api.store.pages import PAGE_BYTES
from tests.http.running import Party, Running, until
from tests.http.test_rooms import said

pytestmark = pytest.mark.long

CONTENT_BYTES = 250_000
MESSAGES = 2 * PAGE_BYTES // CONTENT_BYTES + 1


@pytest.fixture
async def written(record: Running) -> tuple[Party, list[int]]:
    """Who said MESSAGES large messages, which nobody took, and their ids."""
    writer = await record.session(await record.box("work3"))
    reader = await record.session(await record.box("devmac"))
    for party in (writer, reader):
        await party.post("/v1/rooms", {"name": "api"})
    payload = {"content": "x" * CONTENT_BYTES}
    ids = [
        await said(writer, "api", "word", to=reader.agent, thread_id="t1", payload=payload)
        for _ in range(MESSAGES)
    ]
    assert await pages(reader, "/v1/messages?limit=1000") == ids
    await reader.post("/v1/checkout", {})

    async def reported() -> bool:
        page = await writer.get(f"/v1/undelivered?limit=1&cursor={ids[-1] - 1}")
        return bool(page.body["messages"])

    await until(reported, "the last report")
    return writer, ids


async def test_a_page_ends_where_its_bytes_do_and_nothing_is_skipped_or_doubled(
    written: tuple[Party, list[int]], subtests: pytest.Subtests
) -> None:
    writer, ids = written
    for path in (
        "/v1/rooms/api/messages?limit=1000&thread_id=t1",
        "/v1/threads/t1?limit=1000",
        "/v1/search?limit=200&q=word&type=note",
        "/v1/undelivered?limit=1000",
    ):
        with subtests.test(path):
            assert sorted(await pages(writer, path)) == ids


async def test_a_page_that_goes_forward_ends_where_its_bytes_do(written: tuple[Party, list[int]]) -> None:
    writer, ids = written
    got: list[int] = []
    while True:
        page = await writer.get(
            f"/v1/rooms/api/messages?limit=1000&thread_id=t1&after={got[-1] if got else 0}"
        )
        if not page.body["messages"]:
            break
        got += [message["id"] for message in page.body["messages"]]
    assert got == ids


async def pages(party: Party, path: str) -> list[int]:
    """The ids of what is behind a path, without reports; each page of it is full, but not too full."""
    got: list[int] = []
    counts: list[int] = []
    cursor = None
    while True:
        reply = await party.get(path + (f"&cursor={cursor}" if cursor else ""))
        assert reply.status == 200, reply
        page = [message["id"] for message in reply.body["messages"] if message["type"] == "note"]
        counts += [len(page)] if page else []
        got += page
        cursor = reply.body["next_cursor"]
        if cursor is None or not page:
            break
    most = PAGE_BYTES // CONTENT_BYTES
    assert counts == [most] * (MESSAGES // most) + [MESSAGES % most]
    return got


async def test_a_message_that_is_larger_than_a_poll_comes_without_its_payload(record: Running) -> None:
    writer = await record.session(await record.box("work3"))
    reader = await record.session(await record.box("devmac"))
    for party in (writer, reader):
        await party.post("/v1/rooms", {"name": "api"})
    await said(writer, "api", "w" * 700, payload={"content": "x" * 700})
    polled = await reader.post("/v1/poll", {"max_bytes": 1000})
    [message] = polled.body["rooms"][0]["messages"]
    assert (message["body"], message["payload"], message["truncated"]) == ("w" * 700, None, True)
