"""Rooms over REST."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.http.running import Party, Running


async def said(party: Party, room: str, body: str, **more: Any) -> int:
    reply = await party.post(f"/v1/rooms/{room}/messages", {"body": body, **more})
    assert reply.status == 201, reply
    message_id: int = reply.body["message"]["id"]
    return message_id


async def bodies(party: Party, **how: Any) -> list[str]:
    reply = await party.post("/v1/poll", how)
    assert reply.status == 200, reply
    return [message["body"] for room in reply.body["rooms"] for message in room["messages"]]


async def test_starting_a_room_twice_joins_it(record: Running) -> None:
    box = await record.box("work3")
    one, two = await record.session(box), await record.session(box)
    first = await one.post("/v1/rooms", {"name": "api", "title": "The API"})
    second = await two.post("/v1/rooms", {"name": "api", "title": "Another title"})
    assert (first.status, second.status) == (201, 200)
    assert second.body == {"room": "api", "title": "The API", "joined": True, "last_read_id": 0, "unread": 0}


@pytest.mark.long
async def test_a_hundred_at_once_start_one_room(record: Running) -> None:
    box = await record.box("work3")
    sessions = [await record.session(box) for _ in range(10)]
    replies = await asyncio.gather(
        *(session.post("/v1/rooms", {"name": f"room{n % 10}"}) for session in sessions for n in range(10))
    )
    assert sorted(reply.status for reply in replies) == [200] * 90 + [201] * 10
    rooms = (await sessions[0].get("/v1/rooms?scope=all")).body["rooms"]
    assert [(room["room"], room["members"]) for room in rooms] == [(f"room{n}", 10) for n in range(10)]


async def test_joining_brings_the_newest_earlier_messages_marked_as_replayed(record: Running) -> None:
    box, other = await record.box("work3"), await record.box("devmac")
    speaker, late = await record.session(box), await record.session(other)
    await speaker.post("/v1/rooms", {"name": "api"})
    for n in range(30):
        await said(speaker, "api", f"m{n}")
    joined = await late.post("/v1/rooms/api/join", {"backfill": 3})
    assert joined.body["unread"] == 3
    polled = await late.post("/v1/poll", {})
    messages = polled.body["rooms"][0]["messages"]
    assert [(m["body"], m["replayed"]) for m in messages] == [("m27", True), ("m28", True), ("m29", True)]
    assert messages[0]["text"] == "[message from work3-agent#1, sent before you started] m27"


async def test_backfill_says_how_much_is_unread_after_joining(
    record: Running, subtests: pytest.Subtests
) -> None:
    box, other = await record.box("work3"), await record.box("devmac")
    speaker = await record.session(box)
    await speaker.post("/v1/rooms", {"name": "api"})
    await asyncio.gather(*(said(speaker, "api", f"m{n}") for n in range(30)))
    for backfill, unread in (("none", 0), ("all", 30), (5, 5), (None, 20), (0, 0)):
        with subtests.test(backfill=backfill):
            late = await record.session(other)
            joined = await late.post("/v1/rooms/api/join", {} if backfill is None else {"backfill": backfill})
            assert joined.body["unread"] == unread
            assert len(await bodies(late)) == unread


async def test_backfill_does_not_count_what_the_echo_rule_hides(record: Running) -> None:
    box, other = await record.box("work3"), await record.box("devmac")
    speaker, reader = await record.session(box), await record.session(other)
    for party in (speaker, reader):
        await party.post("/v1/rooms", {"name": "api"})
    await said(speaker, "api", "for the reader")
    await said(reader, "api", "the reader's own")
    await reader.post("/v1/rooms/api/leave")
    joined = await reader.post("/v1/rooms/api/join", {"backfill": 1})
    assert joined.body["unread"] == 1
    assert await bodies(reader) == ["for the reader"]


async def test_leaving_and_joining_again_shows_nothing_twice(record: Running) -> None:
    box, other = await record.box("work3"), await record.box("devmac")
    speaker, reader = await record.session(box), await record.session(other)
    for party in (speaker, reader):
        await party.post("/v1/rooms", {"name": "api"})
    await said(speaker, "api", "read")
    assert await bodies(reader) == ["read"]
    await reader.post("/v1/rooms/api/leave")
    await said(speaker, "api", "missed")
    assert await bodies(reader) == []
    await reader.post("/v1/rooms/api/join", {"backfill": "all"})
    assert await bodies(reader) == ["missed"]


async def test_joining_again_moves_no_cursor(record: Running) -> None:
    box, other = await record.box("work3"), await record.box("devmac")
    speaker, reader = await record.session(box), await record.session(other)
    for party in (speaker, reader):
        await party.post("/v1/rooms", {"name": "api"})
    await said(speaker, "api", "waits")
    again = await reader.post("/v1/rooms/api/join", {"backfill": "none"})
    assert again.body["unread"] == 1
    assert await bodies(reader) == ["waits"]


async def test_a_stranger_reads_nothing_and_learns_how_to_join(record: Running) -> None:
    box, other = await record.box("work3"), await record.box("devmac")
    speaker, stranger = await record.session(box), await record.session(other)
    await speaker.post("/v1/rooms", {"name": "api"})
    await said(speaker, "api", "private")
    for method, path in (
        ("GET", "messages"),
        ("GET", "members"),
        ("POST", "leave"),
        ("POST", "messages"),
    ):
        body = {"body": "x"} if (method, path) == ("POST", "messages") else None
        reply = await stranger.call(method, f"/v1/rooms/api/{path}", body)
        assert (reply.status, reply.code) == (403, "not_a_member"), path
        assert ("/v1/rooms/api/join" in reply.body["detail"]) is (path != "leave")


async def test_a_room_that_is_not_there_or_hidden_is_not_found(
    record: Running, subtests: pytest.Subtests
) -> None:
    session = await record.session(await record.box("work3"))
    for room in ("nowhere", "%40everyone", "%40work3", "a%2Fb", "A", "a" * 200):
        with subtests.test(room):
            for method, path in (
                ("POST", "join"),
                ("POST", "leave"),
                ("GET", "members"),
                ("GET", "messages"),
            ):
                reply = await session.call(method, f"/v1/rooms/{room}/{path}")
                assert reply.status == 404, (path, reply)
            reply = await session.post(f"/v1/rooms/{room}/messages", {"body": "x"})
            assert reply.status == 404


async def test_members_show_how_far_each_has_read(record: Running) -> None:
    box, other = await record.box("work3"), await record.box("devmac")
    speaker, reader = await record.session(box, "reach"), await record.session(other)
    for party in (speaker, reader):
        await party.post("/v1/rooms", {"name": "api"})
    first = await said(speaker, "api", "one")
    assert await bodies(reader) == ["one"]
    await said(speaker, "api", "two")
    page = await reader.get("/v1/rooms/api/members?limit=1")
    assert [(m["agent"], m["last_read_id"], m["unread"], m["you"]) for m in page.body["members"]] == [
        ("devmac-agent#1", first, 1, True)
    ]
    rest = await reader.get(f"/v1/rooms/api/members?cursor={page.body['next_cursor']}")
    assert [m["agent"] for m in rest.body["members"]] == ["work3-agent-reach#1"]


async def test_a_room_of_another_realm_does_not_exist(record: Running) -> None:
    assert (await record.operator.post("/v1/admin/realms", {"name": "other"})).status == 201
    here, there = await record.box("work3"), await record.box("work3", realm="other")
    one, two = await record.session(here), await record.session(there)
    await one.post("/v1/rooms", {"name": "api"})
    message_id = await said(one, "api", "here")
    assert (await two.post("/v1/rooms/api/join", {})).status == 404
    assert (await two.get("/v1/rooms?scope=all")).body["rooms"] == []
    assert (await two.post("/v1/rooms", {"name": "api"})).status == 201
    assert await bodies(two) == []
    assert (await two.get("/v1/rooms/api/messages")).body["messages"] == []
    reply = await two.post("/v1/rooms/api/messages", {"body": "x", "in_reply_to": message_id})
    assert (reply.status, reply.body["field"]) == (422, "in_reply_to")


async def test_history_pages_back_to_the_beginning_and_moves_nothing(record: Running) -> None:
    box, other = await record.box("work3"), await record.box("devmac")
    speaker, reader = await record.session(box), await record.session(other)
    for party in (speaker, reader):
        await party.post("/v1/rooms", {"name": "api"})
    for n in range(7):
        await said(speaker, "api", str(n), thread_id="odd" if n % 2 else None)
    pages: list[list[str]] = []
    cursor = ""
    while True:
        page = (await reader.get(f"/v1/rooms/api/messages?limit=3{cursor}")).body
        pages.append([message["body"] for message in page["messages"]])
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert pages == [["4", "5", "6"], ["1", "2", "3"], ["0"]]
    thread = (await reader.get("/v1/rooms/api/messages?thread_id=odd")).body["messages"]
    assert [message["body"] for message in thread] == ["1", "3", "5"]
    assert len(await bodies(reader)) == 7


async def test_what_an_earlier_joining_passed_can_still_be_backfilled(record: Running) -> None:
    box, other = await record.box("work3"), await record.box("devmac")
    speaker, reader = await record.session(box), await record.session(other)
    await speaker.post("/v1/rooms", {"name": "api"})
    for n in range(5):
        await said(speaker, "api", f"m{n}")
    for backfill, unread in (("none", 0), (2, 2), ("all", 5), (1, 1)):
        joined = await reader.post("/v1/rooms/api/join", {"backfill": backfill})
        assert joined.body["unread"] == unread, backfill
        await reader.post("/v1/rooms/api/leave")
