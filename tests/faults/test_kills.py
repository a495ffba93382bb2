"""Record, PostgreSQL, client and line are cut off at each step of each call, under steady traffic.

No message is lost, and none comes twice without saying so.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.acceptance.test_up import Up, machines
from tests.faults.door import Door, Fault, Hold, Moment
from tests.faults.processes import NO_LIMITS, show

TRAFFIC = Path(__file__).with_name("traffic.py")
MESSAGES, WRITERS = 10_000, 4
PATIENCE = 60.0
ROOMS = ("alone", "kitchen", "hall", "attic")

CALLS = {
    "say": ("writer-0", "/messages"),
    "poll": ("auto", "/v1/poll"),
    "lease": ("lease", "/v1/poll"),
    "ack": ("lease", "/v1/ack"),
}
"""Each call: whose, and how its path ends."""

MOMENTS: tuple[Moment, ...] = ("sent", "inside", "answered")
VICTIMS = ("record", "postgres", "client", "line")
STEPS = [*itertools.product(VICTIMS, CALLS, MOMENTS)]


@dataclass
class Client:
    """A client's process, the door in front of it, and its journal."""

    name: str
    door: Door
    plan: Path
    journal: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen([sys.executable, str(TRAFFIC), str(self.plan)])

    def kill(self) -> None:
        assert self.process
        self.process.kill()
        self.process.wait()

    def facts(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.journal.read_text().splitlines()]

    async def ended(self) -> None:
        process = self.process
        assert process
        assert await asyncio.to_thread(process.wait, PATIENCE) == 0


class AdvisoryHold:
    """Holds one of the record's own locks from a connection of the test."""

    def __init__(self, connection: asyncpg.Connection, key: int) -> None:
        self._connection = connection
        self._key = key

    async def reached(self) -> bool:
        waits = """SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
                                  AND objid::bigint = $1::bigint & 4294967295)"""
        return bool(await self._connection.fetchval(waits, self._key))

    async def release(self) -> None:
        self._connection.terminate()


