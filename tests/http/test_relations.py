"""Threads, replies, relays, and results of a promised form."""

from __future__ import annotations

from typing import Any

import pytest

from tests.http.running import Party, Reply, Running, until
from tests.http.test_rooms import bodies, said

NOTES = {
    "type": "object",
    "properties": {"notes": {"type": "array", "items": {"type": "string"}}},
    "required": ["notes"],
}


@pytest.fixture
async def pair(record: Running) -> tuple[Party, Party]:
    """A speaker and a reader on two boxes, in room `api`."""
    box, other = await record.box("work3"), await record.box("devmac")
    speaker, reader = await record.session(box, "reach"), await record.session(other)
    for party in (speaker, reader):
        assert (await party.post("/v1/rooms", {"name": "api"})).status in (200, 201)
    return speaker, reader


async def say(party: Party, **new: Any) -> Reply:
    return await party.post("/v1/rooms/api/messages", new)


async def test_a_request_opens_a_thread_and_answers_join_it(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    request = (await say(speaker, body="do it", type="task.request")).body["message"]
    answer = (await say(reader, body="done", type="task.result", in_reply_to=request["id"])).body["message"]
    assert request["thread_id"].startswith("thr_")
    assert answer["thread_id"] == request["thread_id"]
    thread = (await reader.get(f"/v1/threads/{request['thread_id']}")).body
    assert [message["body"] for message in thread["messages"]] == ["do it", "done"]
    assert thread["next_cursor"] is None


async def test_a_thread_is_read_in_pages_and_only_by_those_who_may(
    record: Running, pair: tuple[Party, Party]
) -> None:
    speaker, reader = pair
    for n in range(5):
        await said(speaker, "api", str(n), thread_id="t1")
    first = (await reader.get("/v1/threads/t1?limit=3")).body
    rest = (await reader.get(f"/v1/threads/t1?limit=3&cursor={first['next_cursor']}")).body
    assert [m["body"] for page in (first, rest) for m in page["messages"]] == ["0", "1", "2", "3", "4"]
    stranger = await record.session(await record.box("zoo"))
    assert (await stranger.get("/v1/threads/t1")).status == 404
    assert (await reader.get("/v1/threads/none")).status == 404


async def test_a_relay_loses_a_hop_until_it_is_refused_and_the_first_sender_told(
    pair: tuple[Party, Party],
) -> None:
    speaker, reader = pair
    first = (await say(speaker, body="ask", type="task.request", hop_limit=3)).body["message"]
    hops, message = [], first
    while True:
        reply = await say(reader, body="passed on", relay_of=message["id"], hop_limit=9)
        if reply.status != 201:
            break
        message = reply.body["message"]
        hops.append((message["hop_limit"], message["thread_id"]))
    assert hops == [(2, first["thread_id"]), (1, first["thread_id"])]
    assert (reply.status, reply.code, reply.body["origin"]) == (422, "hop_limit_reached", speaker.agent)

    async def told() -> bool:
        polled = (await speaker.post("/v1/poll", {})).body
        return [
            (m["type"], m["sender"], m["thread_id"])
            for room in polled["rooms"]
            for m in room["messages"]
            if m["sender_kind"] == "system"
        ] == [("task.error", "system", first["thread_id"])]

    await until(told, "the first sender is told")


async def test_a_request_into_an_existing_thread_loses_a_hop(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    first = (await say(speaker, body="ask", type="task.request", hop_limit=2)).body["message"]
    second = await say(reader, body="ask on", type="task.request", thread_id=first["thread_id"])
    assert second.body["message"]["hop_limit"] == 1
    third = await say(speaker, body="ask on", type="task.request", in_reply_to=second.body["message"]["id"])
    assert third.code == "hop_limit_reached"


async def test_only_what_is_passed_on_counts_a_threads_hops(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    root = await said(speaker, "api", "do", type="task.request", thread_id="t", hop_limit=1)
    elsewhere = await said(speaker, "api", "another matter")
    request = {"body": "do", "type": "task.request", "thread_id": "t"}
    assert [(await say(speaker, **request)).code for _ in range(3)] == ["hop_limit_reached"] * 3
    note = await said(reader, "api", "a note", thread_id="t")
    await said(reader, "api", "done", type="task.result", in_reply_to=root)
    told = (await speaker.get("/v1/messages?limit=100")).body["messages"]
    [report, *_] = [message["id"] for message in told if message["sender"] == "system"]
    again: list[tuple[Party, dict[str, int]]] = [
        (speaker, {}),
        (reader, {}),
        (reader, {"in_reply_to": note}),
        (reader, {"in_reply_to": elsewhere}),
        (reader, {"relay_of": note}),
        (speaker, {"relay_of": report}),
    ]
    for party, more in again:
        assert (await say(party, **request, **more)).code == "hop_limit_reached", more


async def test_what_goes_on_from_the_same_message_has_the_same_hops(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    root = await said(speaker, "api", "do", type="task.request", thread_id="t")
    await said(speaker, "api", "a note", thread_id="notes")
    every: list[dict[str, Any]] = [
        *({"relay_of": root} for _ in range(6)),
        *({"in_reply_to": root, "type": "task.request"} for _ in range(6)),
        {"thread_id": "notes", "type": "task.request"},
    ]
    replies = [await say(reader, body="go on", **more) for more in every]
    assert [reply.body["message"]["hop_limit"] for reply in replies] == [4] * 13


async def test_whoever_began_a_thread_is_told_by_those_who_cannot_read_that(record: Running) -> None:
    first, second, third, last = [
        await record.session(await record.box(name)) for name in ("work3", "devmac", "zoo", "barn")
    ]
    request = {"body": "do", "type": "task.request", "thread_id": "t"}
    for by, to, hops in ((first, second, 2), (second, third, 5)):
        sent = await by.post("/v1/messages", {**request, "to": to.agent, "hop_limit": hops})
        assert sent.status == 201
    reply = await third.post("/v1/messages", {**request, "to": last.agent})
    assert (reply.code, reply.body["origin"]) == ("hop_limit_reached", first.agent)


async def test_a_relay_names_no_other_thread(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    asked = await said(speaker, "api", "do", type="task.request", thread_id="t")
    reply = await say(reader, body="on", relay_of=asked, thread_id="other")
    assert (reply.status, reply.body["field"]) == (422, "thread_id")
    assert (await say(reader, body="on", relay_of=asked, thread_id="t")).status == 201


async def test_a_thread_of_others_is_like_one_that_is_new(record: Running, pair: tuple[Party, Party]) -> None:
    owner, _ = pair
    await said(owner, "api", "ours", thread_id="private")
    await said(owner, "api", "ours", type="task.request", thread_id="private", hop_limit=1)
    probing, friend = [await record.session(await record.box(name)) for name in ("zoo", "barn")]
    seeds = []
    for _ in range(2):
        seed = await probing.post(
            "/v1/messages", {"to": friend.agent, "body": "x", "type": "task.request", "hop_limit": 1}
        )
        seeds.append(seed.body["message"]["id"])

    async def probed(thread: str, seed: int) -> list[Any]:
        request = {"type": "task.request", "hop_limit": 2}
        answers = []
        for by, to, more in (
            (probing, friend, {"relay_of": seed}),
            (probing, friend, {"relay_of": seed, "type": "task.request"}),
            (probing, friend, {"in_reply_to": seed, "type": "task.request"}),
            (probing, friend, {"in_reply_to": seed}),
            (probing, friend, request),
            (friend, probing, request),
            (probing, friend, request),
            (friend, probing, request),
        ):
            reply = await by.post("/v1/messages", {"body": "x", "to": to.agent, "thread_id": thread, **more})
            body = reply.body.get("message", reply.body)
            answers.append((reply.status, *(body.get(key) for key in ("code", "hop_limit", "origin"))))
        return answers

    first, second = await probed("private", seeds[0]), await probed("unheard-of", seeds[1])
    assert first == second
    assert {answer[0] for answer in first} == {201, 422}
    view = (await owner.get("/v1/threads/private")).body["messages"]
    assert [message["body"] for message in view] == ["ours", "ours"]
    assert (await owner.get("/v1/messages")).body["messages"] == []


async def test_a_reply_to_what_expired_is_late(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    message_id = await said(speaker, "api", "quick", ttl_seconds=0.05)

    async def late() -> bool:
        return bool((await say(reader, body="x", in_reply_to=message_id)).body["message"]["late"])

    await until(late, "the question expires")


async def test_a_result_must_keep_the_form_that_was_asked_for(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    asked = await say(speaker, type="task.request", payload={"summary": "notes", "output_schema": NOTES})
    request = asked.body["message"]["id"]
    wrong = await say(
        reader, type="task.result", in_reply_to=request, payload={"summary": "x", "content": {"notes": [1]}}
    )
    assert (wrong.status, wrong.body["field"]) == (422, "payload.content")
    assert "$.notes[0]" in wrong.body["detail"]
    nothing = await say(reader, type="task.result", in_reply_to=request, body="here")
    assert nothing.status == 422
    for type_ in ("task.partial", "clarification.request", "task.error"):
        assert (await say(reader, type=type_, in_reply_to=request, body="not yet")).status == 201
    right = await say(
        reader, type="task.result", in_reply_to=request, payload={"summary": "x", "content": {"notes": ["a"]}}
    )
    assert right.status == 201
    assert await bodies(speaker) == ["not yet", "not yet", "not yet", None]


async def test_a_result_must_keep_it_too_where_parts_and_questions_lie_between(
    pair: tuple[Party, Party],
) -> None:
    speaker, reader = pair

    async def said_by(party: Party, type_: str, to: int | None, **payload: Any) -> Reply:
        return await say(party, type=type_, in_reply_to=to, payload={"summary": "x", **payload})

    async def id_of(party: Party, type_: str, to: int | None, **payload: Any) -> int:
        reply = await said_by(party, type_, to, **payload)
        assert reply.status == 201, reply
        message_id: int = reply.body["message"]["id"]
        return message_id

    request = await id_of(speaker, "task.request", None, output_schema=NOTES)
    partial = await id_of(reader, "task.partial", request, content=1)
    question = await id_of(reader, "clarification.request", partial)
    answer = await id_of(speaker, "note", question)
    for way in (partial, question, answer):
        wrong = await said_by(reader, "task.result", way, content={"notes": [1]})
        assert (wrong.status, wrong.body["field"]) == (422, "payload.content"), wrong
        assert (await said_by(reader, "task.result", way, content={"notes": ["a"]})).status == 201
    of_its_own = await id_of(speaker, "task.request", partial)
    assert (await said_by(reader, "task.result", of_its_own, content=1)).status == 201
    assert (await speaker.post("/v1/rooms", {"name": "aside"})).status == 201
    asked = {"type": "task.request", "payload": {"summary": "x", "output_schema": NOTES}}
    hidden = (await speaker.post("/v1/rooms/aside/messages", asked)).body["message"]["id"]
    told = await id_of(speaker, "note", hidden)
    assert (await said_by(reader, "task.result", told, content=1)).status == 201


NO_SCHEMAS: list[Any] = [
    {"type": "no such type"},
    {"$ref": "http://127.0.0.1:1/schema"},
    {"properties": {"a": {"$ref": "file:///etc/passwd"}}},
    {"$schema": "http://json-schema.org/draft-07/schema#"},
    {"$ref": "#/$defs/missing"},
    {"enum": ["x" * 40_000]},
    5,
]


async def test_a_schema_that_is_none_or_refers_elsewhere_is_refused(
    pair: tuple[Party, Party], subtests: pytest.Subtests
) -> None:
    for schema in NO_SCHEMAS:
        with subtests.test(schema=schema):
            reply = await say(pair[0], payload={"summary": "x", "output_schema": schema})
            assert (reply.status, reply.body["field"]) == (422, "payload.output_schema"), reply


@pytest.mark.long
async def test_a_pattern_that_never_ends_is_ended(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    schema = {"type": "string", "pattern": "^(a+)+$"}
    asked = await say(speaker, type="task.request", payload={"summary": "x", "output_schema": schema})
    reply = await say(
        reader,
        type="task.result",
        in_reply_to=asked.body["message"]["id"],
        payload={"summary": "x", "content": "a" * 60 + "!"},
    )
    assert (reply.status, reply.body["field"]) == (422, "payload.content")
    assert (await say(reader, body="the record goes on")).status == 201
