"""The operator's acts."""

from __future__ import annotations

import asyncio

import asyncpg

from tests.http.running import Running, until


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


async def test_of_two_boxes_that_come_at_once_and_overlap_one_is_added(record: Running) -> None:
    names = ["work", "work-3", "work-3-a", "work"]
    replies = await asyncio.gather(
        *(record.operator.post("/v1/admin/boxes", {"name": name}) for name in names)
    )
    assert sorted(reply.status for reply in replies) == [201, 409, 409, 409]


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
    assert (await record.operator.post("/v1/admin/people", {"name": "work3"})).code == "name_taken"
    again = await record.box("work3")
    assert (await record.session(again)).agent == "work3-agent#2"
    assert (await box.get("/v1/whoami")).status == 401


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
