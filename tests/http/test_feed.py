"""The feed with the client's own cursor, and single messages with their receipts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.http.running import Party, Running, until
from tests.http.test_rooms import bodies, said


async def feed(party: Party, **how: Any) -> tuple[list[str], str]:
    query = "&".join(f"{name}={value}" for name, value in how.items())
    reply = await party.get(f"/v1/messages?{query}")
    assert reply.status == 200, reply
    return [message["body"] for message in reply.body["messages"]], reply.body["next_cursor"]


@pytest.fixture
async def pair(record: Running) -> tuple[Party, Party]:
    """A speaker and a reader on two boxes, in rooms `one` and `two`."""
    box, other = await record.box("work3"), await record.box("devmac")
    speaker, reader = await record.session(box, "reach"), await record.session(other)
    for party in (speaker, reader):
        for room in ("one", "two"):
            assert (await party.post("/v1/rooms", {"name": room})).status in (200, 201)
    return speaker, reader


async def test_the_feed_goes_through_every_room_in_pages_and_moves_nothing(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    for n in range(4):
        await said(speaker, "one", f"one{n}")
        await said(speaker, "two", f"two{n}")
        await said(reader, "two", "the reader's own")
    await speaker.post("/v1/messages", {"to": reader.agent, "body": "direct"})
    got: list[str] = []
    page, cursor = await feed(reader, limit=3)
    while page:
        got += page
        page, cursor = await feed(reader, limit=3, cursor=cursor)
    assert got == [f"{room}{n}" for n in range(4) for room in ("one", "two")] + ["direct"]
    await said(speaker, "one", "later")
    assert (await feed(reader, cursor=cursor))[0] == ["later"]
    assert len(await bodies(reader)) == 10


async def test_a_waiting_feed_answers_when_something_comes(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    waiting = asyncio.create_task(feed(reader, wait_seconds=15))
    while not waiting.done():
        await said(speaker, "one", "now")
        await asyncio.wait([waiting], timeout=2)
    assert (await waiting)[0][0] == "now"


async def test_a_cursor_that_was_never_given_is_refused_or_harmless(
    pair: tuple[Party, Party], subtests: pytest.Subtests
) -> None:
    speaker, reader = pair
    await said(speaker, "one", "hello")
    for cursor in ("x", "gA", "%00", "ü", "wKo", "gc8BAAAAAAAAAAAB"):
        with subtests.test(cursor):
            reply = await reader.get(f"/v1/messages?cursor={cursor}")
            assert reply.status == 200 or (reply.status, reply.body["field"]) == (422, "cursor")


async def test_a_bad_query_names_the_field(pair: tuple[Party, Party], subtests: pytest.Subtests) -> None:
    for query, field in (("limit=0", "limit"), ("limit=x", "limit"), ("page=2", "page")):
        with subtests.test(query):
            reply = await pair[1].get(f"/v1/messages?{query}")
            assert (reply.status, reply.body["field"]) == (422, field)


async def test_a_receipt_says_who_has_read_and_why_others_have_not(record: Running) -> None:
    box, other = await record.box("work3"), await record.box("devmac")
    speaker = await record.session(box)
    readers = {
        name: await record.session(other, name) for name in ("reads", "leases", "skips", "away", "held")
    }
    for party in (speaker, *readers.values()):
        await party.post("/v1/rooms", {"name": "api"})
    first = await said(speaker, "api", "hello")
    await bodies(readers["reads"])
    await readers["leases"].post("/v1/poll", {"ack": "lease"})
    await readers["skips"].post("/v1/ack", {"rooms": {"api": first}})
    sessions = [
        {"agent": readers["away"].agent, "state": "offline"},
        {
            "agent": readers["held"].agent,
            "state": "waiting",
            "wake": {"rung": "tmux", "outcome": "held", "reason": "dialog open"},
        },
    ]
    assert (await other.put("/v1/presence", {"sessions": sessions})).status == 200
    reply = await speaker.get(f"/v1/messages/{first}")
    assert reply.body["message"]["body"] == "hello"
    receipt = reply.body["receipt"]
    assert len(receipt["accepted"]) == 5
    assert [each["agent"] for each in receipt["read_by"]] == [readers["reads"].agent]
    why = {each["agent"]: each["why"] for each in receipt["unread_by"]}
    assert why.pop(readers["away"].agent).startswith("offline since 20")
    assert why == {
        readers["leases"].agent: "leased",
        readers["skips"].agent: "skipped",
        readers["held"].agent: "held: permission dialog open",
    }


async def test_a_receipt_keeps_those_who_left_or_retired(record: Running) -> None:
    speaker = await record.session(await record.box("work3"))
    other, doomed = await record.box("devmac"), await record.box("doomed")
    reads, leaves, retires = [await record.session(other, name) for name in ("reads", "leaves", "retires")]
    goes = await record.session(doomed)
    readers = (reads, leaves, retires, goes)
    for party in (speaker, *readers):
        await party.post("/v1/rooms", {"name": "api"})
    message_id = await said(speaker, "api", "hello")
    assert await bodies(reads) == ["hello"]
    late = await record.session(other, "late")
    await late.post("/v1/rooms/api/join")
    for party in (reads, leaves, late):
        assert (await party.post("/v1/rooms/api/leave")).status == 200
    assert (await retires.post("/v1/checkout")).status == 200
    assert (await record.operator.delete("/v1/admin/boxes/doomed")).status == 204
    receipt = (await speaker.get(f"/v1/messages/{message_id}")).body["receipt"]
    assert {each["agent"] for each in receipt["accepted"]} == {party.agent for party in readers}
    assert [each["agent"] for each in receipt["read_by"]] == [reads.agent]
    assert {each["agent"]: each["why"] for each in receipt["unread_by"]} == {
        leaves.agent: "left",
        retires.agent: "retired",
        goes.agent: "retired",
    }


async def test_a_receipt_sees_what_expired(record: Running) -> None:
    box, other = await record.box("work3"), await record.box("devmac")
    speaker, reader = await record.session(box), await record.session(other)
    for party in (speaker, reader):
        await party.post("/v1/rooms", {"name": "api"})
    message_id = await said(speaker, "api", "short", ttl_seconds=0.05)

    async def expired() -> bool:
        receipt = (await speaker.get(f"/v1/messages/{message_id}")).body["receipt"]
        return [each["why"] for each in receipt["unread_by"]] == ["expired"]

    await until(expired, "the message expires")


async def test_a_message_is_found_by_those_who_may_read_it_alone(record: Running) -> None:
    box, other = await record.box("work3"), await record.box("devmac")
    one, two, three = await record.session(box), await record.session(box), await record.session(other)
    for party in (one, two):
        await party.post("/v1/rooms", {"name": "api"})
    in_room = await said(one, "api", "for members")
    reply = await one.post("/v1/messages", {"to": three.agent, "body": "for one"})
    direct = reply.body["message"]["id"]
    status = {
        (party.agent, message_id): (await party.get(f"/v1/messages/{message_id}")).status
        for party in (one, two, three)
        for message_id in (in_room, direct)
    }
    assert status == {
        (one.agent, in_room): 200,
        (two.agent, in_room): 200,
        (three.agent, in_room): 404,
        (one.agent, direct): 200,
        (two.agent, direct): 404,
        (three.agent, direct): 200,
    }
