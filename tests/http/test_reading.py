"""Poll, acknowledge, count."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

import asyncpg
import pytest

from api.db import Database
from api.store.reading import PEEK
from tests.http.running import DEADLINE, Party, Running, until
from tests.http.test_rooms import bodies, said


@pytest.fixture
async def pair(record: Running) -> tuple[Party, Party]:
    """A speaker and a reader on two boxes, in room `api`."""
    box, other = await record.box("work3"), await record.box("devmac")
    speaker, reader = await record.session(box, "reach"), await record.session(other)
    for party in (speaker, reader):
        assert (await party.post("/v1/rooms", {"name": "api"})).status in (200, 201)
    return speaker, reader


async def poll(party: Party, **how: Any) -> dict[str, Any]:
    reply = await party.post("/v1/poll", how)
    assert reply.status == 200, reply
    body: dict[str, Any] = reply.body
    return body


async def unread(party: Party) -> int:
    agents = (await party.get("/v1/unread")).body["agents"]
    return sum(agent["unread"] for agent in agents.values())


def flat(polled: dict[str, Any]) -> list[tuple[str, bool]]:
    return [(m["body"], m["redelivered"]) for room in polled["rooms"] for m in room["messages"]]


async def test_a_leased_batch_comes_again_marked_until_it_is_named(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    await said(speaker, "api", "one")
    first = await poll(reader, ack="lease")
    assert flat(first) == [("one", False)]
    await said(speaker, "api", "two")
    again = await poll(reader, ack="lease")
    assert (flat(again), again["lease"]) == ([("one", True)], first["lease"])
    assert (again["more"], again["rooms"][0]["unread_left"]) == (True, 1)
    rest = await poll(reader, ack="lease", seen=first["lease"])
    assert flat(rest) == [("two", False)]
    assert (await reader.post("/v1/ack", {"lease": rest["lease"]})).body == {}
    assert flat(await poll(reader, ack="lease")) == []


async def test_an_auto_poll_takes_the_open_batch_and_commits_it(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    await said(speaker, "api", "one")
    await poll(reader, ack="lease")
    assert flat(await poll(reader)) == [("one", True)]
    assert flat(await poll(reader)) == []


async def test_a_fresh_batch_is_not_unread_and_a_stale_one_is(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    await said(speaker, "api", "one")
    await poll(reader, ack="lease", lease_seconds=1)
    await said(speaker, "api", "two")
    assert await unread(reader) == 1

    async def counted() -> bool:
        return await unread(reader) == 2

    await until(counted, "the lease runs out")


async def test_saying_with_seen_acknowledges(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    await said(speaker, "api", "question")
    polled = await poll(reader, ack="lease")
    await said(reader, "api", "answer", seen=polled["lease"])
    assert flat(await poll(reader, ack="lease")) == []


async def test_a_lease_of_somebody_else_is_refused(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    await said(speaker, "api", "one")
    lease = (await poll(reader, ack="lease"))["lease"]
    reply = await speaker.post("/v1/ack", {"lease": lease})
    assert (reply.status, reply.code) == (404, "not_found")
    assert flat(await poll(reader, ack="lease")) == [("one", True)]


async def test_acknowledging_twice_commits_nothing_more(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    await said(speaker, "api", "one")
    lease = (await poll(reader, ack="lease"))["lease"]
    await reader.post("/v1/ack", {"lease": lease})
    await said(speaker, "api", "two")
    second = await poll(reader, ack="lease")
    assert (await reader.post("/v1/ack", {"lease": lease})).status == 200
    assert flat(await poll(reader, ack="lease")) == [("two", True)]
    assert second["lease"] != lease


async def test_a_poll_with_the_same_key_gives_the_same_batch(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    await said(speaker, "api", "one")
    first = await poll(reader, poll_key="k1")
    await said(speaker, "api", "two")
    again = await poll(reader, poll_key="k1")
    assert (flat(first), flat(again)) == ([("one", False)], [("one", True)])
    assert flat(await poll(reader, poll_key="k2")) == [("two", False)]


async def test_a_limit_takes_turns_between_rooms(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    for party in (speaker, reader):
        await party.post("/v1/rooms", {"name": "loud"})
    for n in range(20):
        await said(speaker, "loud", f"loud{n}")
    for n in range(3):
        await said(speaker, "api", f"api{n}")
    polled = await poll(reader, limit=6)
    assert {room["room"]: len(room["messages"]) for room in polled["rooms"]} == {"api": 3, "loud": 3}
    assert (polled["count"], polled["more"]) == (6, True)
    assert {room["room"]: room["unread_left"] for room in polled["rooms"]} == {"api": 0, "loud": 17}
    drained = [body for body, _ in flat(await poll(reader))]
    assert drained == [f"loud{n}" for n in range(3, 20)]


async def test_bytes_bound_a_poll_and_one_message_always_comes(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    await said(speaker, "api", "ü" * 500)
    await said(speaker, "api", "small")
    polled = await poll(reader, max_bytes=101)
    message = polled["rooms"][0]["messages"][0]
    assert (message["body"], message["truncated"]) == ("ü" * 50, True)
    assert polled["more"]
    whole = (await reader.get("/v1/rooms/api/messages")).body["messages"][0]
    assert (whole["body"], whole["truncated"]) == ("ü" * 500, False)
    assert flat(await poll(reader, max_bytes=101)) == [("small", False)]


async def test_an_expired_message_is_never_delivered(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    await said(speaker, "api", "gone", ttl_seconds=0.05)
    await said(speaker, "api", "stays")

    async def expired() -> bool:
        return await unread(reader) == 1

    await until(expired, "the message expires")
    assert flat(await poll(reader)) == [("stays", False)]


async def test_a_waiting_poll_answers_when_something_comes(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    waiting = asyncio.create_task(poll(reader, wait_seconds=15))
    while not waiting.done():
        await said(speaker, "api", "now")
        await asyncio.wait([waiting], timeout=2)
    assert flat(await waiting)[0] == ("now", False)


async def test_who_hangs_up_while_waiting_consumes_nothing(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    for _ in range(5):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                await poll(reader, wait_seconds=30)
    await said(speaker, "api", "one")
    assert flat(await poll(reader)) == [("one", False)]


async def test_a_revoked_token_ends_the_poll_that_waits_with_it(record: Running) -> None:
    box = await record.box("work3")
    session = await record.session(box)
    began = time.monotonic()
    waiting = asyncio.create_task(session.post("/v1/poll", {"wait_seconds": 40}))
    await asyncio.wait([waiting], timeout=0.3)
    assert (await record.operator.delete(f"/v1/admin/tokens/{box.token_id}")).status == 204
    assert (await waiting).status == 401
    assert time.monotonic() - began < 20


BAD: list[tuple[dict[str, Any], str]] = [
    ({"limit": 0}, "limit"),
    ({"limit": 1001}, "limit"),
    ({"limit": 1.5}, "limit"),
    ({"max_bytes": 0}, "max_bytes"),
    ({"wait_seconds": 51}, "wait_seconds"),
    ({"lease_seconds": 0}, "lease_seconds"),
    ({"ack": "never"}, "ack"),
    ({"room": "api"}, "room"),
    ({"poll_key": "a\nb"}, "poll_key"),
]


async def test_a_bad_poll_names_the_field_and_consumes_nothing(
    pair: tuple[Party, Party], subtests: pytest.Subtests
) -> None:
    speaker, reader = pair
    for how, field in BAD:
        with subtests.test(how=how):
            await said(speaker, "api", "one")
            reply = await reader.post("/v1/poll", how)
            assert flat(await poll(reader)) == [("one", False)]
            assert (reply.status, reply.body["field"]) == (422, field)


async def test_a_cursor_moves_forward_by_hand_and_never_back(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    ids = [await said(speaker, "api", str(n)) for n in range(4)]
    await reader.post("/v1/ack", {"rooms": {"api": ids[1]}})
    assert await unread(reader) == 2
    await reader.post("/v1/ack", {"rooms": {"api": ids[0]}})
    assert await unread(reader) == 2
    reply = await reader.post("/v1/ack", {"rooms": {"api": ids[2], "nowhere": 1}})
    assert (reply.status, reply.body["field"]) == (422, "rooms")
    assert await unread(reader) == 2
    await reader.post("/v1/ack", {"rooms": {"api": 2**62}})
    await said(speaker, "api", "later")
    assert await bodies(reader) == ["later"]


@pytest.mark.long
async def test_many_polls_of_one_reader_share_what_many_writers_say(record: Running) -> None:
    box, other = await record.box("work3"), await record.box("devmac")
    writers = [await record.session(box) for _ in range(8)]
    reader = await record.session(other)
    for party in (*writers, reader):
        for room in ("one", "two"):
            await party.post("/v1/rooms", {"name": room})
    writing = asyncio.gather(
        *(
            said(w, room, f"{w.agent}/{n}/{room}")
            for w in writers
            for n in range(25)
            for room in ("one", "two")
        )
    )
    seen: list[tuple[int, str]] = []

    async def read() -> None:
        while not writing.done() or await unread(reader):
            polled = await poll(reader, limit=7)
            seen.extend((m["id"], m["body"]) for room in polled["rooms"] for m in room["messages"])

    async with asyncio.timeout(60):
        await asyncio.gather(*(read() for _ in range(4)))
    assert len(seen) == len(set(seen)) == 400
    assert {message_id for message_id, _ in seen} == set(await writing)


async def test_many_polls_of_one_reader_take_one_connection_from_everybody_else(
    record: Running, pair: tuple[Party, Party], database_url: str
) -> None:
    speaker, reader = pair
    await said(speaker, "api", "one")
    connection = await asyncpg.connect(database_url)

    async def waiting() -> int:
        waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        count: int = await connection.fetchval(waits)
        return count

    async def one_waits() -> bool:
        return await waiting() > 0

    try:
        lock = "SELECT pg_advisory_lock(-agent_id) FROM agents WHERE handle = $1"
        await connection.fetchval(lock, reader.agent)
        polls = [asyncio.create_task(poll(reader, ack="lease")) for _ in range(20)]
        await until(one_waits, "a poll waits for the reader's lock")
        async with asyncio.timeout(DEADLINE / 2):
            for number in range(20):
                await said(speaker, "api", str(number))
        assert await waiting() == 1
        await connection.execute("SELECT pg_advisory_unlock_all()")
        assert {flat(polled)[0][0] for polled in await asyncio.gather(*polls)} == {"one"}
    finally:
        await connection.close()


async def test_polls_of_one_reader_that_wake_together_look_one_after_the_other(
    pair: tuple[Party, Party], monkeypatch: pytest.MonkeyPatch
) -> None:
    speaker, reader = pair
    fetch, looking, most, looks = Database.fetch, 0, 0, 0

    async def watched(self: Database, statement: str, *arguments: Any) -> Any:
        nonlocal looking, most, looks
        looking += statement == PEEK
        looks += statement == PEEK
        most = max(most, looking)
        try:
            return await fetch(self, statement, *arguments)
        finally:
            looking -= statement == PEEK

    monkeypatch.setattr(Database, "fetch", watched)
    polls = [asyncio.create_task(poll(reader, wait_seconds=10)) for _ in range(30)]
    await until(lambda: looks >= 60, "all of them wait")
    await said(speaker, "api", "one")
    await until(lambda: any(task.done() for task in polls), "one of them is answered")
    assert most == 1
    for task in polls:
        task.cancel()
    await asyncio.gather(*polls, return_exceptions=True)


async def test_a_bare_box_token_counts_for_every_session_of_its_box(record: Running) -> None:
    box, other = await record.box("work3"), await record.box("devmac")
    one, two, theirs = await record.session(box), await record.session(box), await record.session(other)
    for party in (box, one, two, theirs):
        await party.post("/v1/rooms", {"name": "api"})
    await said(one, "api", "from a session")
    await said(box, "api", "from the bare box")
    await said(theirs, "api", "from another box")
    counts = {name: agent["unread"] for name, agent in (await box.get("/v1/unread")).body["agents"].items()}
    assert counts == {"work3": 1, "work3-agent#1": 1, "work3-agent#2": 2}
    own = (await two.get("/v1/unread")).body["agents"]
    oldest = own["work3-agent#2"].pop("oldest_ids")["api"]
    assert own == {
        "work3-agent#2": {
            "unread": 2,
            "addressed": 0,
            "urgent": 0,
            "rooms": {"api": 2},
            "addressed_in": {},
            "urgent_in": {},
            "from_people_in": {},
        }
    }
    assert (await two.get(f"/v1/messages/{oldest}")).body["message"]["body"] == "from a session"


async def test_a_poll_key_gives_a_lease_that_its_poll_has_committed_again(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    await said(speaker, "api", "once")
    assert flat(await poll(reader, ack="lease", poll_key="k1")) == [("once", False)]
    assert flat(await poll(reader, poll_key="k2")) == [("once", True)]
    assert flat(await poll(reader, poll_key="k2")) == [("once", True)]
    assert flat(await poll(reader, poll_key="k3")) == []
    assert flat(await poll(reader, poll_key="k3")) == []


async def test_a_poll_key_outlives_the_lease_that_its_poll_renewed(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    await said(speaker, "api", "once")
    await poll(reader, ack="lease")
    renewed = await poll(reader, ack="lease", poll_key="k1")
    await reader.post("/v1/ack", {"lease": renewed["lease"]})
    assert flat(await poll(reader, ack="lease", poll_key="k1")) == [("once", True)]


async def test_a_key_whose_batch_is_no_longer_readable_leads_to_the_open_batch(
    pair: tuple[Party, Party],
) -> None:
    speaker, reader = pair
    for party in pair:
        await party.post("/v1/rooms", {"name": "ops"})
    await said(speaker, "api", "one")
    assert flat(await poll(reader, poll_key="k1")) == [("one", False)]
    await said(speaker, "ops", "two")
    leased = await poll(reader, ack="lease")
    assert flat(leased) == [("two", False)]
    await reader.post("/v1/rooms/api/leave")
    again = await poll(reader, poll_key="k1", ack="lease")
    assert (flat(again), again["lease"]) == ([("two", True)], leased["lease"])
    assert flat(await poll(reader, poll_key="k1")) == [("two", True)]


async def test_a_leased_batch_of_a_room_that_was_left_is_not_taken(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    for n in range(3):
        await said(speaker, "api", f"m{n}")
    lease = (await poll(reader, ack="lease"))["lease"]
    await reader.post("/v1/rooms/api/leave")
    assert flat(await poll(reader, ack="lease")) == []
    assert flat(await poll(reader)) == []
    await reader.post("/v1/rooms/api/join", {"backfill": "all"})
    assert await unread(reader) == 3
    assert (await reader.post("/v1/ack", {"lease": lease})).status == 200
    assert await unread(reader) == 3
    assert flat(await poll(reader)) == [("m0", True), ("m1", True), ("m2", True)]


@pytest.mark.parametrize("call", ["leave", "join", "start"])
async def test_membership_changes_only_between_a_readers_polls(
    pair: tuple[Party, Party], database_url: str, call: str
) -> None:
    ada, _ = pair
    connection = await asyncpg.connect(database_url)
    try:
        if call != "leave":
            assert (await ada.post("/v1/rooms/api/leave")).status == 200
        agent_id = await connection.fetchval("SELECT agent_id FROM agents WHERE handle = $1", ada.agent)
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock($1)", -agent_id)  # as a poll does
            path, body = ("/v1/rooms", {"name": "api"}) if call == "start" else (f"/v1/rooms/api/{call}", {})
            changing = asyncio.create_task(ada.post(path, body))
            waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)"
            await until(lambda: connection.fetchval(waits), "it waits")
            assert not changing.done()
        assert (await changing).status == 200
    finally:
        await connection.close()


@pytest.mark.long
async def test_what_was_handed_over_before_leaving_comes_again_marked_or_not_at_all(
    pair: tuple[Party, Party], second: Running
) -> None:
    speaker, reader = pair
    there, handed = second.holding(str(reader.token), reader.agent), set[str]()
    for number in range(150):
        await said(speaker, "api", f"m{number}")
        leased = await poll(reader, ack="lease")
        handed |= {body for body, _ in flat(leased)}
        await asyncio.gather(poll(reader, ack="lease"), there.post("/v1/rooms/api/leave"))
        await reader.post("/v1/ack", {"lease": leased["lease"]})
        await reader.post("/v1/rooms/api/join", {"backfill": "all"})
        again = flat(await poll(reader))
        assert [body for body, marked in again if body in handed and not marked] == []
        handed |= {body for body, _ in again}


async def test_an_auto_poll_commits_of_an_open_batch_only_what_it_hands_over(
    pair: tuple[Party, Party],
) -> None:
    speaker, reader = pair
    for party in (speaker, reader):
        await party.post("/v1/rooms", {"name": "left"})
    await said(speaker, "api", "stays")
    await said(speaker, "left", "comes back")
    assert len(flat(await poll(reader, ack="lease"))) == 2
    await reader.post("/v1/rooms/left/leave")
    assert flat(await poll(reader)) == [("stays", True)]
    await reader.post("/v1/rooms/left/join", {"backfill": "all"})
    assert flat(await poll(reader)) == [("comes back", True)]


async def test_a_cursor_cannot_be_moved_ahead_of_an_empty_room(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    await reader.post("/v1/ack", {"rooms": {"api": 2**62, "@everyone": 2**62}})
    await said(speaker, "api", "heard")
    assert (await speaker.post("/v1/messages", {"to": "everyone", "body": "heard, too"})).status == 201
    assert sorted(body for body, _ in flat(await poll(reader))) == ["heard", "heard, too"]


async def test_a_repeated_batch_says_how_many_newer_ones_wait_and_which_is_the_newest(
    pair: tuple[Party, Party],
) -> None:
    speaker, reader = pair
    for party in pair:
        await party.post("/v1/rooms", {"name": "ops"})
    await said(speaker, "api", "one")
    await poll(reader, ack="lease")
    in_api = [await said(speaker, "api", f"api {n}") for n in range(2)]
    in_ops = [await said(speaker, "ops", f"ops {n}") for n in range(3)]
    again = await poll(reader, ack="lease")
    assert flat(again) == [("one", True)]
    assert (again["more"], again["unread_left"], again["newest_id"]) == (True, 5, in_ops[-1])
    assert [(room["unread_left"], room["newest_id"]) for room in again["rooms"]] == [(2, in_api[-1])]
    first = await poll(reader, seen=again["lease"], limit=1)
    assert (first["count"], first["more"], first["unread_left"]) == (1, True, 4)
    rest = await poll(reader)
    assert (rest["count"], rest["more"], rest["unread_left"]) == (4, False, 0)
    assert {room["room"]: room["newest_id"] for room in rest["rooms"]} == {
        "api": in_api[-1],
        "ops": in_ops[-1],
    }
    empty = await poll(reader)
    assert (empty["count"], empty["unread_left"], empty["newest_id"]) == (0, 0, in_ops[-1])


async def test_a_poll_of_some_rooms_tells_of_those_rooms_alone(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    for party in pair:
        await party.post("/v1/rooms", {"name": "ops"})
    newest = [await said(speaker, "api", f"api {n}") for n in range(3)][-1]
    for n in range(2):
        await said(speaker, "ops", f"ops {n}")
    some = await poll(reader, rooms=["api"], limit=2)
    assert flat(some) == [("api 0", False), ("api 1", False)]
    assert (some["more"], some["unread_left"], some["newest_id"]) == (True, 1, newest)
    rest = await poll(reader, rooms=["api"], ack="lease")
    assert flat(rest) == [("api 2", False)]
    assert (rest["more"], rest["unread_left"], rest["newest_id"]) == (False, 0, newest)
    again = await poll(reader, rooms=["ops"], ack="lease")
    assert (flat(again), again["lease"]) == ([("api 2", True)], rest["lease"])
    assert (again["more"], again["unread_left"]) == (True, 2)
    assert flat(await poll(reader, rooms=["ops"], seen=rest["lease"])) == [("ops 0", False), ("ops 1", False)]


async def test_a_poll_of_some_rooms_waits_for_those_rooms(pair: tuple[Party, Party]) -> None:
    speaker, reader = pair
    for party in pair:
        await party.post("/v1/rooms", {"name": "ops"})
    waiting = asyncio.create_task(poll(reader, rooms=["ops", "@devmac"], wait_seconds=15))
    await said(speaker, "api", "not asked for")
    await asyncio.wait([waiting], timeout=1.5)
    assert not waiting.done()
    await speaker.post("/v1/messages", {"to": "devmac", "body": "asked for"})
    assert flat(await waiting) == [("asked for", False)]
    assert flat(await poll(reader)) == [("not asked for", False)]


async def test_a_poll_of_a_room_that_the_caller_is_not_in_is_refused_and_consumes_nothing(
    pair: tuple[Party, Party], subtests: pytest.Subtests
) -> None:
    speaker, reader = pair
    for party, name in ((speaker, "elsewhere"), (speaker, "left"), (reader, "left")):
        await party.post("/v1/rooms", {"name": name})
    await reader.post("/v1/rooms/left/leave")
    await said(speaker, "api", "one")
    lease = (await poll(reader, ack="lease"))["lease"]
    await said(speaker, "api", "two")
    every: list[list[str]] = [[], ["nowhere"], ["api", "elsewhere"], ["left"], ["@work3"], ["@nobody"]]
    for rooms in every:
        with subtests.test(rooms=rooms):
            reply = await reader.post("/v1/poll", {"rooms": rooms, "seen": lease, "wait_seconds": 10})
            assert (reply.status, reply.body["field"]) == (422, "rooms")
            named = {room for room in rooms if room in reply.body["detail"]}
            assert named - {"api"} == set(rooms) - {"api"}
            assert flat(await poll(reader, ack="lease")) == [("one", True)]


@pytest.mark.parametrize("ack", ["auto", "lease"])
async def test_a_poll_that_waits_for_a_session_that_leaves_takes_nothing_with_it(
    record: Running, ack: str
) -> None:
    speaker, reader = await record.person("ines"), await record.session(await record.box("work3"))
    waiting = asyncio.create_task(reader.post("/v1/poll", {"wait_seconds": 50, "ack": ack}))
    await asyncio.sleep(0.1)
    assert (await reader.post("/v1/checkout", {})).status == 200
    sent = (await speaker.post("/v1/messages", {"to": reader.agent, "body": "too late"})).body
    assert sent["receipt"]["accepted"] == []
    answer = await waiting
    assert answer.body.get("count") == 0, answer

    async def listed() -> bool:
        messages = (await speaker.get("/v1/undelivered")).body["messages"]
        return [message["id"] for message in messages] == [sent["message"]["id"]]

    await until(listed, "the report")
