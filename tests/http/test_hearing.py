"""What a session hears of the time before it started."""

from __future__ import annotations

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
