"""A dump of a lived-in database, restored into a fresh cluster, is the same record."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from api.store.tables import metadata
from deploy.postgres import Postgres
from tests.conftest import FAST
from tests.faults.processes import show
from tests.http.running import Party, Running, running, settings_for

TOGETHER = 50


@dataclass
class Life:
    """Who lives in the record, what they hold open, and who must not get in again."""

    parties: list[Party]
    rooms: list[str]
    lease: tuple[Party, str]
    keyed: tuple[Party, str]
    first: tuple[Party, dict[str, Any], int]
    revoked: Party

    def at(self, record: Running) -> Life:
        """The same people before another record."""

        def moved(party: Party) -> Party:
            return replace(party, http=record.http, url=record.url)

        return Life(
            [moved(party) for party in self.parties],
            self.rooms,
            (moved(self.lease[0]), self.lease[1]),
            (moved(self.keyed[0]), self.keyed[1]),
            (moved(self.first[0]), *self.first[1:]),
            moved(self.revoked),
        )


async def live(record: Running, *, sessions: int, rooms: int, messages: int) -> Life:
    """Fill a record: rooms, addresses, cursors, leases open and committed, a poll under a key, an end."""
    box, other, eric = await record.box("work3"), await record.box("devmac"), await record.person("eric")
    speakers = [await record.session(box, "reach") for _ in range(sessions)]
    readers = [await record.session(other) for _ in range(sessions)] + [other.speaking_as("devmac-tool#7")]
    names = [f"room-{number}" for number in range(rooms)]
    for party in [*speakers, *readers, eric]:
        for name in names:
            assert (await party.post("/v1/rooms", {"name": name})).status in (200, 201)
    new = {"body": "the first", "client_id": "first", "ttl_seconds": 3600}
    first = await speakers[0].post(f"/v1/rooms/{names[0]}/messages", new)

    async def say(number: int) -> None:
        room = names[number % rooms]
        new = {"body": f"{number}", "urgent": number % 7 == 0}
        said = await speakers[number % sessions].post(f"/v1/rooms/{room}/messages", new)
        assert said.status == 201, said

    for start in range(0, messages, TOGETHER):
        await asyncio.gather(*map(say, range(start, min(messages, start + TOGETHER))))
    for to in ("devmac", "reach", "everyone", "eric", readers[0].agent):
        assert (await speakers[0].post("/v1/messages", {"to": to, "body": f"to {to}"})).status == 201
    for place, reader in enumerate(readers):
        assert (await reader.post("/v1/poll", {"limit": 3 + place})).body["count"] == 3 + place
    leased = await readers[0].post("/v1/poll", {"ack": "lease", "limit": 5, "lease_seconds": 3600})
    done = await readers[1].post("/v1/poll", {"ack": "lease", "limit": 5})
    assert (await readers[1].post("/v1/ack", {"lease": done.body["lease"]})).status == 200
    assert (await readers[1].post("/v1/poll", {"poll_key": "key", "limit": 2})).body["count"] == 2
    assert (await readers[-1].post(f"/v1/rooms/{names[-1]}/leave")).status == 200
    assert (await speakers[-1].post("/v1/checkout")).status == 200
    revoked = await record.box("gone")
    assert (await record.operator.delete(f"/v1/admin/tokens/{revoked.token_id}")).status == 204
    return Life(
        [*speakers[:-1], *readers, box, other, eric],
        names,
        (readers[0], leased.body["lease"]),
        (readers[1], "key"),
        (speakers[0], new, first.body["message"]["id"]),
        revoked,
    )


async def seen(life: Life) -> list[Any]:
    """What everybody can see of where they stand."""
    paths = ["/v1/whoami", "/v1/unread", "/v1/rooms?scope=all", f"/v1/messages/{life.first[2]}", "/v1/agents"]
    looks = []
    for party in life.parties:
        for path in [*paths, *(f"/v1/rooms/{room}/members" for room in life.rooms)]:
            reply = await party.get(path)
            for agent in reply.body.get("agents", []) if path == "/v1/agents" else []:
                del agent["last_seen"]
            looks.append((party.agent, path, reply.status, reply.body))
    return looks


async def rows_of(database_url: str) -> dict[str, tuple[int, str | None]]:
    """How many rows each table has, and one sum over all of them."""
    connection = await asyncpg.connect(database_url)
    try:
        return {
            table: tuple(
                await connection.fetchrow(
                    f"SELECT count(*), md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {table} t"
                )
            )
            for table in [*metadata.tables, "alembic_version"]
        }
    finally:
        await connection.close()


@pytest.fixture(scope="module")
def fresh() -> Iterator[Postgres]:
    """A cluster that has never seen the record."""
    folder = Path(tempfile.mkdtemp(prefix="readyroom-fresh-"))
    server = Postgres(folder, settings=FAST)
    try:
        with server:
            yield server
    finally:
        shutil.rmtree(server.places.home, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)


def move(source: Postgres, database_url: str, target: Postgres) -> str:
    """Dump one database and restore it in another cluster; the new URL."""
    name = urlsplit(database_url).path.lstrip("/")
    dump = source.places.run / f"{name}.dump"
    run = source.programs.run
    run(["pg_dump", "-U", "postgres", "-h", str(source.places.run), "-Fc", "-f", str(dump), name])
    there = ["-U", "postgres", "-h", str(target.places.run)]
    run(["createdb", *there, "-O", "readyroom", "-T", "template0", name])
    run(["pg_restore", *there, "--exit-on-error", "-d", name, str(dump)])
    return target.url_of(name)


@asynccontextmanager
async def record_on(database_url: str, folder: Path) -> AsyncIterator[Running]:
    quick = {
        "say_burst": 100_000,
        "urgent_burst": 100_000,
        "box_burst": 1_000_000,
        "presence_stale_seconds": 86_400,
    }
    async with running(settings_for(database_url, folder, **quick)) as record:
        yield record


async def prove(
    source: Postgres, target: Postgres, database_url: str, folder: Path, **size: int
) -> dict[str, tuple[int, str | None]]:
    async with record_on(database_url, folder) as record:
        life = await live(record, **size)
        before = await seen(life)
        minted = (await life.parties[0].speaking_as(None).post("/v1/checkin", {"role": "reach"})).body[
            "agent"
        ]
        assert (await life.parties[0].speaking_as(minted).post("/v1/checkout")).status == 200
    rows = await rows_of(database_url)
    moved = move(source, database_url, target)
    assert await rows_of(moved) == rows
    async with record_on(moved, folder) as record:
        there = life.at(record)
        assert await seen(there) == before
        await go_on(there, minted)
    return rows


async def go_on(life: Life, minted: str) -> None:
    """Leases, keys, counters, client ids and tokens go on from where they were."""
    reader, lease = life.lease
    again = await reader.post("/v1/poll", {"ack": "lease", "lease_seconds": 3600})
    messages = [message for room in again.body["rooms"] for message in room["messages"]]
    assert (again.body["lease"], again.body["count"]) == (lease, 5)
    assert all(message["redelivered"] for message in messages)
    assert (await reader.post("/v1/ack", {"lease": lease})).status == 200
    keyed = await life.keyed[0].post("/v1/poll", {"poll_key": life.keyed[1]})
    assert (keyed.body["count"], keyed.body["rooms"][0]["messages"][0]["redelivered"]) == (2, True)
    speaker, new, first_id = life.first
    repeated = await speaker.post(f"/v1/rooms/{life.rooms[0]}/messages", new)
    assert (repeated.status, repeated.body["message"]["id"]) == (200, first_id)
    said = await speaker.post(f"/v1/rooms/{life.rooms[0]}/messages", {"body": "after"})
    history = await speaker.get(f"/v1/rooms/{life.rooms[0]}/messages?limit=2")
    assert history.body["messages"][-1]["id"] == said.body["message"]["id"] > first_id
    label, _, number = minted.partition("#")
    next_one = await speaker.speaking_as(None).post("/v1/checkin", {"role": "reach"})
    assert next_one.body["agent"] == f"{label}#{int(number) + 1}"
    assert (await life.revoked.get("/v1/whoami")).status == 401


@pytest.mark.long
async def test_a_small_record_goes_on_in_a_fresh_cluster(
    postgres: Postgres, fresh: Postgres, database_url: str, tmp_path: Path
) -> None:
    await prove(postgres, fresh, database_url, tmp_path, sessions=3, rooms=3, messages=60)


@pytest.mark.faults
@pytest.mark.timeout(300)
async def test_a_large_record_goes_on_in_a_fresh_cluster(
    postgres: Postgres, fresh: Postgres, database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = await prove(postgres, fresh, database_url, tmp_path, sessions=8, rooms=6, messages=5_000)
    show(capsys, ("table", "rows, all as before"), [(table, count) for table, (count, _) in rows.items()])
