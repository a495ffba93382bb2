"""What is too fast or too much is refused, to whoever does it alone, and only for a while."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import asyncpg
import pytest

from api.settings import Settings
from tests.faults.processes import NO_LIMITS, record_process
from tests.http.running import Party, Reply, Running, running, settings_for, until

RUSH = 12
Take = Callable[[Callable[[Party], Party], int], Awaitable[Reply]]
Count = Callable[[], Awaitable[int]]


@pytest.fixture
async def narrow(database_url: str, tmp_path: Path) -> AsyncIterator[Running]:
    """A record with little room for anything."""
    settings = settings_for(
        database_url,
        tmp_path,
        say_per_second=2,
        say_burst=4,
        urgent_per_second=0.5,
        urgent_burst=2,
        box_per_second=0.5,
        box_burst=30,
        rooms_per_realm=2,
        members_per_room=2,
        handles_per_box=2,
        waiting_calls=2,
    )
    async with running(settings) as record:
        yield record


async def exhaust(party: Party, method: str, path: str, body: object = None) -> Reply:
    """Call until it is refused; that refusal."""
    for _ in range(200):
        reply = await party.call(method, path, body)
        if reply.status == 429:
            return reply
        assert reply.status < 300, reply
    raise AssertionError(f"never refused: {path}")


async def test_a_refusal_tells_the_limit_and_when_to_come_again(narrow: Running) -> None:
    session = await narrow.session(await narrow.box("work3"))
    await session.post("/v1/rooms", {"name": "api"})
    refused = await exhaust(session, "POST", "/v1/rooms/api/messages", {"body": "hello"})
    assert refused.code == "rate_limited"
    assert refused.headers["retry-after"] == "1"
    assert refused.headers["ratelimit"] == '"say";r=0;t=1'
    assert refused.headers["ratelimit-policy"] == '"say";q=4;w=2'
    assert (refused.body["limit"], refused.body["quota"], refused.body["retry_after"]) == ("say", 4, 1)
    assert refused.headers["x-tyode-agent"] == session.agent


async def test_what_is_urgent_is_rarer_than_the_rest(narrow: Running) -> None:
    session = await narrow.session(await narrow.box("work3"))
    await session.post("/v1/rooms", {"name": "api"})
    for _ in range(2):
        said = await session.post("/v1/rooms/api/messages", {"body": "fire", "urgent": True})
        assert said.status == 201
    refused = await session.post("/v1/rooms/api/messages", {"body": "fire", "urgent": True})
    assert (refused.code, refused.body["limit"]) == ("rate_limited", "urgent")
    assert f"Wait {refused.headers['retry-after']} s" in refused.body["detail"]
    assert (await session.post("/v1/rooms/api/messages", {"body": "smoke"})).status == 201


@pytest.mark.parametrize("path", ["/v1/poll", "/v1/checkin", "/v1/rooms/api/messages"])
async def test_a_body_that_is_said_to_be_too_large_is_refused_before_it_comes(
    path: str, narrow: Running
) -> None:
    box = await narrow.box("work3")
    url = urlsplit(narrow.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    head = (
        f"POST {path} HTTP/1.1",
        "Host: x",
        f"Authorization: Bearer {box.token}",
        "Content-Length: 99999999999",
    )
    writer.write("\r\n".join((*head, "", "")).encode())
    async with asyncio.timeout(60):
        assert b" 413 " in await reader.readline()
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize(
    ("method", "path", "body"), [("POST", "/v1/poll", {}), ("GET", "/v1/whoami", None)], ids=["lane", "rest"]
)
async def test_a_box_that_is_too_fast_holds_up_no_other_and_recovers_alone(
    narrow: Running, method: str, path: str, body: object
) -> None:
    loud, calm, eric = await narrow.box("loud"), await narrow.box("calm"), await narrow.person("eric")
    session = await narrow.session(loud)
    refused = await exhaust(session, method, path, body)
    assert refused.code == "rate_limited"
    assert refused.headers["ratelimit-policy"] == '"box";q=30;w=60'
    assert refused.headers["x-tyode-agent"] == session.agent
    statuses = [(await loud.get("/v1/whoami")).status for _ in range(10)]
    assert 429 in statuses, "the box has calls of its own left beside its session's"
    for other in (calm, eric):
        assert (await other.call(method, path, body)).status == 200

    async def recovered() -> bool:
        return (await session.call(method, path, body)).status == 200

    await until(recovered, "the box may call again")


REFUSED = [("{box}-agent-eric#1", 409), ("{box}-agent-everyone#1", 422), ("UPPER", 400)]
"""A person's name, a reserved role, no handle."""


