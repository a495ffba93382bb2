"""A message that was stored is answered with itself, whatever would refuse it by now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.http.running import Party, Running, running, settings_for
from tests.http.test_rooms import said

SAY, SEND = "/v1/rooms/api/messages", "/v1/messages"


async def every(sayer: Party, asker: Party) -> dict[str, tuple[str, dict[str, Any]]]:
    """What can be said now, and is refused later for the reason that its name says."""
    asked = {"to": sayer.agent, "body": "do it", "type": "task.request", "thread_id": "t", "hop_limit": 2}
    assert (await asker.post(SEND, asked)).status == 201
    note = await said(asker, "api", "a note")
    lease = (await sayer.post("/v1/poll", {"ack": "lease"})).body["lease"]
    to = {"to": asker.agent}
    schema = {"output_schema": {"type": "object"}}
    request = await said(asker, "api", "promise", type="task.request", payload=schema)
    result = {"type": "task.result", "payload": {"content": {}}, "in_reply_to": request}
    return {
        "hops used by itself": (SEND, {**to, "type": "task.request", "thread_id": "t"}),
        "no member": (SAY, {}),
        "no reader of what it answers": (SEND, {**to, "in_reply_to": note}),
        "no reader of what it relays": (SEND, {**to, "relay_of": note}),
        "no reader of what it results from": (SEND, {**to, **result}),
        "nobody of that name": (SEND, {"to": "zoo"}),
        "nobody of that name in the room": (SAY, {"to": "zoo"}),
        "body over the limit": (SEND, {**to, "body": "x" * 2000}),
        "payload over the limit": (SEND, {**to, "payload": {"content": "x" * 2000}}),
        "lease that was pruned": (SEND, {**to, "seen": lease}),
    }


async def reports(asker: Party) -> int:
    feed = (await asker.get("/v1/messages?limit=1000")).body["messages"]
    return len([message for message in feed if message["sender"] == "system"])


@pytest.mark.long
async def test_what_was_stored_is_answered_whatever_would_refuse_it_now(
    record: Running, database_url: str, tmp_path: Path
) -> None:
    asker, sayer = [await record.session(await record.box(name)) for name in ("devmac", "work3")]
    await record.session(await record.box("zoo"))
    for party in (asker, sayer):
        assert (await party.post("/v1/rooms", {"name": "api"})).status in (200, 201)
    cases = {
        name: (path, {"body": "x", "client_id": name, **new})
        for name, (path, new) in (await every(sayer, asker)).items()
    }
    first = {name: await sayer.post(path, new) for name, (path, new) in cases.items()}
    assert {name: reply.status for name, reply in first.items()} == dict.fromkeys(cases, 201)

    await sayer.post("/v1/rooms/api/leave")
    database = await asyncpg.connect(database_url)
    await database.execute("UPDATE agents SET addresses = '{}' WHERE handle LIKE 'zoo%'")
    await database.execute("DELETE FROM batch_rooms")
    await database.execute("DELETE FROM batches")
    await database.close()
    strict = settings_for(database_url, tmp_path, body_max_bytes=1000, payload_max_bytes=1000)
    async with running(strict) as later:
        again = later.holding(str(sayer.token), sayer.agent)
        before = await reports(asker)
        repeats = {name: await again.post(path, new) for name, (path, new) in cases.items()}
        others = {
            name: await again.post(path, {**new, "type": "ping"}) for name, (path, new) in cases.items()
        }
        assert await reports(asker) == before
        fresh = {
            name: await again.post(path, {**new, "client_id": f"{name}, again"})
            for name, (path, new) in cases.items()
        }
        assert await reports(asker) == before + 1
    assert {name: (reply.status, reply.body.get("message")) for name, reply in repeats.items()} == {
        name: (200, reply.body["message"]) for name, reply in first.items()
    }
    assert {name: reply.code for name, reply in others.items()} == dict.fromkeys(cases, "client_id_reused")
    assert [name for name, reply in fresh.items() if reply.status < 400] == []
