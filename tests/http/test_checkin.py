"""Sessions come, are taken up again, and go."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest

from tests.http.running import Party, Running, running, settings_for


async def test_handles_count_up_for_each_box_and_role(record: Running) -> None:
    work3, devmac = await record.box("work3"), await record.box("devmac")
    sessions = [
        await record.session(box, role)
        for box, role in (
            (work3, "reach"),
            (work3, "reach"),
            (work3, None),
            (devmac, "reach"),
            (devmac, None),
        )
    ]
    assert [session.agent for session in sessions] == [
        "work3-agent-reach#1",
        "work3-agent-reach#2",
        "work3-agent#1",
        "devmac-agent-reach#1",
        "devmac-agent#1",
    ]


async def test_a_check_in_needs_no_body(record: Running) -> None:
    box = await record.box("work3")
    reply = await box.post("/v1/checkin")
    assert reply.status == 201
    assert reply.body == {"agent": "work3-agent#1", "box": "work3", "role": None, "realm": "main"}


async def test_many_check_ins_at_once_get_handles_of_their_own(record: Running) -> None:
    box = await record.box("work3")
    sessions = await asyncio.gather(*(record.session(box, "reach") for _ in range(24)))
    numbers = sorted(int(str(session.agent).partition("#")[2]) for session in sessions)
    assert numbers == list(range(1, 25))


async def test_the_same_key_gives_the_same_session_however_often_and_at_once(record: Running) -> None:
    box = await record.box("work3")
    key = {"Idempotency-Key": "a-key"}
    replies = await asyncio.gather(
        *(box.post("/v1/checkin", {"role": "reach"}, headers=key) for _ in range(12))
    )
    assert sorted(reply.status for reply in replies) == [200] * 11 + [201]
    assert {reply.body["agent"] for reply in replies} == {"work3-agent-reach#1"}
    assert (await record.session(box, "reach")).agent == "work3-agent-reach#2"


CHECK_INS: list[dict[str, str]] = [
    {},
    {"role": "reach"},
    {"role": "front"},
    {"role": "reach", "harness": "codex"},
    {"role": "reach", "cwd": "/src"},
    {"role": "reach", "title": "API"},
    {"resume": "work3-agent#1"},
    {"resume": "work3-agent#1", "title": "API"},
    {"resume": "work3-agent#2"},
]


async def test_a_key_with_other_content_is_refused_and_changes_nothing(
    database_url: str, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    settings = settings_for(database_url, tmp_path)
    key = {"Idempotency-Key": "a-key"}
    cases = []
    async with running(settings) as record:
        for n, first in enumerate(CHECK_INS):
            await record.operator.post("/v1/admin/realms", {"name": f"realm{n}"})
            box = await record.box("work3", realm=f"realm{n}")
            for _ in range(2):
                await record.session(box)
            made = await box.post("/v1/checkin", first, headers=key)
            assert made.status == (200 if "resume" in first else 201)
            known = (await box.get("/v1/agents?retired=true")).body["agents"]
            cases.append((first, str(box.token), made.body["agent"], known))
    async with running(settings) as record:
        for first, token, agent, known in cases:
            with subtests.test(first=first):
                box = record.holding(token)
                for other in CHECK_INS:
                    reply = await box.post("/v1/checkin", other, headers=key)
                    if other == first:
                        assert (reply.status, reply.body["agent"]) == (200, agent)
                    else:
                        assert (reply.status, reply.code) == (409, "client_id_reused"), other
                        assert reply.body["agent"] == agent
                rows = (await box.get("/v1/agents?retired=true")).body["agents"]
                for row in rows + known:
                    row["last_seen"] = None
                assert rows == known


async def test_of_twins_with_one_key_and_other_content_one_is_checked_in(
    record: Running, second: Running
) -> None:
    box = await record.box("work3")
    doors = itertools.cycle([box, second.holding(str(box.token))])
    key = {"Idempotency-Key": "a-key"}
    asked = [{"role": role} for role in ("reach", "front") for _ in range(6)] + [{"resume": "work3-agent#1"}]
    replies = await asyncio.gather(
        *(door.post("/v1/checkin", body, headers=key) for door, body in zip(doors, asked, strict=False))
    )
    agents = {reply.body["agent"] for reply in replies if reply.status in (200, 201)}
    assert len(agents) == 1
    assert [reply.status for reply in replies].count(201) == 1
    assert {reply.code for reply in replies if reply.status > 201} == {"client_id_reused"}
    assert await roster_of(box) == ["work3", *agents]


async def test_two_keys_are_refused_and_change_nothing(record: Running, subtests: pytest.Subtests) -> None:
    box = await record.box("work3")
    await box.post("/v1/rooms", {"name": "api"})
    for other in ("a-key", "another"):
        with subtests.test(other):
            both = [("Idempotency-Key", "a-key"), ("Idempotency-Key", other)]
            for path, body in (("/v1/checkin", {}), ("/v1/rooms/api/messages", {"body": "hello"})):
                refused = await box.post(path, body, headers=both)
                assert (refused.status, refused.body["field"]) == (422, "Idempotency-Key"), path
            assert await roster_of(box) == ["work3"]
            assert (await box.get("/v1/rooms/api/messages")).body["messages"] == []


async def test_a_key_is_the_boxs_own(record: Running) -> None:
    key = {"Idempotency-Key": "a-key"}
    replies = [
        await (await record.box(name)).post("/v1/checkin", headers=key) for name in ("work3", "devmac")
    ]
    assert [(reply.status, reply.body["agent"]) for reply in replies] == [
        (201, "work3-agent#1"),
        (201, "devmac-agent#1"),
    ]


async def test_a_session_is_taken_up_again_with_what_it_does_not_tell_anew(record: Running) -> None:
    box = await record.box("work3")
    told = {"role": "reach", "harness": "claude-code", "cwd": "/src/api", "title": "API"}
    agent = (await box.post("/v1/checkin", told)).body["agent"]
    resumed = await box.post("/v1/checkin", {"resume": agent, "title": "API, again"})
    assert (resumed.status, resumed.body["agent"], resumed.body["role"]) == (200, agent, "reach")
    row = await row_of(box, agent)
    assert (row["harness"], row["cwd"], row["title"]) == ("claude-code", "/src/api", "API, again")


async def test_only_an_earlier_session_of_the_same_box_is_taken_up(record: Running) -> None:
    work3, devmac = await record.box("work3"), await record.box("devmac")
    other = await record.session(devmac)
    eric = await record.person("eric")
    for wanted in (other.agent, "work3-agent#1", "work3", "devmac"):
        assert (await work3.post("/v1/checkin", {"resume": wanted})).code == "not_found", wanted
    refused = await work3.post("/v1/checkin", {"resume": "No Handle"})
    assert (refused.status, refused.code, refused.body["field"]) == (422, "invalid", "resume")
    assert (await eric.post("/v1/checkin", {"resume": other.agent})).code == "box_only"


async def test_a_person_cannot_check_in_or_out(record: Running) -> None:
    eric = await record.person("eric")
    assert (await eric.post("/v1/checkin", {})).code == "box_only"
    assert (await eric.post("/v1/checkout", {})).status == 422


async def test_a_session_that_checks_out_is_retired_and_its_number_stays_used(record: Running) -> None:
    box = await record.box("work3")
    session = await record.session(box)
    reply = await session.post("/v1/checkout", {})
    assert (reply.status, reply.body) == (200, {})
    assert await roster_of(box) == ["work3"]
    assert await roster_of(box, "?retired=true") == ["work3", "work3-agent#1"]
    assert (await record.session(box)).agent == "work3-agent#2"
    assert (await box.post("/v1/checkout", {})).status == 422


async def test_a_retired_session_comes_back_to_life_when_it_is_used_or_resumed(record: Running) -> None:
    box = await record.box("work3")
    first, second = await record.session(box), await record.session(box)
    for session in (first, second):
        await session.get("/v1/whoami")
        await session.post("/v1/checkout")
    assert (await first.get("/v1/whoami")).body["agent"] == first.agent
    assert (await box.post("/v1/checkin", {"resume": second.agent})).status == 200
    assert await roster_of(box) == ["work3", first.agent, second.agent]


async def test_what_will_not_do_is_refused_by_name_and_changes_nothing(record: Running) -> None:
    box = await record.box("work3")
    cases: list[tuple[object, str]] = [
        ({"nonsense": 1}, "nonsense"),
        ({"role": 5}, "role"),
        ({"role": "Reach"}, "role"),
        ({"role": "a b"}, "role"),
        ({"role": ""}, "role"),
        ({"role": "x" * 65}, "role"),
        ({"role": "everyone"}, "role"),
        ({"role": "system"}, "role"),
        ({"title": "a\nb"}, "title"),
        ({"title": "a\0b"}, "title"),
        ({"title": "safe\u202egpj.exe"}, "title"),
        ({"title": "\ud800"}, "title"),
        ({"title": "x" * 121}, "title"),
        ({"cwd": "\x1b[2J"}, "cwd"),
        ({"harness": ["claude"]}, "harness"),
        ({"resume": "work3-agent#1", "role": "reach"}, "role"),
    ]
    for body, field in cases:
        reply = await box.post("/v1/checkin", body)
        assert (reply.status, reply.code, reply.body.get("field")) == (422, "invalid", field), body
        assert reply.body["detail"].startswith(f"{field}: ")
    for raw in (b"{", b"[]", b'"x"', b"\xff\xfe", b"[" * 50_000, b'{"role": NaN}'):
        reply = await box.post("/v1/checkin", raw=raw)
        assert reply.status in (400, 422), raw
        assert reply.headers["content-type"] == "application/problem+json"
    assert (await box.post("/v1/checkin", headers={"Idempotency-Key": "a b"})).body[
        "field"
    ] == "Idempotency-Key"
    assert await roster_of(box, "?retired=true") == ["work3"]


async def test_a_role_that_makes_the_handle_too_long_is_refused(record: Running) -> None:
    box = await record.box("b" * 64)
    reply = await box.post("/v1/checkin", {"role": "r" * 64})
    assert (reply.status, reply.body["field"]) == (422, "role")


async def test_boxes_people_and_roles_share_one_namespace_in_either_order(record: Running) -> None:
    box = await record.box("work3")
    await record.person("eric")
    await record.session(box, "reach")
    for role in ("work3", "eric", "work3-agent"):
        reply = await box.post("/v1/checkin", {"role": role})
        assert (reply.status, reply.code) == (409, "name_taken"), role
    assert (await record.operator.post("/v1/admin/boxes", {"name": "reach"})).code == "name_taken"
    assert (await record.operator.post("/v1/admin/people", {"name": "reach"})).code == "name_taken"
    assert (await record.session(await record.box("devmac"), "reach")).agent == "devmac-agent-reach#1"


async def test_realms_count_and_name_for_themselves(record: Running) -> None:
    await record.operator.post("/v1/admin/realms", {"name": "other"})
    here, there = await record.box("work3"), await record.box("work3", realm="other")
    assert (await record.session(here)).agent == (await record.session(there)).agent == "work3-agent#1"
    await record.session(here)
    assert await roster_of(there) == ["work3", "work3-agent#1"]
    await record.box("reach", realm="other")
    assert (await record.session(here, "reach")).agent == "work3-agent-reach#1"


async def row_of(party: Party, agent: str) -> dict[str, object]:
    rows = (await party.get("/v1/agents?retired=true")).body["agents"]
    row: dict[str, object] = next(row for row in rows if row["agent"] == agent)
    return row


async def roster_of(party: Party, query: str = "") -> list[str]:
    return [row["agent"] for row in (await party.get(f"/v1/agents{query}")).body["agents"]]
