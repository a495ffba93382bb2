"""Invites: a code lets one box in, once; and the audit log that tells of it."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg

from tests.http.running import Reply, Running


async def invited(record: Running, box: str, **fields: Any) -> dict[str, Any]:
    made = await record.operator.post("/v1/admin/invites", {"box": box, **fields})
    assert made.status == 201, made
    return dict(made.body)


async def redeem(record: Running, code: object) -> Reply:
    return await record.stranger.post("/v1/redeem", {"code": code})


async def test_a_code_makes_a_box_and_then_a_second_token_of_it(record: Running) -> None:
    await record.operator.post("/v1/admin/realms", {"name": "lab"})
    first = await redeem(record, (await invited(record, "work3", realm="lab"))["code"])
    assert first.status == 201
    assert set(first.body) == {"name", "realm", "token", "token_id"}
    assert (first.body["name"], first.body["realm"]) == ("work3", "lab")
    session = await record.session(record.holding(first.body["token"]))
    assert session.agent == "work3-agent#1"
    second = await redeem(record, (await invited(record, "work3", realm="lab"))["code"])
    assert (await record.holding(second.body["token"]).get("/v1/whoami")).body["agent"] == "work3"
    third = (await invited(record, "work3", realm="lab"))["code"]
    assert (await redeem(record, third)).code == "too_many_tokens"
    await record.operator.delete(f"/v1/admin/tokens/{second.body['token_id']}")
    assert (await redeem(record, third)).status == 201, "a refusal leaves the code as it was"


async def test_a_code_works_once_through_whichever_replica(record: Running, second: Running) -> None:
    code = (await invited(record, "work3"))["code"]
    replies = await asyncio.gather(*(redeem(each, code) for each in [record, second] * 6))
    assert sorted(reply.status for reply in replies) == [201] + [404] * 11
    assert {reply.code for reply in replies if reply.status == 404} == {"no_such_invite"}
    boxes = (await record.operator.get("/v1/admin/boxes")).body["boxes"]
    assert [len(box["tokens"]) for box in boxes] == [1]


async def test_a_code_may_be_typed_by_hand(record: Running) -> None:
    code = (await invited(record, "work3"))["code"]
    assert (await redeem(record, f" {code.upper().replace('-', ' ')} ")).status == 201


async def test_what_is_no_open_code_is_answered_the_same(record: Running, database_url: str) -> None:
    revoked, late, used = [await invited(record, box) for box in ("one", "two", "three")]
    assert (await record.operator.delete(f"/v1/admin/invites/{revoked['invite_id']}")).status == 204
    assert (await record.operator.delete(f"/v1/admin/invites/{revoked['invite_id']}")).code == "not_found"
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute(
            "UPDATE invites SET expires_at = clock_timestamp() WHERE invite_id = $1", late["invite_id"]
        )
    finally:
        await connection.close()
    listed = (await record.operator.get("/v1/admin/invites")).body["invites"]
    assert [(row["invite_id"], row["box"]) for row in listed] == [(used["invite_id"], "three")]
    assert used["code"] not in str(listed)
    assert (await redeem(record, used["code"])).status == 201
    wrong = [revoked["code"], late["code"], used["code"], "nope", "", "\0", "süd"]
    replies = [await redeem(record, code) for code in wrong]
    assert {reply.code for reply in replies} == {"no_such_invite"}
    assert len({str(reply.body) for reply in replies}) == 1
    assert (await record.operator.get("/v1/admin/invites")).body["invites"] == []
    names = [row["name"] for row in (await record.operator.get("/v1/admin/boxes")).body["boxes"]]
    assert names == ["three"]


async def test_only_the_operator_invites_and_only_to_names_that_can_be(record: Running) -> None:
    box = await record.box("work3")
    await record.person("eric")
    assert (await box.post("/v1/admin/invites", {"box": "more"})).code == "operator_only"
    answers = [
        await record.operator.post("/v1/admin/invites", wanted)
        for wanted in (
            {"box": "eric"},
            {"box": "work3-b"},
            {"box": "Work"},
            {"box": "x", "realm": "nowhere"},
            {"box": "x", "ttl_seconds": 0},
            {"box": "x", "more": 1},
        )
    ]
    assert [answer.code for answer in answers] == [
        *("name_taken", "name_taken", "invalid", "not_found", "invalid", "invalid")
    ]
    code = (await invited(record, "eve"))["code"]
    await record.person("eve")
    assert (await redeem(record, code)).code == "name_taken"


async def test_guessing_is_slowed_down(record: Running) -> None:
    replies = await asyncio.gather(*(redeem(record, f"guess-{n}") for n in range(100)))
    codes = [reply.code for reply in replies]
    assert set(codes) == {"no_such_invite", "rate_limited"}
    assert codes.count("no_such_invite") >= 20
    waits = [int(reply.headers["retry-after"]) for reply in replies if reply.code == "rate_limited"]
    assert min(waits) >= 1


async def test_the_audit_log_tells_of_each_act_in_pages_and_holds_no_code(
    record: Running, database_url: str
) -> None:
    made = await invited(record, "work3")
    token = (await redeem(record, made["code"])).body
    await record.operator.post("/v1/admin/realms", {"name": "other"})
    await record.operator.put("/v1/admin/realms/other", {"keep_days": 30})
    seen, query = [], "?limit=3"
    while query:
        page = (await record.operator.get(f"/v1/admin/audit{query}")).body
        seen += [(act["act"], act["target"], act["realm"]) for act in page["acts"]]
        query = f"?limit=3&cursor={page['next_cursor']}" if page["next_cursor"] else ""
    assert seen == [
        ("realm_changed", "keep_days 30", "other"),
        ("realm_added", "other", "other"),
        ("invite_redeemed", f"work3 {made['invite_id']} {token['token_id']}", "main"),
        ("invite_added", f"work3 {made['invite_id']}", "main"),
    ]
    only = (await record.operator.get("/v1/admin/audit?realm=other")).body["acts"]
    assert [act["act"] for act in only] == ["realm_changed", "realm_added"]
    assert (await record.operator.get("/v1/admin/audit?cursor=eA==")).body["field"] == "cursor"
    connection = await asyncpg.connect(database_url)
    try:
        kept = str(await connection.fetch("SELECT * FROM audit_log")) + str(
            await connection.fetch("SELECT * FROM invites")
        )
    finally:
        await connection.close()
    assert made["code"] not in kept
    assert token["token"] not in kept
