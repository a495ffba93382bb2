"""What nobody took is reported once: to its sender, in the list, to the people where the sender is gone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.conftest import run_sql
from tests.http.running import Party, Running, running, settings_for, until
from tests.http.test_rooms import bodies, said

TOGETHER = """
    CREATE TABLE noted (id bigint, together bool);
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO noted SELECT id, xmin = pg_current_xact_id()::xid FROM conv_messages WHERE id = NEW.id;
        RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER note AFTER INSERT ON unheard FOR EACH ROW EXECUTE FUNCTION note();
"""
"""Keeps of what is noted as unheard whether it was stored in the same transaction."""


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


async def sent(party: Party, to: str, **more: Any) -> int:
    """The id of a message to an address."""
    reply = await party.post("/v1/messages", {"to": to, "body": f"for {to}", **more})
    assert reply.status == 201, reply
    message_id: int = reply.body["message"]["id"]
    return message_id


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


async def test_an_addressee_that_skips_by_hand_and_retires_has_not_read_it(record: Running) -> None:
    _, speaker, reader = await pair(record)
    read = await sent(speaker, str(reader.agent))
    assert len(await bodies(reader)) == 1
    skipped = await sent(speaker, str(reader.agent))
    in_room = await said(speaker, "api", "you, in the room", to=reader.agent)
    ends = {f"@{reader.agent}": skipped, "api": in_room}
    assert (await reader.post("/v1/ack", {"rooms": ends})).status == 200
    assert (await reader.post("/v1/checkout")).status == 200
    got = {each["in_reply_to"] for each in await reported(speaker, 2)}
    assert got == {skipped, in_room}
    assert read not in await listed(speaker)


@pytest.mark.long
async def test_an_unnumbered_handle_that_is_a_label_waits_for_any_session_of_it(record: Running) -> None:
    box, _, reader = await pair(record)
    unnumbered, first = (box.speaking_as(f"work3-agent-lab{number}") for number in ("", "#1"))
    alone = box.speaking_as("work3-agent-alone")
    for party in (unnumbered, first, alone):
        assert (await party.get("/v1/whoami")).status == 200
    label, exact = await sent(reader, "work3-agent-lab"), await sent(reader, "work3-agent-alone")
    for party in (unnumbered, alone):
        assert (await party.post("/v1/checkout")).status == 200
    assert [each["in_reply_to"] for each in await reported(reader, 1)] == [exact]
    assert await listed(reader) == [exact]
    polled = (await first.post("/v1/poll", {})).body
    assert [message["id"] for room in polled["rooms"] for message in room["messages"]] == [label]


async def test_what_was_for_labels_of_a_box_that_is_removed_is_reported(record: Running) -> None:
    _, speaker, _ = await pair(record)
    doomed = await record.box("doomed")
    session = await record.session(doomed, "lab")
    await session.post("/v1/rooms", {"name": "api"})
    read = await sent(speaker, "doomed-agent-lab")
    assert len(await bodies(session)) == 1
    lost = [await sent(speaker, to) for to in ("doomed-agent-lab", "doomed", str(session.agent))]
    lost.append(await said(speaker, "api", "in the room", to="doomed-agent-lab"))
    role, everyone = await sent(speaker, "lab"), await sent(speaker, "everyone")
    assert (await record.operator.delete("/v1/admin/boxes/doomed")).status == 204
    got = await reported(speaker, 4)
    assert [each["in_reply_to"] for each in sorted(got, key=lambda each: each["in_reply_to"])] == lost
    assert {read, role, everyone}.isdisjoint(await listed(speaker))
    for message_id in (lost[0], role):
        receipt = (await speaker.get(f"/v1/messages/{message_id}")).body["receipt"]
        unread = {each["agent"]: each["why"] for each in receipt["unread_by"]}
        assert unread == {session.agent: "retired"}
    again = await record.session(await record.box("doomed"), "lab")
    polled = (await again.post("/v1/poll", {})).body
    assert [message["id"] for room in polled["rooms"] for message in room["messages"]] == [everyone, role]


async def test_what_is_for_a_label_of_a_box_that_came_again_waits_for_its_next_session(
    record: Running,
) -> None:
    speaker, box = await record.person("ines"), await record.box("tmp")
    await record.session(box, "w")
    assert (await record.operator.delete("/v1/admin/boxes/tmp")).status == 204
    again = await record.box("tmp")
    waits = await sent(speaker, "tmp-agent-w")
    nobodys = await sent(speaker, "tmp-agent-w#1")
    assert len(await reported(speaker, 1)) == 1
    assert await listed(speaker) == [nobodys]
    reader = await record.session(again, "w")
    assert await bodies(reader) == ["for tmp-agent-w"]
    receipt = (await speaker.get(f"/v1/messages/{waits}")).body["receipt"]
    assert [each["agent"] for each in receipt["read_by"]] == [reader.agent]


async def test_what_was_for_a_box_or_its_labels_is_reported_whoever_of_it_was_in_the_room(
    record: Running,
) -> None:
    _, speaker, reader = await pair(record)
    doomed = await record.box("doomed")
    inside, sibling = await record.session(doomed, "lab"), await record.session(doomed)
    await inside.post("/v1/rooms", {"name": "api"})
    lost = [await said(speaker, "api", to, to=to) for to in ("doomed", "doomed-agent-lab", "doomed-agent")]
    lost.append(await sent(sibling, "doomed"))
    eric = await record.person("eric")
    assert (await inside.post("/v1/checkout")).status == 200
    assert await listed(speaker) == await listed(eric) == []
    assert (await record.operator.delete("/v1/admin/boxes/doomed")).status == 204
    got = [each["in_reply_to"] for each in await reported(speaker, 3) + await reported(eric, 1)]
    assert sorted(got) == lost
    again = await record.box("doomed")
    waiting = await sent(speaker, "doomed")
    lost.append(await sent(speaker, str(reader.agent)))
    assert (await reader.post("/v1/checkout")).status == 200
    assert [each["in_reply_to"] for each in await reported(speaker, 1)] == lost[-1:]
    assert waiting not in await listed(speaker)
    assert (await again.post("/v1/poll", {})).body["count"] == 1


@pytest.mark.long
async def test_what_was_committed_behind_the_report_of_who_left_is_reported_after_a_minute(
    record: Running, database_url: str
) -> None:
    _, speaker, reader = await pair(record)
    first = await sent(speaker, str(reader.agent))
    assert (await reader.post("/v1/checkout")).status == 200
    assert [each["in_reply_to"] for each in await reported(speaker, 1)] == [first]
    same = "realm_id, conv_id, sender_id, sender_kind, box_id, selector, body, size"
    await run_sql(
        database_url,
        f"INSERT INTO conv_messages ({same}) SELECT {same} FROM conv_messages WHERE id = {first}",
        "UPDATE agents SET retired_at = retired_at - interval '50 seconds'",
    )
    (report,) = await reported(speaker, 1)
    assert report["payload"]["reason"] == "retired"
    assert await listed(speaker) == [first, report["in_reply_to"]]


async def test_a_batch_that_is_committed_while_its_reader_leaves_is_no_reason_for_a_report(
    record: Running, database_url: str
) -> None:
    _, speaker, reader = await pair(record)
    read = await sent(speaker, str(reader.agent))
    connection = await asyncpg.connect(database_url)
    try:
        async with connection.transaction():
            await connection.execute(
                """
                WITH batch AS (
                    INSERT INTO batches (realm_id, agent_id, committed_at)
                    SELECT realm_id, agent_id, clock_timestamp() FROM agents WHERE handle = $1
                    RETURNING realm_id, batch_id)
                INSERT INTO batch_rooms (realm_id, batch_id, conv_id, first_id, last_id, cursor_id)
                SELECT realm_id, batch_id, conv_id, $2, $2, $2
                  FROM batch JOIN conv_messages m USING (realm_id) WHERE m.id = $2
                """,
                reader.agent,
                read,
            )
            assert (await reader.post("/v1/checkout")).status == 200
            left = await connection.fetchval("SELECT clock_timestamp()")

            async def looked_for() -> bool:
                come = await connection.fetchval("SELECT until FROM sweeps WHERE name = 'retired'")
                return bool(come > left)

            await until(looked_for, "the reports of who left")
    finally:
        await connection.close()
    expired = await sent(speaker, "everyone", ttl_seconds=3)
    assert [each["in_reply_to"] for each in await reported(speaker, 1)] == [expired]
    assert await listed(speaker) == [expired]


async def test_a_kind_of_report_that_fails_keeps_no_other_from_being_made(
    record: Running, database_url: str
) -> None:
    box, speaker, reader = await pair(record)
    await run_sql(database_url, "UPDATE sweeps SET until = '4713-11-24 BC' WHERE name = 'retired'")
    kept = await sent(speaker, str(reader.agent))
    assert (await reader.post("/v1/checkout")).status == 200
    gone = await sent(speaker, str(reader.agent))
    expired = await said(speaker, "api", "soon", ttl_seconds=0.2)
    assert {each["in_reply_to"] for each in await reported(speaker, 2)} == {gone, expired}
    assert await listed(box) == [gone, expired]
    await run_sql(database_url, "UPDATE sweeps SET until = '2026-01-01' WHERE name = 'retired'")
    assert [each["in_reply_to"] for each in await reported(speaker, 1)] == [kept]


async def test_a_report_that_cannot_be_made_keeps_no_other_from_being_made_and_is_listed(
    record: Running, database_url: str
) -> None:
    _, speaker, reader = await pair(record)
    first, poisoned, last = [await sent(speaker, str(reader.agent)) for _ in range(3)]
    await run_sql(
        database_url,
        "ALTER TABLE conv_messages ADD CONSTRAINT no_report"
        f" CHECK (type <> 'delivery.undelivered' OR in_reply_to <> {poisoned})",
    )
    assert (await reader.post("/v1/checkout")).status == 200
    assert {each["in_reply_to"] for each in await reported(speaker, 2)} == {first, last}
    assert await listed(speaker) == [first, poisoned, last]
    expired = await said(speaker, "api", "soon", ttl_seconds=0.2)
    assert [each["in_reply_to"] for each in await reported(speaker, 1)] == [expired]


async def test_what_nobody_was_there_for_is_noted_with_the_message_itself(
    record: Running, database_url: str
) -> None:
    """Whatever becomes of the record after the commit."""
    _, speaker, reader = await pair(record)
    assert (await reader.post("/v1/checkout")).status == 200
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute(TOGETHER)
        message_id = await sent(speaker, str(reader.agent))
        assert await connection.fetchval("SELECT together FROM noted WHERE id = $1", message_id)
    finally:
        await connection.close()


@pytest.mark.long
async def test_what_was_for_a_role_is_reported_when_no_later_session_can_be_briefed_with_it(
    record: Running, database_url: str
) -> None:
    box, _, sender = await pair(record)
    first, second = await record.session(box, "lab"), await record.session(box, "dock")
    lost, label = await sent(sender, "lab"), await sent(sender, "work3-agent-lab")
    lasts = await sent(sender, "lab", ttl_seconds=100_000)
    read, awaited = await sent(sender, "dock"), await sent(sender, "dock")
    assert (await second.post("/v1/poll", {"limit": 1})).body["count"] == 1
    assert await record.session(box, "dock") != second
    for party in (first, second):
        assert (await party.post("/v1/checkout")).status == 200
    assert await listed(sender) == []
    day = "interval '24 hours'"
    await run_sql(
        database_url,
        f"UPDATE conv_messages SET created_at = created_at - {day}",
        f"UPDATE conv_members SET briefed_since = briefed_since - {day}",
        f"UPDATE agents SET retired_at = retired_at - {day} WHERE retired_at IS NOT NULL",
    )
    got = await reported(sender, 2)
    assert {each["in_reply_to"] for each in got} == {lost, label}
    assert {each["payload"]["reason"] for each in got} == {"retired"}
    assert {lasts, read, awaited}.isdisjoint(await listed(sender))


async def test_where_the_sender_is_gone_the_people_are_told(record: Running) -> None:
    _, speaker, _ = await pair(record)
    eric = await record.person("eric")
    message_id = await said(speaker, "api", "an orphan", ttl_seconds=1)
    assert (await speaker.post("/v1/checkout")).status == 200
    assert [each["in_reply_to"] for each in await reported(eric, 1)] == [message_id]
    assert await listed(eric) == [message_id]


@pytest.mark.long
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


@pytest.mark.long
async def test_a_realm_whose_time_is_over_is_swept_with_everything_in_it(record: Running) -> None:
    made = await record.operator.post("/v1/admin/realms", {"name": "short", "ttl_seconds": 6})
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
