"""Receipts, reports and the list of what is undelivered say the same, whoever comes, goes and comes again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import run_sql
from tests.http.running import Party, Running
from tests.http.test_rooms import said
from tests.http.test_undelivered import listed, pair, reported, reports, sent

EXPIRE = "UPDATE conv_messages SET expires_at = clock_timestamp() WHERE id = "


async def receipt(party: Party, message_id: int) -> dict[str, Any]:
    reply = await party.get(f"/v1/messages/{message_id}")
    assert reply.status == 200, reply
    found: dict[str, Any] = reply.body["receipt"]
    return found


async def names(party: Party, message_id: int, part: str) -> list[str]:
    return [each["agent"] for each in (await receipt(party, message_id))[part]]


async def polled(party: Party, **how: Any) -> tuple[list[int], str | None]:
    reply = await party.post("/v1/poll", how)
    assert reply.status == 200, reply
    return [message["id"] for room in reply.body["rooms"] for message in room["messages"]], reply.body[
        "lease"
    ]


async def come_again(record: Running, party: Party) -> None:
    assert party.agent is not None
    box = party.speaking_as(None)
    assert (await box.post("/v1/checkin", {"resume": party.agent})).status == 200


@pytest.mark.parametrize("how", ["auto", "lease", "key", "once"])
async def test_what_expired_before_the_batch_was_committed_is_not_read_and_is_reported(
    record: Running, database_url: str, how: str
) -> None:
    _, speaker, reader = await pair(record)
    lost, stays = (
        await sent(speaker, str(reader.agent), ttl_seconds=900),
        await sent(speaker, str(reader.agent)),
    )
    key = {"poll_key": "k"} if how == "key" else {}
    ids, lease = await polled(reader, ack="lease", **key)
    assert ids == [lost, stays]
    await run_sql(database_url, f"{EXPIRE}{lost}")
    if how != "once":
        ids, lease = await polled(reader, ack="auto" if how in ("auto", "key") else "lease", **key)
        assert ids == [stays]
    if lease is not None:
        assert (await reader.post("/v1/ack", {"lease": lease})).status == 200
    assert await names(speaker, lost, "read_by") == []
    assert await names(speaker, stays, "read_by") == [reader.agent]
    assert [each["in_reply_to"] for each in await reported(speaker, 1)] == [lost]
    assert await listed(speaker) == [lost]
    assert (await receipt(speaker, lost))["unread_by"][0]["why"] == "expired"


async def test_what_was_committed_in_time_stays_read_when_its_poll_is_repeated(
    record: Running, database_url: str
) -> None:
    _, speaker, reader = await pair(record)
    read, stays = (
        await sent(speaker, str(reader.agent), ttl_seconds=900),
        await sent(speaker, str(reader.agent)),
    )
    assert (await polled(reader, poll_key="k"))[0] == [read, stays]
    await run_sql(database_url, f"{EXPIRE}{read}")
    assert (await polled(reader, poll_key="k"))[0] == [stays]
    later = await sent(speaker, str(reader.agent), ttl_seconds=0.1)
    assert [each["in_reply_to"] for each in await reported(speaker, 1)] == [later]
    assert await listed(speaker) == [later]
    assert await names(speaker, read, "read_by") == [reader.agent]


@pytest.mark.parametrize("backfill", ["none", "all", 20])
async def test_who_was_named_when_it_was_said_stays_in_the_receipt(
    record: Running, backfill: str | int
) -> None:
    _, speaker, reader = await pair(record)
    first = await said(speaker, "api", "before they go")
    assert (await reader.post("/v1/rooms/api/leave")).status == 200
    away = await said(speaker, "api", "while they are away")
    assert (await reader.post("/v1/rooms/api/join", {"backfill": backfill})).status == 200
    back = await said(speaker, "api", "when they are back")
    for _ in range(2):
        assert await names(speaker, first, "accepted") == [reader.agent]
        assert await names(speaker, away, "accepted") == []
        assert await names(speaker, back, "accepted") == [reader.agent]
        assert await names(speaker, first, "unread_by") == [reader.agent]
        assert (await reader.post("/v1/rooms/api/leave")).status == 200
        assert (await reader.post("/v1/rooms/api/join", {"backfill": backfill})).status == 200


async def test_a_session_that_comes_again_was_not_there_meanwhile(record: Running) -> None:
    _, speaker, reader = await pair(record)
    before = await said(speaker, "api", "before they go")
    assert (await reader.post("/v1/checkout")).status == 200
    away = await said(speaker, "api", "while they are away")
    for _ in range(2):
        await come_again(record, reader)
        assert await names(speaker, before, "accepted") == [reader.agent]
        assert await names(speaker, away, "accepted") == []
        assert await names(speaker, away, "unread_by") == [reader.agent]
        assert (await reader.post("/v1/checkout")).status == 200


async def test_who_could_never_be_given_a_message_is_not_among_those_who_have_not_read_it(
    record: Running, database_url: str
) -> None:
    box, speaker, reader = await pair(record)
    assert (await reader.post("/v1/checkout")).status == 200
    missed = await said(speaker, "api", "while they are away", ttl_seconds=900)
    stays = await said(speaker, "api", "this, too")
    await run_sql(database_url, f"{EXPIRE}{missed}")
    await come_again(record, reader)
    all_, none, skips = [await record.session(box) for _ in range(3)]
    for party, backfill in ((all_, "all"), (none, "none"), (skips, "all")):
        assert (await party.post("/v1/rooms/api/join", {"backfill": backfill})).status == 200
    assert (await skips.post("/v1/ack", {"rooms": {"api": stays}})).status == 200
    assert await names(speaker, missed, "unread_by") == []
    why = {each["agent"]: each["why"] for each in (await receipt(speaker, stays))["unread_by"]}
    assert set(why) == {reader.agent, all_.agent, skips.agent}
    assert why[skips.agent] == "skipped"
    assert (await polled(all_))[0] == [stays]
    assert await names(speaker, stays, "read_by") == [all_.agent]
    last = await said(speaker, "api", "expires when they have come", ttl_seconds=900)
    await run_sql(database_url, f"{EXPIRE}{last}")
    assert set(await names(speaker, last, "unread_by")) == {reader.agent, all_.agent, none.agent, skips.agent}


async def test_an_addressee_that_joins_again_past_a_message_and_retires_has_not_read_it(
    record: Running,
) -> None:
    _, speaker, reader = await pair(record)
    lost = await said(speaker, "api", "for you", to=reader.agent)
    assert (await reader.post("/v1/rooms/api/leave")).status == 200
    away = await said(speaker, "api", "for you, too", to=reader.agent)
    assert (await reader.post("/v1/rooms/api/join", {"backfill": "none"})).status == 200
    assert (await reader.post("/v1/checkout")).status == 200
    assert {each["in_reply_to"] for each in await reported(speaker, 2)} == {lost, away}


async def test_what_is_for_somebody_who_has_gone_is_reported_at_once(record: Running) -> None:
    _, speaker, reader = await pair(record)
    doomed = await record.box("doomed")
    session = await record.session(doomed)
    await record.person("eric")
    assert (await reader.post("/v1/checkout")).status == 200
    assert (await record.operator.delete("/v1/admin/boxes/doomed")).status == 204
    assert (await record.operator.delete("/v1/admin/people/eric")).status == 204
    gone = [str(reader.agent), str(session.agent), "doomed", "doomed-agent", "eric"]
    lost = [await sent(speaker, to) for to in gone]
    lost += [await said(speaker, "api", "for you", to=to) for to in gone]
    lost.append(await sent(speaker, "eric", ttl_seconds=900))
    got = await reported(speaker, len(lost))
    assert sorted(each["in_reply_to"] for each in got) == lost
    assert {each["payload"]["reason"] for each in got} == {"retired"}
    assert await listed(speaker) == lost


async def test_what_is_said_in_a_room_for_a_stranger_closes_when_the_stranger_goes(record: Running) -> None:
    box, _, reader = await pair(record)
    stranger, late = await record.session(box, "dock"), await record.session(box, "dock")
    lost, read = [await said(reader, "api", "for you", to=each.agent) for each in (stranger, late)]
    await said(reader, "api", "for whoever joins", to="dock")
    assert (await late.post("/v1/rooms/api/join", {"backfill": "all"})).status == 200
    assert read in (await polled(late))[0]
    for party in (stranger, late):
        assert (await party.post("/v1/checkout")).status == 200
    assert [each["in_reply_to"] for each in await reported(reader, 1)] == [lost]
    assert await listed(reader) == [lost]


async def test_what_is_for_a_role_that_nobody_has_waits_a_day_for_later_sessions(
    record: Running, database_url: str
) -> None:
    box, speaker, reader = await pair(record)
    for role in ("lab", "dock"):
        assert (await (await record.session(box, role)).post("/v1/checkout")).status == 200
    lost, label, awaited = [await sent(reader, to) for to in ("lab", "work3-agent-lab", "dock")]
    lasts = await sent(reader, "lab", ttl_seconds=100_000)
    marker = await said(speaker, "api", "closes at once", ttl_seconds=0.1)
    assert [each["in_reply_to"] for each in await reported(speaker, 1)] == [marker]
    assert await listed(reader) == []
    late = await record.session(box, "dock")
    await run_sql(database_url, "UPDATE unheard SET due_at = due_at - interval '24 hours'")
    assert {each["in_reply_to"] for each in await reported(reader, 2)} == {lost, label}
    assert await listed(reader) == [lost, label]
    assert lasts not in await listed(reader)
    assert (await polled(late))[0] == [awaited]


async def test_a_session_that_comes_again_opens_what_closed_when_it_went(record: Running) -> None:
    _, speaker, reader = await pair(record)
    ids = [await sent(speaker, str(reader.agent)) for _ in range(2)]
    ids.append(await said(speaker, "api", "for you", to=reader.agent))
    assert (await reader.post("/v1/checkout")).status == 200
    ids.append(await sent(speaker, str(reader.agent)))
    assert sorted(each["in_reply_to"] for each in await reported(speaker, 4)) == ids
    await come_again(record, reader)
    assert await listed(speaker) == []
    read = (await polled(reader, limit=1))[0]
    assert await names(speaker, read[0], "read_by") == [reader.agent]
    assert (await reader.post("/v1/checkout")).status == 200
    left = [each for each in ids if each not in read]
    assert sorted(each["in_reply_to"] for each in await reported(speaker, 3)) == left
    assert await listed(speaker) == left
    assert await reports(speaker) == []


async def test_an_answer_that_is_repeated_names_those_whom_the_first_one_named(record: Running) -> None:
    speaker, box = await record.person("ines"), await record.box("work3")
    first = await record.session(box, "reach")
    for party in (speaker, first):
        await party.post("/v1/rooms", {"name": "api"})
    what = {"body": "hello", "to": "reach", "client_id": "c1"}

    async def accepted() -> list[str]:
        reply = await speaker.post("/v1/rooms/api/messages", what)
        return [each["agent"] for each in reply.body["receipt"]["accepted"]]

    assert await accepted() == [first.agent]
    await first.post("/v1/rooms/api/leave")
    assert await accepted() == [first.agent]
    await (await record.session(box, "reach")).post("/v1/rooms", {"name": "api"})
    assert await accepted() == [first.agent]
    await first.post("/v1/checkout", {})
    assert await accepted() == [first.agent]