@dataclass
class House:
    """A `readyroom up` with clients that talk through doors."""

    up: Up
    port: int
    database_url: str
    keys: dict[str, int]
    clients: dict[str, Client]
    pauses: dict[tuple[str, str, Moment], float] = field(default_factory=dict)

    async def hold(self, call: str) -> Hold:
        whose, _ = CALLS[call]
        connection = await asyncpg.connect(self.database_url)
        key = self.keys[ROOMS[0]] if call == "say" else -self.keys[whose]
        await connection.execute("SELECT pg_advisory_lock($1)", key)
        return AdvisoryHold(connection, key)

    async def strike(self, victim: str, client: Client) -> None:
        """Cut it off; what was killed is back when this returns."""
        match victim:
            case "record":
                await asyncio.to_thread(self._kill_record)
            case "postgres":
                self.up.postmaster().kill()
            case "client":
                client.kill()
                client.start()

    def _kill_record(self) -> None:
        assert self.up.process
        self.up.process.kill()
        self.up.wait()
        self.up.start(port=self.port, env=NO_LIMITS)

    async def go_through(self, victim: str, call: str, moment: Moment, allowed: int) -> None:
        """One step: armed, struck, and traffic flows again."""
        whose, path = CALLS[call]
        client = self.clients[whose]
        fault = Fault(path, moment, lambda: self.strike(victim, client), lambda: self.hold(call))
        await client.door.arm(fault)
        await self._allow(allowed)
        await self._strikes(fault, allowed, (victim, call, moment))
        await self._reaches(allowed)
        self.pauses[victim, call, moment] = time.monotonic() - fault.at

    async def _strikes(self, fault: Fault, allowed: int, step: tuple[str, str, Moment]) -> None:
        """Wait for it; a trickle of messages sees to it that there is something to read."""
        end = time.monotonic() + PATIENCE
        while not fault.struck.is_set():
            assert time.monotonic() < end, f"no call came to be struck: {step}"
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await fault.struck.wait()
            allowed += 1
            await self._allow(allowed)

    async def _allow(self, each: int) -> None:
        for writer in self.writers():
            await writer.door.allow(each)

    async def _reaches(self, each: int) -> None:
        end = time.monotonic() + PATIENCE
        while any(writer.door.said < min(each, MESSAGES // WRITERS) for writer in self.writers()):
            assert time.monotonic() < end, "the traffic stands still"
            await asyncio.sleep(0.005)

    def writers(self) -> list[Client]:
        return [client for name, client in self.clients.items() if name.startswith("writer")]


@contextlib.asynccontextmanager
async def house(folder: Path) -> AsyncIterator[House]:
    """Everything that runs, and the end of all of it."""
    with machines() as new:
        up = new()
        await asyncio.to_thread(lambda: up.start(env=NO_LIMITS))
        port, url = int(up.url.rpartition(":")[2]), str(up.facts()["database_url"])
        async with contextlib.AsyncExitStack() as stack:
            clients, keys = {}, {}
            for name in [*(f"writer-{number}" for number in range(WRITERS)), "auto", "lease"]:
                door = await stack.enter_async_context(Door(port))
                clients[name] = await asyncio.to_thread(settle, up, name, door, folder)
            connection = await asyncpg.connect(url)
            for handle, agent_id in await connection.fetch("SELECT handle, agent_id FROM agents"):
                keys[handle.partition("-agent-")[2].partition("#")[0]] = agent_id
            keys |= dict(await connection.fetch("SELECT name, conv_id FROM conversations WHERE NOT hidden"))
            await connection.close()
            try:
                for client in clients.values():
                    client.start()
                yield House(up, port, url, keys, clients)
            finally:
                for client in clients.values():
                    client.kill()


def settle(up: Up, name: str, door: Door, folder: Path) -> Client:
    """A client that is checked in and in every room. `writer-0` has the first room for itself."""
    status, session = up.call("POST", "/v1/checkin", {"role": name})
    assert status == 201, session
    agent = session["agent"]
    for room in ROOMS:
        assert up.call("POST", "/v1/rooms", {"name": room}, agent=agent)[0] in (200, 201)
    plan: dict[str, Any] = {
        "port": door.port,
        "token": up.box_token(),
        "agent": agent,
        "journal": str(folder / f"{name}.journal"),
        "stop": str(folder / "stop"),
    }
    if name.startswith("writer"):
        plan |= {"messages": MESSAGES // WRITERS, "rooms": ROOMS[:1] if name == "writer-0" else ROOMS[1:]}
    else:
        plan |= {"ack": name}
    file = folder / f"{name}.plan"
    file.write_text(json.dumps(plan))
    return Client(name, door, file, Path(plan["journal"]))


@dataclass
class Account:
    """What one reader was handed, against what was stored."""

    lost: int
    unmarked: int
    marked: int
    unordered: int


def account_of(reader: Client, stored: set[int]) -> Account:
    seen: set[int] = set()
    newest: dict[str, int] = {}
    marked = unmarked = unordered = 0
    for fact in reader.facts():
        for room, id_, redelivered in fact.get("got", ()):
            marked += redelivered
            unmarked += id_ in seen and not redelivered
            unordered += id_ not in seen and id_ < newest.get(room, 0)
            seen.add(id_)
            newest[room] = max(id_, newest.get(room, 0))
    return Account(len(stored - seen), unmarked, marked, unordered)


async def stored_in(database_url: str) -> list[tuple[int, str]]:
    connection = await asyncpg.connect(database_url)
    try:
        rows = await connection.fetch("SELECT id, body FROM conv_messages")
    finally:
        await connection.close()
    return [(row["id"], row["body"]) for row in rows]


@pytest.mark.faults
@pytest.mark.timeout(900)
async def test_kills_at_each_step_lose_nothing_and_repeat_nothing_unmarked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with house(tmp_path) as home:
        for number, (victim, call, moment) in enumerate(STEPS, start=1):
            await home.go_through(victim, call, moment, number * MESSAGES // WRITERS // (len(STEPS) + 1))
        for writer in home.writers():
            await writer.door.allow(MESSAGES)
            await writer.ended()
        (tmp_path / "stop").touch()
        readers = [home.clients["auto"], home.clients["lease"]]
        for reader in readers:
            await reader.ended()
        stored = await stored_in(home.database_url)
    said = [fact["id"] for writer in home.writers() for fact in writer.facts()]
    accounts = [account_of(reader, {id_ for id_, _ in stored}) for reader in readers]
    show_kills(capsys, home, accounts, stored)
    assert len(said) == MESSAGES
    assert sorted(said) == sorted(id_ for id_, _ in stored)
    assert len({body for _, body in stored}) == MESSAGES
    assert [(account.lost, account.unmarked, account.unordered) for account in accounts] == [(0, 0, 0)] * 2


def show_kills(
    capsys: pytest.CaptureFixture[str],
    home: House,
    accounts: list[Account],
    stored: list[tuple[int, str]],
) -> None:
    show(
        capsys,
        ("cut off", "during", *(f"{moment}, traffic on after" for moment in MOMENTS)),
        [
            (victim, call, *(f"{home.pauses[victim, call, moment]:.2f} s" for moment in MOMENTS))
            for victim, call in itertools.product(VICTIMS, CALLS)
        ],
    )
    twice = len(stored) - len({body for _, body in stored})
    show(
        capsys,
        ("reader", "messages", "stored twice", "lost", "repeats unmarked", "repeats marked", "unordered"),
        [
            (name, len(stored), twice, each.lost, each.unmarked, each.marked, each.unordered)
            for name, each in zip(("poll_key", "lease"), accounts, strict=True)
        ],
    )
