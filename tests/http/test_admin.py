"""The operator's acts."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import asyncpg
import pytest

from tests.http.running import Party, Reply, Running, until

Name = tuple[str, str]


async def test_only_the_operators_token_is_the_operators(record: Running) -> None:
    box, eric = await record.box("work3"), await record.person("eric")
    for party in (box, eric, box.speaking_as("work3-agent#1")):
        reply = await party.post("/v1/admin/boxes", {"name": "more"})
        assert (reply.status, reply.code) == (403, "operator_only")
    for party in (record.stranger, record.holding("nope")):
        assert (await party.post("/v1/admin/boxes", {"name": "more"})).status == 401
    assert [row["name"] for row in (await record.operator.get("/v1/admin/boxes")).body["boxes"]] == ["work3"]


async def test_names_are_checked_against_the_grammar_and_each_other(record: Running) -> None:
    await record.box("work3")
    await record.person("eric")
    answers = {
        name: (await record.operator.post("/v1/admin/boxes", {"name": name})).status
        for name in (
            *("work", "work33", "work3.x", "work3-x", "work3", "eric", "eric-laptop", "everyone", "system"),
            *("Work", "a b", "süd", "-x", "x-", "", "x" * 65, "a\0b"),
        )
    }
    created = {"work", "work33", "work3.x"}
    taken = {"work3-x", "work3", "eric", "eric-laptop"}
    assert {name for name, status in answers.items() if status == 201} == created
    assert {name for name, status in answers.items() if status == 409} == taken
    assert {status for name, status in answers.items() if name not in created | taken} == {422}


async def test_a_refusal_says_which_name_is_in_the_way(record: Running) -> None:
    await record.box("work-3")
    reply = await record.operator.post("/v1/admin/boxes", {"name": "work"})
    assert (reply.code, reply.body["in_the_way"]) == ("name_taken", ["work-3"])
    assert reply.body["free"] in reply.body["detail"]


@pytest.mark.parametrize(
    ("names", "wanted", "free"),
    [
        (["work3"], "work3", "work2"),
        (["work2", "work3"], "work3", "work4"),
        (["build"], "build", "build2"),
        (["work-3"], "work", "work2"),
        (["work"], "work-3", "work32"),
        (["work"], "work-3-x", "work3x2"),
    ],
)
async def test_a_name_that_is_taken_is_refused_with_a_free_one(
    record: Running, names: list[str], wanted: str, free: str
) -> None:
    for name in names:
        await record.box(name)
    for path, body in (
        ("boxes", {"name": wanted}),
        ("people", {"name": wanted}),
        ("invites", {"box": wanted}),
    ):
        if (path, wanted) == ("invites", names[-1]):
            continue  # an invite for a box that exists is one more token of it
        reply = await record.operator.post(f"/v1/admin/{path}", body)
        assert (reply.code, reply.body["free"]) == ("name_taken", free), path
    assert (await record.operator.post("/v1/admin/boxes", {"name": free})).status == 201


async def test_of_two_boxes_that_come_at_once_and_overlap_one_is_added(record: Running) -> None:
    names = ["work", "work-3", "work-3-a", "work"]
    replies = await asyncio.gather(
        *(record.operator.post("/v1/admin/boxes", {"name": name}) for name in names)
    )
    assert sorted(reply.status for reply in replies) == [201, 409, 409, 409]


OVERLAPS = [
    (("box", "work"), ("box", "work-3")),
    (("box", "work"), ("person", "work")),
    (("box", "work"), ("person", "work-3")),
    (("person", "work"), ("box", "work-3")),
    (("person", "work"), ("person", "work-3")),
    (("box", "work"), ("role", "work")),
    (("box", "work"), ("role", "work-3")),
    (("person", "work"), ("role", "work")),
    (("person", "work"), ("role", "work-3")),
    (("person", "work"), ("first use", "work")),
]


async def test_names_that_overlap_cannot_both_be_whichever_comes_first(
    record: Running, second: Running, subtests: pytest.Subtests
) -> None:
    other = await record.box("other")
    for n, (order, overlap) in enumerate(itertools.product(("one", "other", "at once"), OVERLAPS)):
        one, two = [(kind, f"{n}{text}") for kind, text in overlap[:: -1 if order == "other" else 1]]
        with subtests.test(order, one=one, two=two):
            if order == "at once":
                replies = list(await asyncio.gather(named(record, other, one), named(second, other, two)))
            else:
                replies = [await named(record, other, one), await named(second, other, two)]
                assert replies[0].status < 300
            assert sorted(reply.status < 300 for reply in replies) == [False, True]
            assert [reply.code for reply in replies if reply.status >= 300] == ["name_taken"]


async def named(record: Running, other: Party, name: Name) -> Reply:
    """Try to bring a name into use, through this record."""
    kind, text = name
    box = record.holding(str(other.token))
    match kind:
        case "box" | "person":
            path = "boxes" if kind == "box" else "people"
            return await record.operator.post(f"/v1/admin/{path}", {"name": text})
        case "role":
            return await box.post("/v1/checkin", {"role": text})
        case _:
            return await box.speaking_as(f"other-agent-{text}#1").get("/v1/whoami")


async def test_a_third_token_is_refused_until_one_is_revoked(record: Running) -> None:
    box = await record.box("work3")
    more = await asyncio.gather(*(record.operator.post("/v1/admin/boxes/work3/tokens") for _ in range(4)))
    assert sorted(reply.status for reply in more) == [201, 409, 409, 409]
    assert {reply.code for reply in more if reply.status == 409} == {"too_many_tokens"}
    assert (await record.operator.delete(f"/v1/admin/tokens/{box.token_id}")).status == 204
    assert (await record.operator.delete(f"/v1/admin/tokens/{box.token_id}")).status == 204
    third = await record.operator.post("/v1/admin/boxes/work3/tokens")
    assert set(third.body) == {"token", "token_id"}
    listed = (await record.operator.get("/v1/admin/boxes")).body["boxes"][0]["tokens"]
    assert len(listed) == 2
    assert third.body["token_id"] in {token["token_id"] for token in listed}
    assert "rrb_" not in str(listed)


async def test_what_is_revoked_may_be_named_with_its_realm(record: Running) -> None:
    await record.operator.post("/v1/admin/realms", {"name": "lab"})
    box = await record.box("work3", realm="lab")
    invite = (await record.operator.post("/v1/admin/invites", {"box": "late", "realm": "lab"})).body
    for path in (f"/v1/admin/tokens/{box.token_id}", f"/v1/admin/invites/{invite['invite_id']}"):
        for elsewhere in ("main", "nowhere"):
            assert (await record.operator.delete(f"{path}?realm={elsewhere}")).code == "not_found"
        assert (await record.operator.delete(f"{path}?realm=lab")).status == 204


async def test_who_is_not_there_is_not_found(record: Running) -> None:
    await record.box("work3")
    missing = [
        await record.operator.post("/v1/admin/boxes/nobody/tokens"),
        await record.operator.post("/v1/admin/people/work3/tokens"),
        await record.operator.post("/v1/admin/boxes/work3/tokens?realm=nowhere"),
        await record.operator.post("/v1/admin/boxes", {"name": "x", "realm": "nowhere"}),
        await record.operator.post("/v1/admin/boxes", {"name": "x", "realm": "no\0where"}),
        await record.operator.delete("/v1/admin/boxes/nobody"),
        await record.operator.delete("/v1/admin/people/work3"),
        await record.operator.delete("/v1/admin/tokens/tok_nope"),
        await record.operator.delete("/v1/admin/realms/nowhere"),
        await record.operator.get("/v1/admin/boxes?realm=nowhere"),
    ]
    assert [(reply.status, reply.code) for reply in missing] == [(404, "not_found")] * len(missing)
    for path in ("/v1/admin/boxes/no%00body", "/v1/admin/tokens/tok%00nope"):
        assert (await record.operator.delete(path)).status == 422


async def test_a_box_that_is_removed_is_gone_with_its_sessions_and_may_come_back(record: Running) -> None:
    box, watcher = await record.box("work3"), await record.person("eric")
    session = await record.session(box)
    assert (await record.operator.delete("/v1/admin/boxes/work3")).status == 204
    assert (await session.get("/v1/whoami")).status == 401
    assert [row["agent"] for row in (await watcher.get("/v1/agents")).body["agents"]] == ["eric"]
    again = await record.box("work3")
    assert (await record.session(again)).agent == "work3-agent#2"
    assert (await box.get("/v1/whoami")).status == 401


@pytest.mark.long
async def test_a_name_that_comes_back_reads_and_resumes_nothing_of_before(record: Running) -> None:
    lab = await record.session(await record.box("lab"))
    work3, eric = await record.box("work3"), await record.person("eric")
    session = await record.session(work3, "reach")
    addresses = (str(session.agent), "work3-agent-reach", "work3", "eric")
    sent = [await letter(lab, to) for to in addresses]
    sent += [await letter(each, str(lab.agent)) for each in (work3, eric, session)]
    for each in (work3, eric, session):
        assert (await each.post("/v1/poll", {"ack": "lease"})).body["count"] > 0
    await comes_back(record)
    work3, eric = await record.box("work3"), await record.person("eric")
    assert (await work3.post("/v1/checkin", {"resume": session.agent})).code == "not_found"
    refused = await work3.speaking_as(session.agent).get("/v1/whoami")
    assert (refused.status, refused.code) == (409, "name_taken")
    state = {"sessions": [{"agent": session.agent, "state": "idle"}]}
    assert (await work3.put("/v1/presence", state)).status == 422
    fresh = await record.session(work3, "reach")
    assert fresh.agent == "work3-agent-reach#2"
    for reader in (work3, eric, fresh):
        assert (await reader.get("/v1/unread")).body == {"agents": {}}
        assert (await reader.post("/v1/poll", {})).body["count"] == 0
        assert (await reader.get("/v1/messages")).body["messages"] == []
        assert (await reader.get("/v1/search?q=secret")).body["messages"] == []
        assert (await reader.get("/v1/undelivered")).body["messages"] == []
        for message in sent:
            assert (await reader.get(f"/v1/messages/{message['id']}")).status == 404
    for reader, to in ((work3, "work3"), (eric, "eric"), (fresh, "work3-agent-reach")):
        message = await letter(lab, to)
        assert message["id"] in await ids_of(reader)
    senders = {row["sender"] for row in (await lab.get("/v1/messages")).body["messages"]}
    assert {sender.partition("~")[0] for sender in senders - {"system"}} == {
        "work3",
        "eric",
        str(session.agent),
    }
    assert not {"work3", "eric"} & senders, "who said it was another one"


async def test_a_name_that_comes_back_may_be_something_else_and_come_back_again(record: Running) -> None:
    lab = await record.session(await record.box("lab"))
    box = await record.box("work3")
    await letter(lab, "work3")
    assert (await box.speaking_as("work3-odd").get("/v1/whoami")).status == 200
    for kind in ("people", "boxes", "people"):
        before = "boxes" if kind == "people" else "people"
        assert (await record.operator.delete(f"/v1/admin/{before}/work3")).status == 204
        party = await (record.person if kind == "people" else record.box)("work3")
        assert (await party.get("/v1/whoami")).body["kind"] == ("person" if kind == "people" else "box")
        assert (await party.get("/v1/messages")).body["messages"] == []
        await letter(lab, "work3")
        assert len(await ids_of(party)) == 1
    await record.operator.delete("/v1/admin/people/work3")
    assert (await (await record.box("work3-odd")).get("/v1/whoami")).body["agent"] == "work3-odd"


async def test_who_wrote_to_a_holder_that_is_removed_and_comes_back_at_once_is_told(record: Running) -> None:
    lab = await record.session(await record.box("lab"))
    await record.box("work3")
    await record.person("eric")
    lost = {(await letter(lab, to))["id"] for to in ("work3", "eric")}
    await comes_back(record)
    await record.box("work3")
    await record.person("eric")

    async def is_told() -> bool:
        rows = (await lab.get("/v1/undelivered")).body["messages"]
        return {row["id"] for row in rows} == lost

    await until(is_told, "both are reported")


async def comes_back(record: Running) -> None:
    for path in ("boxes/work3", "people/eric"):
        assert (await record.operator.delete(f"/v1/admin/{path}")).status == 204


async def letter(sender: Party, to: str) -> dict[str, Any]:
    said = await sender.post("/v1/messages", {"to": to, "body": f"a secret for {to}"})
    assert said.status == 201, said
    message: dict[str, Any] = said.body["message"]
    return message


async def ids_of(reader: Party) -> list[int]:
    rooms = (await reader.post("/v1/poll", {})).body["rooms"]
    return [message["id"] for room in rooms for message in room["messages"]]


async def test_a_realm_is_removed_with_all_in_it_and_the_first_one_stays(record: Running) -> None:
    assert (await record.operator.post("/v1/admin/realms", {"name": "other"})).status == 201
    assert (await record.operator.post("/v1/admin/realms", {"name": "other"})).code == "name_taken"
    session = await record.session(await record.box("work3", realm="other"))
    assert (await session.get("/v1/whoami")).status == 200
    assert (await record.operator.delete("/v1/admin/realms/other")).status == 204
    assert (await session.get("/v1/whoami")).status == 401
    assert (await record.operator.delete("/v1/admin/realms/main")).status == 422
    listed = (await record.operator.get("/v1/admin/realms")).body["realms"]
    assert [realm["name"] for realm in listed] == ["main"]


async def test_lists_come_in_pages(record: Running) -> None:
    for name in "dacbe":
        await record.person(name)
    seen, query = [], "?limit=2"
    while query:
        answer = (await record.operator.get(f"/v1/admin/people{query}")).body
        seen.append([person["name"] for person in answer["people"]])
        query = f"?limit=2&cursor={answer['next_cursor']}" if answer["next_cursor"] else ""
    assert seen == [["a", "b"], ["c", "d"], ["e"]]
    for bad in ("nonsense!", "AAAA", "%ff", "w" * 401):
        reply = await record.operator.get(f"/v1/admin/people?cursor={bad}")
        assert (reply.status, reply.body["field"]) == (422, "cursor"), bad
    for bad in ("0", "1001", "x"):
        reply = await record.operator.get(f"/v1/admin/people?limit={bad}")
        assert (reply.status, reply.body["field"]) == (422, "limit"), bad


async def test_each_act_is_written_down_and_no_token_is_kept(record: Running, database_url: str) -> None:
    box = await record.box("work3")
    await record.operator.post("/v1/admin/realms", {"name": "other"})
    more = (await record.operator.post("/v1/admin/boxes/work3/tokens")).body
    await record.operator.delete(f"/v1/admin/tokens/{more['token_id']}")
    await record.operator.delete("/v1/admin/boxes/work3")
    await record.operator.delete("/v1/admin/realms/other")
    connection = await asyncpg.connect(database_url)
    try:
        acts = await connection.fetch("SELECT act, target, realm FROM audit_log ORDER BY audit_id")
        tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        dump = [str(await connection.fetch(f"SELECT * FROM {row['tablename']}")) for row in tables]
    finally:
        await connection.close()
    assert [tuple(act) for act in acts] == [
        ("box_added", f"work3 {box.token_id}", "main"),
        ("realm_added", "other", "other"),
        ("token_added", f"box work3 {more['token_id']}", "main"),
        ("token_revoked", f"work3 {more['token_id']}", "main"),
        ("box_removed", "work3", "main"),
        ("realm_removed", "other", "other"),
    ]
    assert more["token"] not in "".join(dump)


async def test_what_another_replica_revokes_ends_here_too(record: Running, second: Running) -> None:
    box = await record.box("work3")
    elsewhere = second.holding(str(box.token))
    assert (await elsewhere.get("/v1/whoami")).status == 200
    await record.operator.delete(f"/v1/admin/tokens/{box.token_id}")

    async def is_over() -> bool:
        return (await elsewhere.get("/v1/whoami")).status == 401

    await until(is_over, "the other replica hears of it")


async def test_no_session_outlives_a_box_that_is_removed_while_it_checks_in(record: Running) -> None:
    box, watcher = await record.box("work3"), await record.person("eric")
    removal = record.operator.delete("/v1/admin/boxes/work3")
    check_ins = [box.post("/v1/checkin", {"role": "reach"}) for _ in range(8)]
    replies = await asyncio.gather(*check_ins[:4], removal, *check_ins[4:])
    assert {reply.status for reply in replies} <= {201, 204, 401, 404}
    assert [row["agent"] for row in (await watcher.get("/v1/agents")).body["agents"]] == ["eric"]


async def test_a_revocation_that_no_replica_was_told_of_is_noticed_when_the_listener_was_cut(
    record: Running, database_url: str
) -> None:
    box = await record.box("work3")
    assert (await box.get("/v1/whoami")).status == 200
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute("UPDATE tokens SET revoked_at = clock_timestamp()")
        cut = await connection.fetchval(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE query LIKE 'LISTEN %identity%'"
        )
    finally:
        await connection.close()
    assert cut == 1

    async def is_over() -> bool:
        return (await box.get("/v1/whoami")).status == 401

    await until(is_over, "the record looks again")