@pytest.mark.parametrize("path", ["/v1/unread", "/v1/whoami"], ids=["lane", "rest"])
async def test_a_refused_handle_is_counted_before_it_is_looked_at(
    path: str, database_url: str, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    never_again = settings_for(database_url, tmp_path, box_per_second=0.001, box_burst=30)
    async with running(never_again) as record:
        await record.person("eric")
        for number, (handle, status) in enumerate(REFUSED):
            with subtests.test(handle):
                box, calm = await record.box(f"loud-{number}"), await record.box(f"calm-{number}")
                refused = box.speaking_as(handle.format(box=f"loud-{number}"))
                replies = [await refused.get(path) for _ in range(31)]
                assert [reply.status for reply in replies] == [status] * 30 + [429]
                assert (await box.get(path)).status == 429
                assert {reply.headers["x-tyode-agent"] for reply in replies} == {f"loud-{number}"}
                assert (await calm.get(path)).status == 200


async def test_the_calls_of_one_reader_that_wait_have_an_end(narrow: Running) -> None:
    box = await narrow.box("work3")
    reader, other = await narrow.session(box), await narrow.session(box)
    loop = asyncio.get_running_loop()

    def waiting(party: Party) -> asyncio.Task[Reply]:
        return loop.create_task(party.post("/v1/poll", {"wait_seconds": 15}))

    polls = [waiting(reader), waiting(reader), waiting(reader)]
    await until(lambda: any(poll.done() for poll in polls), "one too many is refused")
    refused = next(poll.result() for poll in polls if poll.done())
    assert (refused.status, refused.body["limit"], refused.body["quota"]) == (429, "waiting", 2)
    assert refused.headers["retry-after"] == "1"
    assert (await reader.get("/v1/messages?wait_seconds=15")).status == 429
    assert (await reader.post("/v1/poll", {})).status == 200
    elsewhere = waiting(other)
    for sender, to in ((other, reader), (reader, other)):
        sent = await sender.post("/v1/messages", {"to": to.agent, "body": "hello"})
        assert sent.status == 201
    assert (await elsewhere).body["count"] == 1
    held = [poll for poll in polls if not (poll.done() and poll.result().status == 429)]
    await asyncio.wait(held, return_when=asyncio.FIRST_COMPLETED)
    assert (await reader.get("/v1/messages?wait_seconds=1")).status == 200
    for poll in held:
        poll.cancel()
    await asyncio.gather(*held, return_exceptions=True)


async def test_the_rooms_of_a_realm_have_an_end(narrow: Running) -> None:
    box = await narrow.box("work3")
    for name in ("api", "web"):
        assert (await box.post("/v1/rooms", {"name": name})).status == 201
    refused = await box.post("/v1/rooms", {"name": "third"})
    assert (refused.status, refused.code) == (409, "limit_reached")
    assert (refused.body["limit"], refused.body["most"]) == ("rooms_per_realm", 2)
    assert (await box.post("/v1/rooms", {"name": "api"})).status == 200
    listed = await box.get("/v1/rooms", query={"scope": "all"})
    assert [room["room"] for room in listed.body["rooms"]] == ["api", "web"]
    assert (await narrow.operator.post("/v1/admin/realms", {"name": "other"})).status == 201
    elsewhere = await narrow.box("work3", realm="other")
    assert (await elsewhere.post("/v1/rooms", {"name": "third"})).status == 201


async def test_the_members_of_a_room_have_an_end(narrow: Running) -> None:
    first, second, third = [await narrow.box(name) for name in ("first", "second", "third")]
    await first.post("/v1/rooms", {"name": "api"})
    assert (await second.post("/v1/rooms/api/join", {})).status == 200
    for path, body in (("/v1/rooms/api/join", {}), ("/v1/rooms", {"name": "api"})):
        refused = await third.post(path, body)
        assert (refused.status, refused.code) == (409, "limit_reached")
        assert refused.body["limit"] == "members_per_room"
    assert (await third.get("/v1/rooms/api/members")).code == "not_a_member"
    assert (await second.post("/v1/rooms/api/join", {})).status == 200
    assert (await first.post("/v1/rooms/api/leave")).status == 200
    assert (await third.post("/v1/rooms/api/join", {})).status == 200


MOST = 3
CEILINGS = {
    name: str(MOST)
    for name in ("ROOMS_PER_REALM", "MEMBERS_PER_ROOM", "HANDLES_PER_BOX", "WEBHOOKS_PER_AGENT")
}


@dataclass(frozen=True)
class Rush:
    """Many who want one of something at once: the first `most` get it.

    Attributes:
        most: how many there may be.
        ready: makes what the rush needs in a realm of its own; returns how to take one through a record, and
            how to count them.
    """

    most: int
    ready: Callable[[Running, str], Awaitable[tuple[Take, Count]]]


async def rooms_at_once(record: Running, realm: str) -> tuple[Take, Count]:
    box = await record.box("work3", realm=realm)

    async def count() -> int:
        return len((await box.get("/v1/rooms?scope=all")).body["rooms"])

    return lambda at, n: at(box).post("/v1/rooms", {"name": f"room-{n}"}), count


async def members_at_once(record: Running, realm: str) -> tuple[Take, Count]:
    box = await record.box("work3", realm=realm)
    sessions = [await record.session(box) for _ in range(RUSH)]
    assert (await box.post("/v1/rooms", {"name": "api"})).status == 201

    async def count() -> int:
        return len((await box.get("/v1/rooms/api/members")).body["members"]) - 1

    return lambda at, n: at(sessions[n]).post("/v1/rooms/api/join", {}), count


async def handles_at_once(record: Running, realm: str) -> tuple[Take, Count]:
    return await handles_at_once_of(await record.box("work3", realm=realm))


async def handles_come_back_at_once(record: Running, realm: str) -> tuple[Take, Count]:
    box = await record.box("work3", realm=realm)
    for n in range(RUSH):
        session = await record.session(box)
        assert (await session.post("/v1/checkout")).status == 200, n
    return await handles_at_once_of(box)


async def handles_at_once_of(box: Party) -> tuple[Take, Count]:
    async def count() -> int:
        return len((await box.get("/v1/agents")).body["agents"]) - 1

    return lambda at, n: at(box.speaking_as(f"work3-agent#{n + 1}")).get("/v1/whoami"), count


async def webhooks_at_once(record: Running, realm: str) -> tuple[Take, Count]:
    box = await record.box("work3", realm=realm)

    async def count() -> int:
        return len((await box.get("/v1/webhooks")).body["webhooks"])

    return lambda at, n: at(box).post("/v1/webhooks", {"url": f"http://127.0.0.1:9/{n}"}), count


async def tokens_at_once(record: Running, realm: str) -> tuple[Take, Count]:
    await record.box("work3", realm=realm)
    return lambda at, _: at(record.operator).post(f"/v1/admin/boxes/work3/tokens?realm={realm}"), tokens_of(
        record, realm
    )


async def codes_at_once(record: Running, realm: str) -> tuple[Take, Count]:
    codes = [
        (await record.operator.post("/v1/admin/invites", {"box": "work3", "realm": realm})).body["code"]
        for _ in range(RUSH)
    ]
    return lambda at, n: at(record.stranger).post("/v1/redeem", {"code": codes[n]}), tokens_of(record, realm)


def tokens_of(record: Running, realm: str) -> Count:
    async def count() -> int:
        return len((await record.operator.get(f"/v1/admin/boxes?realm={realm}")).body["boxes"][0]["tokens"])

    return count


RUSHES = {
    "rooms_per_realm": Rush(MOST, rooms_at_once),
    "members_per_room": Rush(MOST - 1, members_at_once),
    "handles_per_box": Rush(MOST, handles_at_once),
    "handles_per_box, of retired ones": Rush(MOST, handles_come_back_at_once),
    "webhooks_per_agent": Rush(MOST, webhooks_at_once),
    "two tokens": Rush(1, tokens_at_once),
    "two tokens, by invites": Rush(2, codes_at_once),
}


def test_every_ceiling_has_its_rush() -> None:
    ceilings = {name for name in Settings.model_fields if re.search("_per_(?!second)", name)}
    assert ceilings <= set(RUSHES)
    assert {name.upper() for name in ceilings} == set(CEILINGS)


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_no_ceiling_is_passed_by_many_at_once_through_two_records(
    database_url: str, tmp_path: Path
) -> None:
    settings = {
        **NO_LIMITS,
        **{f"READYROOM_{ceiling}": most for ceiling, most in CEILINGS.items()},
        "READYROOM_WEBHOOK_ALLOW": "127.0.0.1",
        "READYROOM_DATABASE_CONNECTIONS": "24",
    }
    async with (
        record_process(database_url, tmp_path, settings) as first,
        record_process(database_url, tmp_path, settings) as second,
    ):
        doors = [lambda party, at=at: replace(party, url=at.url, http=at.http) for at in (first, second)]
        for number, (name, rush) in enumerate(RUSHES.items()):
            realm = f"rush-{number}"
            assert (await first.operator.post("/v1/admin/realms", {"name": realm})).status == 201
            take, count = await rush.ready(first, realm)
            replies = await asyncio.gather(*(take(doors[n % 2], n) for n in range(RUSH)))
            assert [reply.status < 300 for reply in replies].count(True) == rush.most, name
            assert {reply.status for reply in replies if reply.status >= 300} == {409}, name
            assert await count() == rush.most + (name == "two tokens"), name


async def test_who_retired_takes_no_place_in_a_room(narrow: Running) -> None:
    box = await narrow.box("work3")
    gone = await narrow.session(box)
    assert (await box.post("/v1/rooms", {"name": "api"})).status == 201
    assert (await gone.post("/v1/rooms/api/join", {})).status == 200
    another = await narrow.session(box)
    assert (await another.post("/v1/rooms/api/join", {})).code == "limit_reached"
    assert (await gone.post("/v1/checkout", {})).status == 200
    assert (await another.post("/v1/rooms/api/join", {})).status == 200


async def test_the_handles_that_a_box_makes_up_have_an_end(narrow: Running) -> None:
    box, other = await narrow.box("work3"), await narrow.box("devmac")
    for number in (1, 2):
        assert (await box.speaking_as(f"work3-agent#{number}").get("/v1/whoami")).status == 200
    refused = await box.speaking_as("work3-agent#3").get("/v1/whoami")
    assert (refused.status, refused.code) == (409, "limit_reached")
    assert refused.body["limit"] == "handles_per_box"
    assert (await box.speaking_as("work3-agent#1").get("/v1/whoami")).body["agent"] == "work3-agent#1"
    assert (await other.speaking_as("devmac-agent#1").get("/v1/whoami")).status == 200
    assert (await box.speaking_as("work3-agent#2").post("/v1/checkout")).status == 200
    assert (await box.speaking_as("work3-agent#3").get("/v1/whoami")).body["agent"] == "work3-agent#3"


ROWS = 3


@pytest.mark.long
async def test_no_page_is_longer_than_the_operator_allows_and_every_page_leads_on(
    database_url: str, tmp_path: Path
) -> None:
    """Generated over every call of the document that takes `limit`; a list that no row was made for fails."""
    async with running(
        settings_for(database_url, tmp_path, page_max=ROWS - 1, webhook_allow="127.0.0.1")
    ) as record:
        writer = await record.session(await record.box("work3"))
        reader = await record.session(await record.box("devmac"))
        for number in range(ROWS):
            await record.box(f"box{number}")
            await record.person(f"person{number}")
            await record.operator.post("/v1/admin/realms", {"name": f"realm{number}"})
            await record.operator.post("/v1/admin/invites", {"box": f"guest{number}"})
            await record.operator.post("/v1/admin/nerve-tokens", {"name": f"tool{number}"})
            await writer.post("/v1/rooms", {"name": f"room{number}"})
            await writer.post("/v1/webhooks", {"url": f"http://127.0.0.1:9/{number}"})
        for party in (writer, reader, await record.session(writer)):
            await party.post("/v1/rooms/room0/join", {})
        gone = await record.session(await record.box("gone"))
        for number in range(ROWS):
            said = {"body": f"word {number}", "thread_id": "thread"}
            await writer.post("/v1/rooms/room0/messages", said)
            await writer.post("/v1/messages", {"body": "lost", "to": gone.agent})
        await gone.post("/v1/checkout", {})
        await until(partial(_reported, writer), "the reports")
        await dead_letters(database_url)
        document = (await record.stranger.get("/openapi.json")).body
        for path in sorted(path for path in document["paths"] if _takes_limit(document, path)):
            seen = await _paged(_whoever(record, writer, reader, path), _url(path))
            assert len(seen) >= ROWS, path
        polled = await reader.post("/v1/poll", {"limit": 1000})
        assert (polled.body["count"], polled.body["more"]) == (ROWS - 1, True)


async def dead_letters(database_url: str) -> None:
    """Put some beside the nerve, which would take minutes to give a message up."""
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute("""
            WITH queue AS (
                INSERT INTO nerve_queues (realm_id, holder, consumer_id, producer, event, topic, consumer,
                                          durable, attempts, delay_seconds, exponential)
                SELECT realm_id, 'client tool0', 'w', 'build', 'job', false, 'w', true, 1, 1, false
                  FROM realms WHERE name = 'main'
                RETURNING realm_id, queue_id)
            INSERT INTO nerve_messages (realm_id, queue_id, envelope, size, expires_at, dead_at)
            SELECT realm_id, queue_id, '{}', 2, now() + interval '1 day', now()
              FROM queue, generate_series(1, 3)
        """)
    finally:
        await connection.close()


async def _reported(writer: Party) -> bool:
    return bool((await writer.get("/v1/undelivered")).body["messages"])


def _takes_limit(document: dict[str, Any], path: str) -> bool:
    call = document["paths"][path].get("get", {})
    return any(parameter["name"] == "limit" for parameter in call.get("parameters", ()))


def _whoever(record: Running, writer: Party, reader: Party, path: str) -> Party:
    if "/admin/" in path:
        return record.operator
    return reader if path == "/v1/messages" else writer


def _url(path: str) -> str:
    filled = path.format(room="room0", thread_id="thread")
    return filled + {"/v1/search": "?q=word&limit=200"}.get(path, "?limit=1000")


async def _paged(party: Party, url: str) -> list[Any]:
    """Every row behind a list's pages, each of which is short enough."""
    rows: list[Any] = []
    cursor = ""
    while True:
        page = await party.get(url + (f"&cursor={quote(cursor)}" if cursor else ""))
        assert page.status == 200, page
        one = next(value for value in page.body.values() if isinstance(value, list))
        assert len(one) < ROWS, url
        rows += one
        cursor = page.body["next_cursor"]
        if not cursor or not one:
            return rows
