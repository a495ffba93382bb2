"""Say: what is stored, what is refused, and what a repeat does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.http.running import Party, Running, running, settings_for
from tests.http.test_rooms import bodies, said


@pytest.fixture
async def pair(record: Running) -> tuple[Party, Party]:
    """A speaker and a reader on two boxes, in room `api`."""
    box, other = await record.box("work3"), await record.box("devmac")
    speaker, reader = await record.session(box, "reach"), await record.session(other)
    for party in (speaker, reader):
        assert (await party.post("/v1/rooms", {"name": "api"})).status in (200, 201)
    return speaker, reader


BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "body"),
    ({"body": ""}, "body"),
    ({"body": " \n"}, "body"),
    ({"body": "a\0b"}, "body"),
    ({"body": 5}, "body"),
    ({"body": "ü" * 32769}, "body"),
    ({"body": "x", "sender": "devmac"}, "sender"),
    ({"body": "x", "payload": [1]}, "payload"),
    ({"body": "x", "payload": {"content": "a\0b"}}, "payload"),
    ({"body": "x", "payload": {"content": "y" * 262144}}, "payload"),
    ({"payload": {"content": "no summary"}}, "body"),
    ({"body": "x", "type": "Not A Word"}, "type"),
    ({"body": "x", "client_id": "x" * 65}, "client_id"),
    ({"body": "x", "client_id": "a\nb"}, "client_id"),
    ({"body": "x", "thread_id": "a\u202eb"}, "thread_id"),
    ({"body": "x", "ttl_seconds": 0}, "ttl_seconds"),
    ({"body": "x", "hop_limit": 0}, "hop_limit"),
    ({"body": "x", "in_reply_to": 10**9}, "in_reply_to"),
    ({"body": "x", "in_reply_to": 10**30}, "in_reply_to"),
    ({"body": "x", "to": "nobody-here"}, "to"),
]


async def test_a_bad_field_is_named_and_nothing_is_stored(
    pair: tuple[Party, Party], subtests: pytest.Subtests
) -> None:
    speaker, reader = pair
    for body, field in BAD:
        with subtests.test(body=body):
            reply = await speaker.post("/v1/rooms/api/messages", body)
            assert await bodies(reader) == []
            assert (reply.status, reply.body["field"]) == (422, field), reply


RAW: list[tuple[bytes, int]] = [
    (b'{"body":', 400),
    (b"[]", 400),
    (b'"x"', 400),
    (b'{"body":"\\ud800"}', 422),
    (b'{"body":"x","payload":{"a":{"b":"\\udfff"}}}', 422),
    (b'{"body":"\xff"}', 400),
    (b'{"payload":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001, 400),
]


async def test_what_is_no_message_is_refused_as_a_problem(
    pair: tuple[Party, Party], subtests: pytest.Subtests
) -> None:
    speaker, reader = pair
    for raw, status in RAW:
        with subtests.test(raw=raw):
            reply = await speaker.call("POST", "/v1/rooms/api/messages", raw=raw)
            assert await bodies(reader) == []
            assert reply.status == status, reply
            assert reply.code


async def test_a_request_beyond_every_limit_is_refused_while_it_comes(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    body = b'{"body":"' + b"x" * 5_000_000 + b'"}'
    reply = await speaker.call("POST", "/v1/rooms/api/messages", raw=body)
    assert (reply.status, reply.code) == (413, "too_large")
    assert await bodies(reader) == []


async def test_the_answer_has_the_whole_message_and_who_it_waits_for(pair: tuple[Party, Party]) -> None:
    speaker, _ = pair
    reply = await speaker.post(
        "/v1/rooms/api/messages",
        {"payload": {"summary": "Do it", "content": [1]}, "type": "task.request", "client_id": "c"},
    )
    message = reply.body["message"]
    created = message.pop("created_at")
    assert created.endswith("Z")
    assert message.pop("id") > 0
    assert message.pop("thread_id").startswith("thr_")  # a request opens one
    assert message == {
        "room": "api",
        "sender": "work3-agent-reach#1",
        "sender_kind": "session",
        "box": "work3",
        "to": None,
        "type": "task.request",
        "body": None,
        "payload": {"summary": "Do it", "content": [1]},
        "urgent": False,
        "client_id": "c",
        "in_reply_to": None,
        "relay_of": None,
        "hop_limit": 5,
        "late": False,
        "expires_at": None,
        "replayed": False,
        "redelivered": False,
        "truncated": False,
        "text": "[message from work3-agent-reach#1] Do it",
    }
    assert reply.body["receipt"] == {"accepted": [{"agent": "devmac-agent#1", "state": "starting"}]}


async def test_a_repeat_of_a_client_id_gives_the_first_message(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    new = {"body": "once", "client_id": "c1"}
    first = await speaker.post("/v1/rooms/api/messages", new)
    again = await speaker.post("/v1/rooms/api/messages", new)
    by_header = await speaker.post(
        "/v1/rooms/api/messages", {"body": "once"}, headers={"Idempotency-Key": "c1"}
    )
    assert [first.status, again.status, by_header.status] == [201, 200, 200]
    assert first.body["message"] == again.body["message"] == by_header.body["message"]
    other = await speaker.post("/v1/rooms/api/messages", {"body": "twice", "client_id": "c1"})
    assert (other.status, other.code) == (409, "client_id_reused")
    theirs = await reader.post("/v1/rooms/api/messages", {"body": "mine", "client_id": "c1"})
    assert theirs.status == 201
    assert await bodies(reader) == ["once"]


async def test_concurrent_twins_are_one_message(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    replies = await asyncio.gather(
        *(
            speaker.post("/v1/rooms/api/messages", {"body": f"m{n % 5}", "client_id": f"c{n % 5}"})
            for n in range(100)
        )
    )
    assert sorted(reply.status for reply in replies) == [200] * 95 + [201] * 5
    assert sorted(await bodies(reader)) == [f"m{n}" for n in range(5)]


async def test_a_reply_joins_its_parents_thread(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    parent = await said(speaker, "api", "question", thread_id="t1")
    reply = await reader.post("/v1/rooms/api/messages", {"body": "answer", "in_reply_to": parent})
    assert reply.body["message"]["thread_id"] == "t1"
    assert reply.body["message"]["text"] == f"[message from devmac-agent#1, reply to #{parent}] answer"


async def test_what_is_said_to_one_member_reaches_that_member_alone(record: Running) -> None:
    box = await record.box("work3")
    one, two, three = [await record.session(box, role) for role in (None, "reach", "front")]
    for party in (one, two, three):
        await party.post("/v1/rooms", {"name": "api"})
    reply = await one.post("/v1/rooms/api/messages", {"body": "psst", "to": "reach"})
    assert [each["agent"] for each in reply.body["receipt"]["accepted"]] == ["work3-agent-reach#1"]
    unread = (await box.get("/v1/unread")).body["agents"]
    assert unread["work3-agent-reach#1"].items() >= {"unread": 1, "addressed": 1, "rooms": {"api": 1}}.items()
    assert len(unread) == 1
    assert (await bodies(two), await bodies(three)) == (["psst"], [])
    history = (await three.get("/v1/rooms/api/messages")).body["messages"]
    assert [(message["body"], message["to"]) for message in history] == [("psst", "reach")]


async def test_in_a_room_an_address_may_name_the_realm_too(
    record: Running, subtests: pytest.Subtests
) -> None:
    box = await record.box("work3")
    one, two = await record.session(box), await record.session(box, "reach")
    for party in (one, two):
        await party.post("/v1/rooms", {"name": "api"})
    for to in ("agent://main/reach", "agent://main/work3-agent-reach#1", "agent://main/everyone"):
        with subtests.test(to):
            reply = await one.post("/v1/rooms/api/messages", {"body": "psst", "to": to})
            assert await bodies(two) == ["psst"]
            assert [each["agent"] for each in reply.body["receipt"]["accepted"]] == ["work3-agent-reach#1"]


HEARD = [
    ("devmac-agent-front#1", {"front"}),
    ("devmac-agent-front", {"front"}),
    ("front", {"front"}),
    ("devmac", {"front", "plain", "devmac"}),
    ("agent://main/devmac-agent#1", {"plain"}),
    ("everyone", {"front", "plain", "devmac", "sibling", "eric"}),
    ("eric", {"eric"}),
]


async def test_an_address_reaches_whom_it_names(record: Running, subtests: pytest.Subtests) -> None:
    work3, devmac = await record.box("work3"), await record.box("devmac")
    sender = await record.session(work3)
    parties = {
        "front": await record.session(devmac, "front"),
        "plain": await record.session(devmac),
        "devmac": devmac,
        "sibling": await record.session(work3),
        "work3": work3,
        "eric": await record.person("eric"),
    }
    for to, heard in HEARD:
        with subtests.test(to):
            reply = await sender.post("/v1/messages", {"to": to, "body": "hello"})
            assert reply.status == 201, reply
            got = {name for name, party in parties.items() if await bodies(party) == ["hello"]}
            assert got == heard
            assert reply.body["message"]["room"] == f"@{to.removeprefix('agent://main/')}"
            assert len(reply.body["receipt"]["accepted"]) == len(heard)


async def test_an_address_that_nobody_else_answers_to_is_refused(
    record: Running, subtests: pytest.Subtests
) -> None:
    work3 = await record.box("work3")
    sender, devmac = await record.session(work3), await record.box("devmac")
    for to in ("nobody", "work3-agent#9", "work3", "work3-agent#1", "agent://other/devmac", "a b"):
        with subtests.test(to):
            reply = await sender.post("/v1/messages", {"to": to, "body": "hello"})
            assert await bodies(devmac) == []
            assert reply.status == 422, reply
            assert reply.body["code"] == "no_such_agent"
            assert "devmac" in reply.body["addressable"]


async def test_the_limit_of_one_agent_is_not_another_ones(database_url: str, tmp_path: Any) -> None:
    settings = settings_for(database_url, tmp_path, say_per_second=1, say_burst=5)
    async with running(settings) as record:
        box = await record.box("work3")
        loud, calm = await record.session(box), await record.session(box)
        for party in (loud, calm):
            await party.post("/v1/rooms", {"name": "api"})
        replies = [await loud.post("/v1/rooms/api/messages", {"body": str(n)}) for n in range(8)]
        refused = [reply for reply in replies if reply.status == 429]
        assert refused
        assert all(int(reply.headers["retry-after"]) >= 1 for reply in refused)
        assert (await calm.post("/v1/rooms/api/messages", {"body": "still heard"})).status == 201
