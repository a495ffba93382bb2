"""Who the record takes a caller for."""

from __future__ import annotations

import asyncio
from itertools import product
from typing import Any

import asyncpg
import pytest

from api.db import Database
from api.store.identity import HOLDER, SESSION
from tests.conftest import run_sql
from tests.http.running import Party, Reply, Running, until

NO_HANDLE = ["", " ", "\t", "${READYROOM_AGENT}", "${TEAM_AGENT:-}"]
NOT_A_HANDLE = [
    "x" * 129,
    "Work3-agent#1",
    "work3-agent #1",
    "work3-agent#0",
    "work3-agent#01",
    "work3-agent#",
    "work3-agent#1#2",
    "work3-",
    "-work3",
    "work3-agent#1, work3-agent#2",
    "wörk3-agent#1",
    "work3-agent#1000000000000000000",
]


async def agent_of(party: Party) -> str:
    reply = await party.get("/v1/whoami")
    assert reply.status == 200, reply
    assert reply.headers["x-tyode-agent"] == reply.body["agent"]
    agent: str = reply.body["agent"]
    return agent


async def test_a_box_without_a_handle_is_the_bare_box_and_is_told_how_to_change_that(record: Running) -> None:
    box = await record.box("work3")
    reply = await box.get("/v1/whoami")
    assert reply.body.pop("hint")
    assert reply.body == {"agent": "work3", "kind": "box", "box": "work3", "realm": "main"}


async def test_what_agent_programs_send_for_an_unset_variable_means_no_handle(record: Running) -> None:
    box = await record.box("work3")
    for header in NO_HANDLE:
        reply = await box.speaking_as(header).get("/v1/whoami")
        assert reply.body["agent"] == "work3", header
        assert "readyroom run" in reply.body["hint"], header


async def test_what_is_no_handle_is_refused(record: Running) -> None:
    box = await record.box("work3")
    for header in NOT_A_HANDLE:
        reply = await box.speaking_as(header).get("/v1/whoami")
        assert (reply.status, reply.code) == (400, "bad_handle"), header
        assert "work3-agent-reach#1" in reply.body["detail"]


async def test_two_handles_are_none(record: Running, subtests: pytest.Subtests) -> None:
    box = await record.box("work3")
    for path, other in product(("/v1/checkout", "/v1/poll"), ("work3-agent#1", "work3-agent#2")):
        with subtests.test(path, other=other):
            both = [("X-Tyode-Agent", "work3-agent#1"), ("X-Tyode-Agent", other)]
            refused = await box.post(path, {}, headers=both)
            assert (refused.status, refused.code) == (400, "bad_handle")
            assert refused.headers["x-tyode-agent"] == "work3"
            assert [row["agent"] for row in (await box.get("/v1/agents")).body["agents"]] == ["work3"]


async def test_of_two_authorizations_neither_counts(record: Running, subtests: pytest.Subtests) -> None:
    box = await record.box("work3")
    one = ("Authorization", f"Bearer {box.token}")
    for path, other in product(("/v1/checkin", "/v1/poll"), ("Basic eA==", "", "Bearer", "Bearer nope")):
        another = ("Authorization", other)
        with subtests.test(path, other=other):
            for both in ([one, another], [another, one]):
                refused = await record.stranger.post(path, {}, headers=both)
                assert (refused.status, refused.code) == (401, "unauthenticated")
                assert "x-tyode-agent" not in refused.headers


async def test_a_foreign_handle_leaves_the_bare_box_and_is_counted(record: Running) -> None:
    box = await record.box("work3")
    for foreign in ("devmac-agent-front#1", "work33-agent#1", "work3#1", "work"):
        reply = await box.speaking_as(foreign).get("/v1/whoami")
        assert reply.body["agent"] == "work3", foreign
        assert foreign in reply.body["hint"]
    counted = (await record.stranger.get("/metrics")).body
    assert 'readyroom_handles_not_honoured_total{reason="foreign"} 4.0' in counted


async def test_naming_the_bare_box_needs_no_hint(record: Running) -> None:
    box = await record.box("work3")
    assert "hint" not in (await box.speaking_as("work3").get("/v1/whoami")).body


async def test_blanks_around_a_handle_do_not_matter(record: Running) -> None:
    session = await record.session(await record.box("work3"))
    assert await agent_of(session.speaking_as(f" \t{session.agent} ")) == "work3-agent#1"


