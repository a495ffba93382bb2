"""What a session hears of the time before it started."""

from __future__ import annotations

from tests.conftest import run_sql
from tests.http.running import Party, Running, until


async def unread(party: Party) -> dict[str, list[tuple[str, bool]]]:
    reply = await party.post("/v1/poll", {"limit": 1000})
    assert reply.status == 200, reply
    return {
        room["room"]: [(message["body"], message["replayed"]) for message in room["messages"]]
        for room in reply.body["rooms"]
    }


async def send(party: Party, to: str, *bodies: str) -> None:
    for body in bodies:
        reply = await party.post("/v1/messages", {"to": to, "body": body})
        assert reply.status == 201, reply


async def test_a_new_session_is_briefed_with_the_newest_twenty_of_label_role_and_everyone(
    record: Running,
) -> None:
    work3, devmac = await record.box("work3"), await record.box("devmac")
    first, other = await record.session(work3, "reach"), await record.session(devmac)
    await send(other, "work3-agent-reach", *(f"label {n}" for n in range(25)))
    await send(other, "reach", "role")
    await send(other, "everyone", "all")
    await send(other, "work3", "the box")
    await send(other, str(first.agent), "the first one")
    second = await record.session(work3, "reach")
    assert await unread(second) == {
        "@work3-agent-reach": [(f"label {n}", True) for n in range(5, 25)],
        "@reach": [("role", True)],
        "@everyone": [("all", True)],
    }
    await send(other, "work3-agent-reach", "now")
    assert await unread(second) == {"@work3-agent-reach": [("now", False)]}


async def test_what_the_echo_rule_hides_takes_no_place_in_the_briefing(record: Running) -> None:
    box = await record.box("work3")
    other = await record.session(await record.box("devmac"))
    await send(other, "everyone", "heard")
    await send(box, "everyone", *(f"of the bare box {n}" for n in range(21)))
    session = await record.session(box)
    assert await unread(session) == {"@everyone": [("heard", True)]}


async def test_expired_messages_take_no_place_in_the_briefing(record: Running) -> None:
    box, other = await record.box("work3"), await record.session(await record.box("devmac"))
    await send(other, "everyone", "long")
    for n in range(20):
        short = {"to": "everyone", "body": f"short {n}", "ttl_seconds": 1}
        assert (await other.post("/v1/messages", short)).status == 201

    async def only_what_lasts() -> bool:
        session = await record.session(box)
        return await unread(session) == {"@everyone": [("long", True)]}

    await until(only_what_lasts, "the short ones expire")


async def test_a_session_that_is_taken_up_again_has_its_cursors(record: Running) -> None:
    box, other = await record.box("work3"), await record.session(await record.box("devmac"))
    session = await record.session(box)
    await send(other, str(session.agent), "read")
    assert await unread(session) == {"@work3-agent#1": [("read", False)]}
    await send(other, str(session.agent), "waits")
    await session.post("/v1/checkout")
    assert (await box.post("/v1/checkin", {"resume": session.agent})).status == 200
    assert await unread(session) == {"@work3-agent#1": [("waits", False)]}


async def test_boxes_and_people_hear_nothing_of_before(record: Running) -> None:
    other = await record.session(await record.box("devmac"))
    await send(other, "everyone", "before")
    box, eric = await record.box("work3"), await record.person("eric")
    assert await unread(box) == await unread(eric) == {}
    await send(other, "everyone", "after")
    await send(other, "eric", "to eric")
    assert await unread(box) == {"@everyone": [("after", False)]}
    assert await unread(eric) == {"@everyone": [("after", False)], "@eric": [("to eric", False)]}


async def test_a_box_that_comes_back_hears_nothing_of_the_time_between(record: Running) -> None:
    other = await record.session(await record.box("devmac"))
    await record.box("work3")
    await record.operator.delete("/v1/admin/boxes/work3")
    await send(other, "everyone", "between")
    assert await unread(await record.box("work3")) == {}


