"""The roster, and what notifiers report."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.http.running import Party, Reply, Running, running, settings_for, until


async def test_the_roster_marks_the_caller_and_comes_in_pages(record: Running) -> None:
    box = await record.box("work3")
    await record.person("eric")
    session = await record.session(box, "reach")
    first = (await session.get("/v1/agents?limit=2")).body
    second = (await session.get(f"/v1/agents?limit=2&cursor={first['next_cursor']}")).body
    assert second["next_cursor"] is None
    rows = first["agents"] + second["agents"]
    assert [(row["agent"], row["kind"], row["box"], row["role"], row["you"]) for row in rows] == [
        ("eric", "person", None, None, False),
        ("work3", "box", "work3", None, False),
        ("work3-agent-reach#1", "session", "work3", "reach", True),
    ]


async def test_a_report_is_shown_until_it_ages_out(database_url: str, tmp_path: Path) -> None:
    async with running(settings_for(database_url, tmp_path, presence_stale_seconds=1)) as record:
        box = await record.box("work3")
        one, two = await record.session(box), await record.session(box)
        report = {"sessions": [state(one, "idle"), state(two, "offline")]}
        reply = await box.put("/v1/presence", report)
        assert (reply.status, reply.body) == (200, {})
        assert await states(box) == {one.agent: "idle", two.agent: "offline"}

        async def aged_out() -> bool:
            return await states(box) == {one.agent: "unknown", two.agent: "offline"}

        await until(aged_out, "a state that nobody confirms becomes unknown, except offline")


async def test_a_session_that_is_resumed_while_it_lives_is_shown_as_doubled_until_that_ages_out(
    database_url: str, tmp_path: Path
) -> None:
    async with running(settings_for(database_url, tmp_path, presence_stale_seconds=2)) as record:
        box = await record.box("work3")
        one, two = await record.session(box), await record.session(box)
        await one.post("/v1/rooms", {"name": "api"})
        with capture_logs() as logs:
            assert (await resumed(box, one)).status == 200
            assert await doubled(one) == []
            await box.put("/v1/presence", {"sessions": [state(one, "idle"), state(two, "offline")]})
            for session in (one, two):
                assert (await resumed(box, session)).status == 200
        assert await doubled(one) == [one.agent]
        noticed = [line for line in logs if line["event"] == "handle_doubled"]
        assert [(line["agent"], line["noticed_by"]) for line in noticed] == [(one.agent, "resume")]
        members = (await one.get("/v1/rooms/api/members")).body["members"]
        assert [(row["agent"], row["doubled"]) for row in members] == [(one.agent, True)]
        assert "readyroom run --new" in (await one.get("/v1/whoami")).body["hint"]
        assert "hint" not in (await two.get("/v1/whoami")).body

        async def aged_out() -> bool:
            return await doubled(one) == []

        await until(aged_out, "it was not noticed again")
        assert "hint" not in (await one.get("/v1/whoami")).body


async def test_what_a_notifier_sees_twice_is_shown_as_doubled_and_logged_once(record: Running) -> None:
    box = await record.box("work3")
    one, two = await record.session(box), await record.session(box)
    with capture_logs() as logs:
        for _ in range(3):
            rows = [{**state(one, "idle"), "doubled": True}, state(two, "idle")]
            await box.put("/v1/presence", {"sessions": rows})
    assert await doubled(one) == [one.agent]
    noticed = [line for line in logs if line["event"] == "handle_doubled"]
    assert [(line["agent"], line["noticed_by"]) for line in noticed] == [(one.agent, "notifier")]
    await box.put("/v1/presence", {"sessions": [state(one, "idle")]})
    assert await doubled(one) == [one.agent], "a report that says nothing of it takes nothing back"
    await box.put("/v1/presence", {"sessions": [state(one, "offline")]})
    assert await doubled(one) == []


async def test_a_check_in_that_is_repeated_is_no_second_process(record: Running) -> None:
    box = await record.box("work3")
    session = await record.session(box)
    key = {"Idempotency-Key": "a-key"}
    await box.post("/v1/checkin", {"resume": session.agent}, headers=key)
    await box.put("/v1/presence", {"sessions": [state(session, "busy")]})
    await box.post("/v1/checkin", {"resume": session.agent}, headers=key)
    assert await doubled(session) == []
    assert await states(box) == {session.agent: "busy"}


async def resumed(box: Party, session: Party) -> Reply:
    return await box.post("/v1/checkin", {"resume": session.agent})


async def doubled(party: Party) -> list[str]:
    return [row["agent"] for row in (await party.get("/v1/agents")).body["agents"] if row["doubled"]]


async def test_offline_has_a_beginning_and_an_end(record: Running) -> None:
    box = await record.box("work3")
    session = await record.session(box)

    async def reported(state_: str) -> object:
        await box.put("/v1/presence", {"sessions": [state(session, state_)]})
        rows = (await box.get("/v1/agents")).body["agents"]
        return next(row["offline_since"] for row in rows if row["agent"] == session.agent)

    since = await reported("offline")
    assert since is not None
    assert await reported("offline") == since
    assert await reported("idle") is None


async def test_a_report_is_taken_whole_or_not_at_all(record: Running) -> None:
    box, other = await record.box("work3"), await record.box("devmac")
    mine, theirs = await record.session(box), await record.session(other)
    good = state(mine, "busy")
    refused: dict[str, list[dict[str, object]]] = {
        "sessions[1].agent": [
            {"agent": theirs.agent, "state": "idle"},
            {"agent": "work3-agent#99", "state": "idle"},
            {"agent": "work3", "state": "idle"},
            {"agent": "No\0Handle", "state": "idle"},
            good,
        ],
        "sessions[1].state": [{"agent": mine.agent, "state": "asleep"}],
        "sessions[1].mood": [{**good, "mood": "fine"}],
        "sessions[1].wake.outcome": [{**good, "wake": {"rung": "tmux", "outcome": "lost"}}],
        "sessions[1].wake.reason": [
            {**good, "wake": {"rung": "tmux", "outcome": "held", "reason": "a\nb"}},
            {**good, "wake": {"rung": "tmux", "outcome": "held", "reason": "x" * 121}},
        ],
    }
    for field, sessions in refused.items():
        for session in sessions:
            reply = await box.put("/v1/presence", {"sessions": [good, session]})
            assert (reply.status, reply.body["field"]) == (422, field), session
    assert await states(box) == {mine.agent: "starting", theirs.agent: "starting"}
    eric = await record.person("eric")
    assert (await eric.put("/v1/presence", {"sessions": []})).code == "box_only"


@pytest.mark.long
async def test_whoever_calls_has_been_seen(record: Running) -> None:
    box = await record.box("work3")
    session = await record.session(box)

    async def last_seen() -> str:
        rows = (await box.get("/v1/agents")).body["agents"]
        return str(next(row["last_seen"] for row in rows if row["agent"] == session.agent))

    before = await last_seen()
    await session.get("/v1/whoami")

    async def moved() -> bool:
        return await last_seen() > before

    await until(moved, "last_seen moves")


def state(party: Party, state_: str) -> dict[str, object]:
    return {"agent": party.agent, "state": state_}


async def states(party: Party) -> dict[str, str]:
    rows = (await party.get("/v1/agents")).body["agents"]
    return {row["agent"]: row["state"] for row in rows if row["kind"] == "session"}
