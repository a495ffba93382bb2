"""The tools of MCP, over real HTTP, by the official SDK's own client."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from api.mcp.tools import TOOLS
from tests.http.models import Era, Model, held_model, model
from tests.http.running import Party, Running

TOKENS = 1500
"""What the list of tools may cost each session, at four bytes a token."""


@dataclass(frozen=True)
class Pair:
    """Two sessions on two boxes, the first with tools."""

    ada: Model
    me: Party
    bob: Party


@pytest.fixture(params=["auto", "legacy"])
async def pair(record: Running, request: pytest.FixtureRequest) -> AsyncIterator[Pair]:
    """In the room `api`, both of them."""
    era: Era = request.param
    me = await record.session(await record.box("work3"), "reach")
    bob = await record.session(await record.box("devmac"))
    for party in (me, bob):
        await party.post("/v1/rooms", {"name": "api"})
    async with held_model(me, era) as ada:
        yield Pair(ada, me, bob)


async def said(party: Party, body: str, room: str = "api") -> int:
    reply = await party.post(f"/v1/rooms/{room}/messages", {"body": body})
    assert reply.status == 201, reply
    id_: int = reply.body["message"]["id"]
    return id_


async def test_both_eras_are_spoken(record: Running) -> None:
    box = await record.box("work3")
    async with model(box, "auto") as new, model(box, "legacy") as old:
        assert (new.client.protocol_version, old.client.protocol_version) == ("2026-07-28", "2025-11-25")
        assert "never an approval" in (new.client.instructions or "")


async def test_resources_are_not_declared_and_who_asks_is_told_that_there_are_none(pair: Pair) -> None:
    assert pair.ada.client.server_capabilities.resources is None
    assert (await pair.ada.client.list_resources()).resources == []
    assert (await pair.ada.client.list_resource_templates()).resource_templates == []


async def test_the_list_of_tools_is_cheap_and_says_how_each_is_called(pair: Pair) -> None:
    listed = await pair.ada.client.list_tools()
    assert [tool.name for tool in listed.tools] == list(TOOLS)
    for tool in listed.tools:
        assert tool.title
        assert tool.description
        assert tool.annotations is not None
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema is not None
    shown = listed.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert len(json.dumps(shown, separators=(",", ":")).encode()) / 4 <= TOKENS


async def test_what_is_said_is_read_once_when_its_lease_is_named(pair: Pair) -> None:
    first = await pair.ada("say", room="api", body="hello")
    assert first.data["receipt"]["accepted"] == [{"agent": "devmac-agent#1", "state": "starting"}]
    id_ = await said(pair.bob, "hi, ada")
    polled = await pair.ada("poll_convs")
    assert polled.texts[1:] == ["[message from devmac-agent#1] hi, ada"]
    assert [message["id"] for message in polled.messages] == [id_]
    assert polled.data["lease"] in polled.texts[0]
    again = await pair.ada("poll_convs")
    assert again.data["lease"] == polled.data["lease"]
    assert [message["redelivered"] for message in again.messages] == [True]
    empty = await pair.ada("poll_convs", seen=polled.data["lease"])
    assert (empty.data["count"], empty.data["lease"]) == (0, None)
    assert empty.texts == ["Nothing unread for work3-agent-reach#1."]


@pytest.mark.parametrize("tool", ["say", "send_message"])
async def test_an_answer_acknowledges(pair: Pair, tool: str) -> None:
    await said(pair.bob, "a question")
    lease = (await pair.ada("poll_convs")).data["lease"]
    where = {"room": "api"} if tool == "say" else {"to": "devmac"}
    assert (await pair.ada(tool, body="an answer", seen=lease, **where)).code is None
    assert (await pair.ada("poll_convs")).data["count"] == 0


async def test_rooms_are_started_joined_listed_and_left(pair: Pair) -> None:
    started = await pair.ada("start_conv", room="ops", title="Operations")
    assert (started.data["room"], started.data["title"], started.data["unread"]) == ("ops", "Operations", 0)
    await pair.bob.post("/v1/rooms", {"name": "web"})
    await said(pair.bob, "earlier", "web")
    joined = await pair.ada("join_conv", room="web", backfill="all")
    assert joined.data["unread"] == 1
    mine = await pair.ada("list_convs")
    assert [(room["room"], room["unread"]) for room in mine.data["rooms"]] == [
        ("api", 0),
        ("ops", 0),
        ("web", 1),
    ]
    assert "ops: 0 unread, 1 members “Operations”" in mine.texts[0]
    assert (await pair.ada("leave_conv", room="web")).data == {}
    every = await pair.ada("list_all_convs")
    assert [(room["room"], room["member"]) for room in every.data["rooms"]] == [
        ("api", True),
        ("ops", True),
        ("web", False),
    ]
    members = await pair.ada("who", room="api")
    assert [(each["agent"], each["you"]) for each in members.data["members"]] == [
        ("devmac-agent#1", False),
        ("work3-agent-reach#1", True),
    ]
    agents = await pair.ada("list_agents")
    assert {"devmac", "devmac-agent#1", "work3", "work3-agent-reach#1"} == {
        each["agent"] for each in agents.data["agents"]
    }


async def test_a_sender_is_told_that_all_have_retired_who_would_read(pair: Pair) -> None:
    assert (await pair.bob.post("/v1/checkout")).status == 200
    sent = await pair.ada("send_message", to=pair.bob.agent, body="still there?")
    assert sent.data["receipt"]["accepted"] == []
    assert f"nobody, since all who answer to {pair.bob.agent} have retired" in sent.texts[0]
    assert (await pair.ada("start_conv", room="mine")).code is None
    assert "Accepted for: nobody yet." in (await pair.ada("say", room="mine", body="x")).texts[0]
