"""`seen` acknowledges with the call that names it: a call that is refused leaves the lease open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from api.services.drafts import SayIn, SendIn
from api.services.reading import PollIn
from tests.http.running import Party, Reply, Running, running, settings_for, until
from tests.http.test_rooms import said

pytestmark = pytest.mark.long

SAY, SEND, POLL = "/v1/rooms/api/messages", "/v1/messages", "/v1/poll"
WRONG_TYPE = {"body": 1, "payload": 1, "rooms": 1, "urgent": "yes", "in_reply_to": "x", "relay_of": "x"}
UNFIT: dict[str, list[Any]] = {
    "body": ["", " ", "a\0b", "x" * 65537],
    "payload": [{"summary": "a\0b"}, {"output_schema": {"type": 7}}, {"content": "x" * 262144}],
    "type": ["", "No Type", "x" * 121],
    "to": ["", "nobody", "a\nb", "work3"],
    "recipient": ["", "nobody"],
    "urgent": [],
    "client_id": ["", "x" * 65, "a\nb", "used"],
    "thread_id": ["", "x" * 121, "a\u202eb"],
    "in_reply_to": [0, 2**62],
    "relay_of": [0, 2**62],
    "hop_limit": [0, 101],
    "ttl_seconds": [0, -1, 10**9],
    "seen": ["", "a\nb", "never-given"],
    "limit": [0, 1001],
    "max_bytes": [0, 2**40],
    "wait_seconds": [-1, 51],
    "ack": ["never"],
    "lease_seconds": [0, 3601],
    "rooms": [[], ["nowhere"], ["api", "ops"], ["@devmac"], ["a\0b"]],
    "poll_key": ["", "a\nb"],
}
"""For each field of the three calls, values that will not do."""


@dataclass(frozen=True)
class Refused:
    """A call that cannot be made; `seen` comes in `body`."""

    path: str
    body: dict[str, Any] | None
    more: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Scene:
    """A reader with an open batch in a room, and what it once said there."""

    speaker: Party
    reader: Party
    lease: str
    requested: int

    def every(self) -> list[Refused]:
        """Each way to be refused, once."""
        cases = []
        for path, type_ in ((SAY, SayIn), (SEND, SendIn), (POLL, PollIn)):
            sound = self.sound(path)
            for name in type_.__struct_fields__:
                for value in (WRONG_TYPE.get(name, ["x"]), *UNFIT[name]):
                    other = {"to": None} if name == "recipient" else {}
                    cases.append(Refused(path, {**sound, **other, name: value}))
            cases.append(Refused(path, {**sound, "more": 1}))
            cases.append(Refused(path, None, {"raw": b"["}))
            cases.append(Refused(path, sound, {"headers": {"X-Tyode-Agent": "work3-agent#2"}}))
            if path != POLL:
                cases += self.relations(path, sound)
        cases.append(Refused(SEND, {"body": "x", "seen": self.lease}))
        cases.append(Refused(SEND, {**self.sound(SEND), "recipient": "devmac"}))
        return cases + [
            Refused(f"/v1/rooms/{room}/messages", self.sound(SAY)) for room in ("ops", "none", "@all")
        ]

    def relations(self, path: str, sound: dict[str, Any]) -> list[Refused]:
        """What hangs together with other messages in a way that will not do."""
        answer = {**sound, "type": "task.result", "in_reply_to": self.requested, "payload": {"content": "no"}}
        relay = {**sound, "relay_of": self.requested}
        key = {"headers": {"Idempotency-Key": "k"}}
        return [
            Refused(path, answer),
            Refused(path, relay),
            Refused(path, {**sound, "client_id": "other"}, key),
            Refused(path, {"seen": self.lease}),
        ]

    def sound(self, path: str) -> dict[str, Any]:
        """A body that would do."""
        words = {"body": "x", "to": str(self.speaker.agent)} if path != POLL else {"ack": "lease"}
        return {**words, "seen": self.lease}

    async def state(self) -> Any:
        """All that a refused call could have changed."""
        history = (await self.speaker.get(f"{SAY}?limit=1000")).body["messages"]
        sent = (await self.speaker.get("/v1/messages?limit=1000")).body["messages"]
        return [message["id"] for message in (*history, *sent) if message["sender"] != "system"]

    async def again(self) -> tuple[Any, list[tuple[str, bool]]]:
        """The open batch, handed over once more."""
        polled = (await self.reader.post(POLL, {"ack": "lease"})).body
        every = [message for room in polled["rooms"] for message in room["messages"]]
        return polled["lease"], [(message["body"], message["redelivered"]) for message in every]


async def staged(record: Running) -> Scene:
    speaker = await record.session(await record.box("devmac"))
    reader = await record.session(await record.box("work3"))
    for party, rooms in ((speaker, ("api", "ops")), (reader, ("api",))):
        for room in rooms:
            assert (await party.post("/v1/rooms", {"name": room})).status in (200, 201)
    await said(reader, "api", "before", client_id="used")
    schema = {"output_schema": {"type": "object"}}
    requested = await said(speaker, "api", "do", type="task.request", payload=schema, hop_limit=1)
    lease = (await reader.post(POLL, {"ack": "lease"})).body["lease"]
    await said(speaker, "api", "behind")
    return Scene(speaker, reader, lease, requested)


@pytest.fixture
async def scene(record: Running) -> Scene:
    """The scene in a record with room for everything."""
    return await staged(record)


async def test_every_refused_call_leaves_the_lease_open_and_stores_nothing(scene: Scene) -> None:
    before, cases = await scene.state(), scene.every()
    wrong: list[Any] = []
    for case in cases:
        reply = await scene.reader.post(case.path, case.body, **case.more)
        if reply.status < 400 or await scene.again() != (scene.lease, [("do", True)]):
            wrong.append((case, reply.status))
    assert wrong == []
    assert await scene.state() == before
    assert len(cases) > 120


async def test_who_is_too_fast_has_acknowledged_nothing(database_url: str, tmp_path: Path) -> None:
    async with running(settings_for(database_url, tmp_path, say_per_second=0.01, say_burst=4)) as record:
        scene = await staged(record)
        new = {"body": "x"}
        while (reply := await scene.reader.post(SAY, new)).status == 201:
            pass
        assert reply.code == "rate_limited"
        for path in (SAY, SEND):
            assert (await scene.reader.post(path, scene.sound(path))).status == 429
        assert await scene.again() == (scene.lease, [("do", True)])


@pytest.mark.parametrize("path", [SAY, SEND])
async def test_what_is_said_again_with_the_same_seen_is_the_same_message(scene: Scene, path: str) -> None:
    new = {**scene.sound(path), "client_id": "c1"}
    first, again = [await scene.reader.post(path, new) for _ in range(2)]
    assert (first.status, again.status) == (201, 200)
    assert first.body["message"]["id"] == again.body["message"]["id"]
    assert (await scene.again())[1] == [("behind", False)]


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """Beside the record, at its tables."""
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


async def held(scene: Scene, database: asyncpg.Connection) -> tuple[asyncio.Task[Reply], int]:
    """Saying with `seen`, in the moment between the storing and the commit of the lease."""
    agent_id = await database.fetchval("SELECT agent_id FROM agents WHERE handle = $1", scene.reader.agent)
    await database.execute("SELECT pg_advisory_lock($1)", -agent_id)
    saying = asyncio.create_task(scene.reader.post(SAY, {"body": "answer", "seen": scene.lease}))

    async def stored() -> bool:
        return bool(await database.fetchval("SELECT count(*) FROM conv_messages WHERE body = 'answer'"))

    await until(stored, "the message is stored while the lease is still open")
    return saying, agent_id


async def test_the_lease_is_committed_behind_the_storing(scene: Scene, database: asyncpg.Connection) -> None:
    saying, agent_id = await held(scene, database)
    assert await database.fetchval("SELECT committed_at IS NULL FROM batches")
    assert not saying.done()
    await database.execute("SELECT pg_advisory_unlock($1)", -agent_id)
    assert (await saying).status == 201
    assert (await scene.again())[1] == [("behind", False)]


async def test_what_was_stored_is_answered_though_the_lease_cannot_be_committed(
    scene: Scene, database: asyncpg.Connection
) -> None:
    saying, agent_id = await held(scene, database)

    async def cut() -> bool:
        found = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = ("
        waiting = await database.fetchval(
            found + "SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        return waiting is not None and await database.fetchval("SELECT pg_terminate_backend($1)", waiting)

    await until(cut, "the connection that waits for the lock is cut")
    assert (await saying).status == 201
    await database.execute("SELECT pg_advisory_unlock($1)", -agent_id)
    assert await scene.again() == (scene.lease, [("do", True)])
