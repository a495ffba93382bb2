"""Who may call MCP, and what it answers to whom it may not or who calls it wrongly."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import pytest

from api.mcp.tools import TOOLS
from tests.acceptance.payloads import PAYLOADS, WORD, steering
from tests.http.models import model
from tests.http.running import OPERATOR, Party, Reply, Running, running, settings_for, until

NEW = {
    "MCP-Protocol-Version": "2026-07-28",
    "Accept": "application/json, text/event-stream",
    "Mcp-Method": "tools/call",
}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}

NEEDED: dict[str, dict[str, Any]] = {
    **{tool: {"room": "api"} for tool in ("start_conv", "join_conv", "leave_conv", "who")},
    "say": {"room": "api", "body": "x"},
    "send_message": {"to": "devmac", "body": "x"},
    "search_convs": {"q": "x"},
    "message_status": {"id": 1},
}
"""What each tool cannot do without."""


async def call(
    party: Party,
    tool: str,
    arguments: Mapping[str, Any] = {},
    headers: Mapping[str, str] = {},
) -> Reply:
    """One call of the newer era, by hand."""
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments, "_meta": META},
    }
    return await party.post("/mcp", body, headers={**NEW, "Mcp-Name": tool, **headers})


async def has_left(party: Party) -> bool:
    """A poll ended because its caller left."""
    counted = await party.get("/metrics")
    return 'outcome="left",tool="poll_convs"' in counted.body


async def test_who_is_nobody_is_answered_as_by_rest(record: Running) -> None:
    box = await record.box("work3")
    for token in (None, "wrong", OPERATOR):
        nobody = record.holding(token) if token else record.stranger
        over_mcp, over_rest = await call(nobody, "list_convs"), await nobody.get("/v1/rooms")
        assert (over_mcp.status, over_mcp.body) == (401, over_rest.body), token
        assert over_mcp.headers["www-authenticate"] == "Bearer"
    for handle in ("Work 3", "work3-agent#0"):
        wrong = box.speaking_as(handle)
        over_mcp, over_rest = await call(wrong, "list_convs"), await wrong.get("/v1/rooms")
        assert (over_mcp.status, over_mcp.body) == (400, over_rest.body), handle


async def test_each_request_says_anew_who_calls(record: Running) -> None:
    box = await record.box("work3")
    session = await record.session(box)
    for party, handle in ((session, str(session.agent)), (box, "work3"), (session, str(session.agent))):
        polled = await call(party, "poll_convs")
        assert (polled.status, polled.headers["x-tyode-agent"]) == (200, handle)
        assert polled.body["result"]["structuredContent"]["agent"] == handle
    blanks = await call(box, "poll_convs", headers={"X-Tyode-Agent": f" {session.agent} \t"})
    assert blanks.body["result"]["structuredContent"]["agent"] == session.agent


@pytest.mark.parametrize("handle", [None, "", "${READYROOM_AGENT}", "devmac-agent#1"])
async def test_an_empty_poll_says_whose_mailbox_it_was_and_the_cure(
    record: Running, handle: str | None
) -> None:
    box = (await record.box("work3")).speaking_as(handle)
    hint = (await box.get("/v1/whoami")).body["hint"]
    polled = (await call(box, "poll_convs")).body["result"]
    assert polled["content"][0]["text"] == f"Nothing unread for work3. {hint}"
    assert polled["structuredContent"]["hint"] == hint


async def test_other_names_and_other_sites_are_kept_out(
    record: Running, database_url: str, tmp_path: Path
) -> None:
    box = await record.box("work3")
    for headers, status in (
        ({"Host": "localhost:7666"}, 200),
        ({"Host": "192.0.2.7:7666"}, 200),
        ({"Host": "evil.example"}, 421),
        ({"Origin": "http://localhost:6274"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://192.0.2.7"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "192.0.2.7:7666", "Origin": "http://192.0.2.7:7666"}, 200),
    ):
        assert (await call(box, "list_convs", headers=headers)).status == status, headers
    settings = settings_for(database_url, tmp_path, mcp_hosts="rooms.lan", public_url="https://rooms.example")
    async with running(settings) as named:
        there = named.holding(str(box.token))
        for host in ("rooms.lan:7666", "rooms.example", "ROOMS.example:443"):
            assert (await call(there, "list_convs", headers={"Host": host})).status == 200, host


async def test_only_post_is_served(record: Running) -> None:
    box = await record.box("work3")
    for method in ("GET", "DELETE", "PUT"):
        reply = await box.call(method, "/mcp")
        assert (reply.status, reply.headers["allow"]) == (405, "POST"), method


async def test_what_will_not_do_is_a_tool_error_that_says_what_to_do(record: Running) -> None:
    session = await record.session(await record.box("work3"))
    await session.post("/v1/rooms", {"name": "api"})
    await (await record.box("devmac")).post("/v1/rooms", {"name": "web"})
    cases: list[tuple[str, dict[str, Any], str, str]] = [
        ("say", {"room": "web", "body": "x"}, "not_a_member", "tool join_conv"),
        ("say", {"room": "none", "body": "x"}, "room_not_found", "tool start_conv"),
        ("say", {"room": "api", "body": ""}, "invalid", "body: "),
        ("say", {"room": "api", "body": "x", "seen": "no-lease"}, "not_found", "lease"),
        ("send_message", {"to": "nobody", "body": "x"}, "no_such_agent", "Addressable now: devmac"),
        ("message_status", {"id": 99}, "message_not_found", "99"),
        ("read_conv", {}, "invalid", "room: "),
        ("read_conv", {"thread_id": "no"}, "not_found", "no"),
        ("list_convs", {"cursor": "?"}, "invalid", "cursor: "),
        ("poll_convs", {"wait_seconds": 26}, "invalid", "wait_seconds: "),
        ("poll_convs", {"ack": "auto"}, "invalid", "ack: "),
        ("start_conv", {"room": "No Name"}, "invalid", "room: "),
        ("start_conv", {}, "invalid", "room: "),
        ("search_convs", {"q": "a\0b"}, "invalid", "q: "),
        ("whisper", {}, "not_found", "poll_convs"),
        *((tool, NEEDED.get(tool, {}) | {"extra": 1}, "invalid", "extra: ") for tool in TOOLS),
    ]
    async with model(session) as ada, model(session, "legacy") as old:
        for tool, arguments, code, words in cases:
            for each in (ada, old):
                answer = await each(tool, **arguments)
                assert (answer.code, answer.data) == (code, None), (tool, arguments)
                assert answer.texts[0].startswith(f"{code}: "), (tool, arguments)
                assert words in answer.texts[0], (tool, arguments)


async def test_who_goes_too_fast_is_told_so_by_the_tool(database_url: str, tmp_path: Path) -> None:
    async with running(settings_for(database_url, tmp_path, say_burst=1, say_per_second=0.01)) as record:
        session = await record.session(await record.box("work3"))
        await session.post("/v1/rooms", {"name": "api"})
        async with model(session) as ada:
            codes = [(await ada("say", room="api", body="x")).code for _ in range(2)]
            assert codes == [None, "rate_limited"]


async def test_what_others_say_stays_in_its_block_and_steers_nothing(record: Running) -> None:
    ada, bob = (
        await record.session(await record.box("work3")),
        await record.session(await record.box("devmac")),
    )
    for party in (ada, bob):
        await party.post("/v1/rooms", {"name": "api"})
    marker = f"[message from {bob.agent}] "
    async with model(ada) as tools:
        lease = None
        for name, body in PAYLOADS.items():
            assert (await bob.post("/v1/rooms/api/messages", {"body": body})).status == 201, name
            polled = await tools("poll_convs", **({"seen": lease} if lease else {}))
            (message,) = polled.messages
            lease = polled.data["lease"]
            id_ = message["id"]
            history = await tools("read_conv", room="api", limit=1)
            status = await tools("message_status", id=id_)
            for answer in (polled, history, status):
                assert len(answer.texts) == 2, name
                assert answer.texts[1].startswith(marker), name
                assert not answer.texts[0].startswith("[message"), name
                assert steering(repr(answer.data) + "".join(answer.texts)) == set(), name
                assert WORD in answer.texts[1], name
            assert history.data["messages"][0]["text"] == history.texts[1]


async def call_as_before(party: Party, tool: str, arguments: Mapping[str, Any]) -> Reply:
    """The same in the era of the handshake."""
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }
    headers = {"Accept": NEW["Accept"], "MCP-Protocol-Version": "2025-06-18"}
    return await party.post("/mcp", body, headers=headers)


@pytest.mark.parametrize("calling", [call, call_as_before])
async def test_who_hangs_up_takes_nothing_along(
    record: Running, calling: Callable[[Party, str, Mapping[str, Any]], Coroutine[Any, Any, Reply]]
) -> None:
    ada, bob = (
        await record.session(await record.box("work3")),
        await record.session(await record.box("devmac")),
    )
    for party in (ada, bob):
        await party.post("/v1/rooms", {"name": "api"})
    hanging = asyncio.create_task(calling(ada, "poll_convs", {"wait_seconds": 25}))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(hanging), 1)
    hanging.cancel()
    await until(lambda: has_left(record.operator), "the call has ended")
    await bob.post("/v1/rooms/api/messages", {"body": "hello"})
    unread = (await ada.get("/v1/unread")).body["agents"]
    assert unread[str(ada.agent)]["unread"] == 1
    assert [message["body"] for message in (await ada.post("/v1/poll", {})).body["rooms"][0]["messages"]] == [
        "hello"
    ]


async def test_a_poll_that_waits_is_answered_when_something_comes(record: Running) -> None:
    ada, bob = (
        await record.session(await record.box("work3")),
        await record.session(await record.box("devmac")),
    )
    for party in (ada, bob):
        await party.post("/v1/rooms", {"name": "api"})
    waiting = asyncio.create_task(call(ada, "poll_convs", {"wait_seconds": 25}))
    await asyncio.wait({waiting}, timeout=0.3)
    await bob.post("/v1/rooms/api/messages", {"body": "hello"})
    result = (await waiting).body["result"]
    assert result["content"][1]["text"] == f"[message from {bob.agent}] hello"


async def test_a_revoked_token_ends_calls_that_wait(record: Running) -> None:
    box = await record.box("work3")
    waiting = asyncio.create_task(call(box, "poll_convs", {"wait_seconds": 25}))
    await asyncio.wait({waiting}, timeout=0.3)
    revoked = await record.operator.delete(f"/v1/admin/tokens/{box.token_id}")
    assert revoked.status == 204
    result = (await waiting).body["result"]
    assert result["isError"] is True
    assert result["content"][0]["text"].startswith("unauthenticated: ")
    assert (await call(box, "poll_convs")).status == 401


async def test_a_record_that_restarts_strands_no_client(record: Running, second: Running) -> None:
    ada = await record.session(await record.box("work3"))
    there = second.holding(str(ada.token), ada.agent)
    async with model(ada, "legacy"):
        assert (await call(there, "list_convs")).status == 200
        legacy = {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}
        headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
        assert "poll_convs" in (await there.post("/mcp", legacy, headers=headers)).body


async def test_the_prompt_catches_up(record: Running) -> None:
    async with model(await record.box("work3")) as ada:
        (prompt,) = (await ada.client.list_prompts()).prompts
        assert prompt.name == "catchup"
        assert "poll_convs" in (await ada.client.get_prompt("catchup")).messages[0].content.text  # type: ignore[union-attr]