async def test_a_persons_token_speaks_for_the_person_whatever_the_handle(record: Running) -> None:
    eric = await record.person("eric")
    for handle in (None, "work3-agent#1", "${X}", "Not A Handle"):
        reply = await eric.speaking_as(handle).get("/v1/whoami")
        assert reply.body == {"agent": "eric", "kind": "person", "box": None, "realm": "main"}, handle


async def test_every_answer_names_the_caller_errors_too(record: Running) -> None:
    session = await record.session(await record.box("work3"))
    answers = [
        await session.get("/v1/nowhere"),
        await session.post("/v1/whoami", {}),
        await session.post("/v1/checkin", {"nonsense": 1}),
        await session.post("/v1/checkin", raw=b"{"),
    ]
    assert [answer.status for answer in answers] == [404, 405, 422, 400]
    assert {answer.headers["x-tyode-agent"] for answer in answers} == {"work3-agent#1"}


async def test_there_is_one_answer_for_every_token_that_is_not_valid(record: Running) -> None:
    box = await record.box("work3")
    revoked = await record.box("devmac")
    await record.operator.delete(f"/v1/admin/tokens/{revoked.token_id}")
    assert box.token is not None
    replies: list[Reply] = [
        await record.stranger.get("/v1/whoami"),
        await record.holding("nope").get("/v1/whoami"),
        await record.holding("").get("/v1/whoami"),
        await record.holding(box.token[:-1]).get("/v1/whoami"),
        await revoked.get("/v1/whoami"),
        await record.operator.get("/v1/whoami"),
        await record.stranger.get("/v1/whoami", headers={"Authorization": f"Basic {box.token}"}),
        await record.stranger.get(f"/v1/whoami?token={box.token}&access_token={box.token}"),
        await box.get("/v1/whoami", headers={"Authorization": f"Bearer {box.token}"}),
        await record.stranger.post("/v1/checkin", raw=b"{"),
        await record.stranger.get("/v1/nowhere"),
    ]
    assert {reply.status for reply in replies} == {401}
    assert {reply.headers["www-authenticate"] for reply in replies} == {"Bearer"}
    assert len({str(reply.body) for reply in replies}) == 1


async def test_the_scheme_of_the_token_may_be_written_in_any_case(record: Running) -> None:
    box = await record.box("work3")
    reply = await record.stranger.get("/v1/whoami", headers={"Authorization": f"bEARER {box.token}"})
    assert reply.status == 200


async def test_a_handle_that_was_never_minted_is_registered_at_its_first_use(record: Running) -> None:
    box = await record.box("work3")
    assert await agent_of(box.speaking_as("work3-agent-odd#7")) == "work3-agent-odd#7"
    assert (await record.session(box, "odd")).agent == "work3-agent-odd#8"
    assert await agent_of(box.speaking_as("work3-agent-odd#3")) == "work3-agent-odd#3"
    assert (await record.session(box, "odd")).agent == "work3-agent-odd#9"


@pytest.mark.long
async def test_a_number_that_nobody_was_given_cannot_bring_the_counter_to_its_end(record: Running) -> None:
    box = await record.box("work3")
    for number in (10**9, 10**15 - 1, 10**18 - 1):
        refused = await box.speaking_as(f"work3-agent#{number}").get("/v1/whoami")
        assert (refused.status, refused.code) == (400, "bad_handle")
        assert "at most 999999999" in refused.body["detail"]
    assert (await record.session(box)).agent == "work3-agent#1"
    assert await agent_of(box.speaking_as("work3-agent#999999999")) == "work3-agent#999999999"
    newest = await record.session(box)
    assert newest.agent == "work3-agent#1000000000"
    assert await agent_of(newest) == newest.agent


async def test_a_counter_that_was_brought_far_before_that_was_refused_still_counts_handles(
    record: Running, database_url: str
) -> None:
    box = await record.box("work3")
    await record.session(box)
    await run_sql(database_url, f"UPDATE handle_counters SET last_n = {10**15 - 1}")
    newest = await record.session(box)
    assert await agent_of(newest) == newest.agent == f"work3-agent#{10**15}"


