"""What nobody took is reported once: to its sender, in the list, to the people where the sender is gone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.http.running import Party, Running, running, settings_for, until
from tests.http.test_rooms import bodies, said


async def reports(party: Party) -> list[dict[str, Any]]:
    polled = (await party.post("/v1/poll", {})).body
    return [m for room in polled["rooms"] for m in room["messages"] if m["type"] == "delivery.undelivered"]


async def listed(party: Party) -> list[int]:
    return [message["id"] for message in (await party.get("/v1/undelivered")).body["messages"]]


async def reasons(party: Party) -> set[str]:
    return {message["why"] for message in (await party.get("/v1/undelivered")).body["messages"]}


async def reported(party: Party, count: int) -> list[dict[str, Any]]:
    """The reports that come, when as many as expected have come."""
    got: list[dict[str, Any]] = []

    async def all_there() -> bool:
        got.extend(await reports(party))
        return len(got) >= count

    await until(all_there, "the reports come")
    return got


async def pair(record: Running) -> tuple[Party, Party, Party]:
    box, other = await record.box("work3"), await record.box("devmac")
    speaker, reader = await record.session(box, "reach"), await record.session(other)
    for party in (speaker, reader):
        await party.post("/v1/rooms", {"name": "api"})
    return box, speaker, reader


async def test_a_message_that_expires_unread_is_reported_once(record: Running) -> None:
    box, speaker, reader = await pair(record)
    gone = await said(speaker, "api", "x" * 400, ttl_seconds=0.2)
    (report,) = await reported(speaker, 1)
    assert (report["sender"], report["in_reply_to"]) == ("system", gone)
    assert report["payload"]["reason"] == "expired"
    assert "(100 more characters)" in report["body"]
    assert report["text"].startswith(f"[message from system, reply to #{gone}] Undelivered: ")
    assert await listed(speaker) == await listed(box) == [gone]
    assert await reasons(speaker) == {"expired"}
    assert await listed(reader) == []
    again = await said(speaker, "api", "another", ttl_seconds=0.2)
    assert [each["in_reply_to"] for each in await reported(speaker, 1)] == [again]
    assert await bodies(reader) == []


async def test_what_one_reader_took_in_time_is_not_reported_and_an_open_lease_is_not_taking(
    record: Running,
) -> None:
    _, speaker, reader = await pair(record)
    await said(speaker, "api", "read in time", ttl_seconds=3)
    assert await bodies(reader) == ["read in time"]
    leased = await said(speaker, "api", "leased only", ttl_seconds=3)
    polled = await reader.post("/v1/poll", {"ack": "lease"})
    assert polled.body["count"] == 1
    assert [each["in_reply_to"] for each in await reported(speaker, 1)] == [leased]
    assert await listed(speaker) == [leased]


async def test_a_message_to_a_session_that_leaves_without_reading_is_reported(record: Running) -> None:
    _, speaker, reader = await pair(record)
    reply = await speaker.post("/v1/messages", {"to": reader.agent, "body": "for you alone"})
    in_room = await said(speaker, "api", "you, in the room", to=reader.agent)
    assert (await reader.post("/v1/checkout")).status == 200
    got = await reported(speaker, 2)
    assert {each["in_reply_to"] for each in got} == {reply.body["message"]["id"], in_room}
    assert {each["payload"]["reason"] for each in got} == await reasons(speaker) == {"retired"}


async def test_where_the_sender_is_gone_the_people_are_told(record: Running) -> None:
    _, speaker, _ = await pair(record)
    eric = await record.person("eric")
    message_id = await said(speaker, "api", "an orphan", ttl_seconds=1)
    assert (await speaker.post("/v1/checkout")).status == 200
    assert [each["in_reply_to"] for each in await reported(eric, 1)] == [message_id]
    assert await listed(eric) == [message_id]


async def test_two_replicas_report_once(record: Running, second: Running) -> None:
    _, speaker, _ = await pair(record)
    ids = [await said(speaker, "api", str(n), ttl_seconds=0.3) for n in range(20)]
    got = [each["in_reply_to"] for each in await reported(speaker, 20)]
    assert sorted(got) == ids
    await asyncio.gather(*(said(speaker, "api", "x", ttl_seconds=0.1) for _ in range(3)))
    assert len(await reported(speaker, 3)) == 3


async def test_a_session_that_stays_offline_retires(database_url: str, tmp_path: Path) -> None:
    async with running(settings_for(database_url, tmp_path, retire_after_seconds=1)) as record:
        box = await record.box("work3")
        session = await record.session(box)
        offline = {"sessions": [{"agent": session.agent, "state": "offline"}]}
        assert (await box.put("/v1/presence", offline)).status == 200

        async def retired() -> bool:
            agents = (await box.get("/v1/agents")).body["agents"]
            return all(agent["agent"] != session.agent for agent in agents)

        await until(retired, "the session retires")
        shown = (await box.get("/v1/agents?retired=true")).body["agents"]
        assert session.agent in {agent["agent"] for agent in shown}


async def test_a_realm_whose_time_is_over_is_swept_with_everything_in_it(record: Running) -> None:
    made = await record.operator.post("/v1/admin/realms", {"name": "short", "ttl_seconds": 1})
    assert made.status == 201
    box = await record.box("work3", realm="short")
    session = await record.session(box, "reach")
    await session.post("/v1/rooms", {"name": "api"})
    await said(session, "api", "soon gone")
    await box.post("/v1/poll", {})

    async def swept() -> bool:
        realms = (await record.operator.get("/v1/admin/realms")).body["realms"]
        return all(realm["name"] != "short" for realm in realms)

    await until(swept, "the realm is swept")
    assert (await session.get("/v1/whoami")).status == 401
