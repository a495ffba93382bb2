"""What is too fast or too much is refused, to whoever does it alone, and only for a while."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.http.running import Party, Reply, Running, running, settings_for, until


@pytest.fixture
async def narrow(database_url: str, tmp_path: Path) -> AsyncIterator[Running]:
    """A record with little room for anything."""
    settings = settings_for(
        database_url,
        tmp_path,
        say_per_second=2,
        say_burst=4,
        box_per_second=0.5,
        box_burst=30,
        rooms_per_realm=2,
        members_per_room=2,
        handles_per_box=2,
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
    assert (await loud.get("/v1/whoami")).status == 429
    for other in (calm, eric):
        assert (await other.call(method, path, body)).status == 200

    async def recovered() -> bool:
        return (await session.call(method, path, body)).status == 200

    await until(recovered, "the box may call again")


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