async def test_a_briefing_reaches_a_day_back_but_for_what_has_an_expiry_of_its_own(
    record: Running, database_url: str
) -> None:
    box, other = await record.box("work3"), await record.session(await record.box("devmac"))
    first = await record.session(box, "reach")
    for body, ttl in (("lasts", 3600), ("old", None), ("lasts, too", 3600), ("fresh", None)):
        new = {"to": "reach", "body": body, "ttl_seconds": ttl}
        assert (await other.post("/v1/messages", new)).status == 201
    await run_sql(
        database_url,
        "UPDATE conv_messages SET created_at = created_at - interval '24 hours' WHERE body <> 'fresh'",
    )
    second = await record.session(box, "reach")
    counted = (await second.get("/v1/unread")).body["agents"]
    assert counted[str(second.agent)]["rooms"] == {"@reach": 3}
    briefed = {"@reach": [("lasts", True), ("lasts, too", True), ("fresh", True)]}
    leased = (await second.post("/v1/poll", {"ack": "lease"})).body
    assert (leased["count"], leased["more"]) == (3, False)
    assert await unread(second) == briefed  # again, and committed
    assert await unread(first) == {
        "@reach": [("lasts", False), ("old", False), ("lasts, too", False), ("fresh", False)]
    }
    history = (await other.get("/v1/search?q=old")).body["messages"]
    receipt = (await other.get(f"/v1/messages/{history[0]['id']}")).body["receipt"]
    assert [each["agent"] for each in receipt["read_by"]] == [first.agent]
    assert receipt["unread_by"] == [], "the second was never to be given it"


async def test_what_is_too_old_takes_no_place_in_the_briefing(record: Running, database_url: str) -> None:
    box, other = await record.box("work3"), await record.session(await record.box("devmac"))
    new = {"to": "everyone", "body": "lasts", "ttl_seconds": 3600}
    assert (await other.post("/v1/messages", new)).status == 201
    await send(other, "everyone", *(f"old {n}" for n in range(21)))
    await run_sql(
        database_url, "UPDATE conv_messages SET created_at = created_at - interval '24 hours 1 second'"
    )
    assert await unread(await record.session(box)) == {"@everyone": [("lasts", True)]}


async def test_a_room_is_joined_with_what_was_said_however_long_ago(
    record: Running, database_url: str
) -> None:
    box, other = await record.box("work3"), await record.session(await record.box("devmac"))
    await other.post("/v1/rooms", {"name": "api"})
    await other.post("/v1/rooms/api/messages", {"body": "long ago"})
    await run_sql(database_url, "UPDATE conv_messages SET created_at = created_at - interval '9 days'")
    session = await record.session(box)
    await session.post("/v1/rooms/api/join", {"backfill": "all"})
    assert await unread(session) == {"api": [("long ago", True)]}


async def test_a_briefing_says_what_another_has_read_already(record: Running) -> None:
    box, other = await record.box("work3"), await record.session(await record.box("devmac"))
    first = await record.session(box, "reach")
    await send(other, "reach", "read")
    await unread(first)
    await send(other, "reach", "handed over, not read")
    await first.post("/v1/poll", {"ack": "lease"})
    second = await record.session(box, "reach")

    async def texts(**how: str) -> list[str]:
        rooms = (await second.post("/v1/poll", how)).body["rooms"]
        return [message["text"] for room in rooms for message in room["messages"]]

    marker = f"[message from {other.agent}, sent before you started"
    expected = [f"{marker}, already read by another] read", f"{marker}] handed over, not read"]
    assert await texts(ack="lease") == expected
    assert (
        await texts(poll_key="k") == await texts(poll_key="k") == expected
    )  # its own reading is not another's
    await send(other, "reach", "now")
    await unread(first)
    assert await texts() == [f"[message from {other.agent}] now"]