@pytest.mark.long
async def test_first_uses_and_check_ins_at_once_never_share_a_number(
    record: Running, second: Running
) -> None:
    box = await record.box("work3")
    elsewhere = second.holding(str(box.token))
    used = [f"work3-agent-odd#{number}" for number in range(1, 13)]
    replies = await asyncio.gather(
        *(elsewhere.speaking_as(handle).get("/v1/whoami") for handle in used),
        *(box.post("/v1/checkin", {"role": "odd"}) for _ in used),
    )
    assert {reply.status for reply in replies} == {200, 201}
    minted = [reply.body["agent"] for reply in replies if reply.status == 201]
    assert len(set(minted)) == len(minted)
    newest = await record.session(box, "odd")
    numbers = [int(agent.partition("#")[2]) for agent in (*used, *minted)]
    assert int(str(newest.agent).partition("#")[2]) > max(numbers)


async def test_every_token_that_is_not_valid_costs_the_same_look(
    record: Running, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, revoked, expired = [await record.box(name) for name in ("known", "revoked", "expired")]
    await record.operator.delete(f"/v1/admin/tokens/{revoked.token_id}")
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute(
            "UPDATE tokens SET expires_at = clock_timestamp() WHERE token_id = $1", expired.token_id
        )
    finally:
        await connection.close()
    looks: list[str] = []
    fetch = Database.fetch

    async def watched(self: Database, statement: str, *arguments: Any) -> Any:
        looks.append(statement)
        return await fetch(self, statement, *arguments)

    monkeypatch.setattr(Database, "fetch", watched)
    for token in (str(revoked.token), str(expired.token), str(known.token)[:-1], "nope", "x" * 4000):
        looks.clear()
        assert (await record.holding(token).get("/v1/whoami")).status == 401
        assert [look for look in looks if look == HOLDER] == [HOLDER]
        assert not [look for look in looks if look == SESSION]


async def test_a_label_of_its_own_is_registered_too(record: Running) -> None:
    box = await record.box("work3")
    assert await agent_of(box.speaking_as("work3-anything")) == "work3-anything"
    assert await agent_of(box.speaking_as("work3-anything#4")) == "work3-anything#4"
    roster = (await box.get("/v1/agents")).body["agents"]
    assert [(row["agent"], row["role"]) for row in roster] == [
        ("work3", None),
        ("work3-anything", None),
        ("work3-anything#4", None),
    ]


async def test_a_handle_used_by_many_at_once_for_the_first_time_is_one_agent(record: Running) -> None:
    box = await record.box("work3")
    session = box.speaking_as("work3-agent-odd#1")
    replies = await asyncio.gather(*(session.get("/v1/whoami") for _ in range(16)))
    assert {(reply.status, reply.body["agent"]) for reply in replies} == {(200, "work3-agent-odd#1")}
    roster = (await box.get("/v1/agents")).body["agents"]
    assert [row["agent"] for row in roster] == ["work3", "work3-agent-odd#1"]


async def test_a_first_use_cannot_take_a_role_that_is_a_box(record: Running) -> None:
    box = await record.box("work3")
    await record.box("devmac")
    reply = await box.speaking_as("work3-agent-devmac#1").get("/v1/whoami")
    assert (reply.status, reply.code) == (409, "name_taken")
    assert (await box.speaking_as("work3-agent-everyone#1").get("/v1/whoami")).status == 422


async def test_a_revoked_token_ends_at_once_and_its_sibling_does_not(record: Running) -> None:
    box = await record.box("work3")
    second = (await record.operator.post("/v1/admin/boxes/work3/tokens")).body
    assert await agent_of(box) == "work3"
    await record.operator.delete(f"/v1/admin/tokens/{box.token_id}")
    assert (await box.get("/v1/whoami")).status == 401
    assert await agent_of(record.holding(second["token"])) == "work3"


async def test_a_token_ends_with_its_realm(record: Running, database_url: str) -> None:
    await record.operator.post("/v1/admin/realms", {"name": "brief", "ttl_seconds": 3600})
    box = await record.box("work3", realm="brief")
    session = await record.session(box)
    assert (await session.get("/v1/whoami")).body["realm"] == "brief"
    await run_sql(database_url, "UPDATE realms SET expires_at = now() WHERE name = 'brief'")

    async def is_over() -> bool:
        return (await session.get("/v1/whoami")).status == 401

    await until(is_over, "the realm expires")
    assert (await record.operator.post("/v1/admin/boxes", {"name": "late", "realm": "brief"})).status == 404
