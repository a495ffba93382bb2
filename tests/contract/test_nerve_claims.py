"""A producer's name is one holder's at a time, at all replicas of a nerve together."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import asyncpg
import pytest

from api.db import Database
from api.services.nerve_names import NerveNames
from api.store.nerve_names import LINKS
from broker_bridge import broker
from broker_bridge.actions import Claim, Release
from broker_bridge.limits import Limits
from broker_bridge.memory_store import MemoryNames
from broker_bridge.names import LEASE_SECONDS, TRUSTED_SECONDS, Name, Names
from broker_bridge.nudge import Nudge
from broker_bridge.protocol import Protocol
from broker_bridge.queues import Unkept
from tests.conftest import run_sql
from tests.contract.nerves import ADMISSIONS, WAIT, Ear, ear, free_port, served, until

pytestmark = pytest.mark.long

MINE = Name("main", "build", "client tool", "s1")
MINE_TOO = Name("main", "build", "client tool", "s2")
ANOTHERS = Name("main", "build", "client tool2", "s3")


NUDGE = Nudge("api", "work3-agent#1", 1796000000000)


@dataclass
class Hall:
    """What knows the names, as each of two replicas has it, and a way to let time pass for it."""

    replicas: tuple[Names, Names]
    wait: Callable[[float], Awaitable[None]]

    @property
    def names(self) -> Names:
        return self.replicas[0]


@asynccontextmanager
async def in_memory() -> AsyncIterator[Hall]:
    now = [1000.0]

    async def wait(seconds: float) -> None:
        now[0] += seconds

    names = MemoryNames(lambda: now[0])
    yield Hall((names, names), wait)


@asynccontextmanager
async def in_postgresql(url: str) -> AsyncIterator[Hall]:
    async def wait(seconds: float) -> None:
        await run_sql(url, f"UPDATE nerve_names SET expires_at = expires_at - interval '{seconds} seconds'")

    await run_sql(url, "INSERT INTO realms (name) VALUES ('other')")
    databases = Database(url), Database(url)
    try:
        yield Hall((NerveNames(databases[0]), NerveNames(databases[1])), wait)
    finally:
        for each in databases:
            await each.close()


@pytest.fixture(params=["memory", "postgresql"])
async def hall(request: pytest.FixtureRequest, database_url: str) -> AsyncIterator[Hall]:
    async with in_memory() if request.param == "memory" else in_postgresql(database_url) as hall:
        yield hall


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


async def test_a_name_is_one_holders_in_each_realm(hall: Hall) -> None:
    assert await hall.names.claim(MINE)
    assert await hall.names.claim(MINE)
    assert await hall.names.claim(MINE_TOO)
    assert not await hall.names.claim(ANOTHERS)
    assert await hall.names.claim(Name("other", "build", "client tool2", "s3"))
    assert await hall.names.claim(Name("main", "other", "client tool2", "s3"))


async def test_of_many_who_claim_it_at_once_one_gets_it(hall: Hall) -> None:
    for race in range(20):
        name = f"build{race}"
        claims = [
            hall.replicas[each % 2].claim(Name("main", name, f"client {each}", f"s{each}"))
            for each in range(8)
        ]
        assert sum(await asyncio.gather(*claims)) == 1


async def test_a_name_is_free_when_its_last_link_is_gone(hall: Hall) -> None:
    await hall.names.claim(MINE)
    await hall.names.claim(MINE_TOO)
    await hall.names.release([MINE, MINE])
    assert not await hall.names.claim(ANOTHERS)
    await hall.names.release([ANOTHERS])
    await hall.names.release([MINE_TOO])
    assert await hall.names.renew([MINE, MINE_TOO]) == []
    assert await hall.names.claim(ANOTHERS)
    await hall.names.release([MINE, MINE_TOO])
    assert not await hall.names.claim(MINE)


async def test_a_lease_lasts_while_it_is_renewed(hall: Hall) -> None:
    assert await hall.names.renew([]) == []
    await hall.names.claim(MINE)
    for _ in range(3):
        await hall.wait(LEASE_SECONDS - 5)
        assert await hall.names.renew([ANOTHERS, MINE, MINE_TOO]) == [MINE]
        assert not await hall.names.claim(ANOTHERS)
    await hall.wait(LEASE_SECONDS + 1)
    assert await hall.names.claim(ANOTHERS)
    assert await hall.names.renew([MINE]) == []


async def test_what_was_held_before_the_lease_was_over_holds_nothing_any_more(hall: Hall) -> None:
    await hall.names.claim(MINE)
    await hall.wait(LEASE_SECONDS + 1)
    assert await hall.names.claim(MINE_TOO)
    assert await hall.names.renew([MINE]) == []
    await hall.names.release([MINE_TOO])
    assert await hall.names.claim(ANOTHERS)


@asynccontextmanager
async def replicas(url: str) -> AsyncIterator[tuple[str, str]]:
    """Where two nerves listen that have their names in one database."""
    async with AsyncExitStack() as stack:
        urls = []
        for _ in range(2):
            db = Database(url)
            stack.push_async_callback(db.close)
            _, where = await stack.enter_async_context(served(names=NerveNames(db)))
            urls.append(where)
        yield urls[0], urls[1]


@asynccontextmanager
async def tool(url: str, token: str = "tok-tool") -> AsyncIterator[Ear]:
    """A program that is logged in and registers nothing."""
    async with ear(url, None) as it:
        await it.send("AUTHENTICATION", {"token": token})
        await until(lambda: it.events("AUTH_OK"), "the login")
        yield it


async def as_producer(it: Ear, name: str) -> bool:
    """Whether it may register as a producer."""
    before = len(it.events("AUTH_FAIL", "ERROR"))
    await it.send("PRODUCER", {"name": name, "id": name})
    await it.barrier()
    return len(it.events("AUTH_FAIL", "ERROR")) == before


async def by_producing(it: Ear, name: str) -> bool:
    """Whether it may produce under a name."""
    before = len(it.events("AUTH_FAIL", "ERROR"))
    await it.send("PRODUCE", {"event": "job", "from": name, "message": 1})
    await it.barrier()
    return len(it.events("AUTH_FAIL", "ERROR")) == before


@pytest.mark.parametrize("takes", [as_producer, by_producing])
async def test_of_two_tokens_at_two_replicas_one_gets_a_name(
    database_url: str, takes: Callable[[Ear, str], Awaitable[bool]]
) -> None:
    async with (
        replicas(database_url) as (near, far),
        tool(near) as one,
        tool(far, "tok-tool2") as other,
    ):
        for race in range(7):
            got = await asyncio.gather(takes(one, f"Build{race}"), takes(other, f"bUILD{race}"))
            assert sorted(got) == [False, True]


async def test_the_name_of_a_nerve_token_is_its_own_without_the_database(database_url: str) -> None:
    class Away(MemoryNames):
        async def claim(self, name: Name) -> bool:
            raise Unkept

        async def renew(self, names: Any) -> Any:
            raise Unkept

    async with served(names=Away()) as (nerve, url), tool(url) as it, ear(url, "tok-work3") as listener:
        assert await as_producer(it, "Tool")
        assert await by_producing(it, "tool")
        assert not await as_producer(it, "build")
        assert not await by_producing(it, "build")
        assert [told["code"] for told in it.events("ERROR")] == [-7, -7]
        nerve.nudge(NUDGE, realm="main", names={"work3"})
        await until(lambda: listener.nudges == [NUDGE], "the nudge")


async def test_a_name_is_free_at_the_other_replica_when_its_link_ends(database_url: str) -> None:
    async with replicas(database_url) as (near, far), tool(far, "tok-tool2") as other:
        async with tool(near) as it, tool(near) as twin:
            assert await as_producer(it, "build")
            assert await as_producer(twin, "build")
            await twin.client.disconnect()
            assert not await as_producer(other, "build")
        await free(database_url)
        assert await as_producer(other, "build")


async def test_a_nerve_that_is_closed_lets_its_names_go(database_url: str) -> None:
    async with AsyncExitStack() as stack:
        db = Database(database_url)
        stack.push_async_callback(db.close)
        nerve, url = await stack.enter_async_context(served(names=NerveNames(db)))
        it = await stack.enter_async_context(tool(url))
        assert await as_producer(it, "build")
        await nerve.close()
        assert await links(database_url) == []


async def test_a_killed_replicas_names_are_its_holders_at_once_and_anybodys_after_the_lease(
    database_url: str, stack: AsyncExitStack
) -> None:
    db = Database(database_url)
    stack.push_async_callback(db.close)
    port = free_port()
    process = stack.enter_context(keeper(port, database_url))
    _, far = await stack.enter_async_context(served(names=NerveNames(db)))
    it = await stack.enter_async_context(tool(await reached(port)))
    assert await as_producer(it, "build")
    assert await as_producer(it, "other")
    process.kill()
    process.wait()
    again = await stack.enter_async_context(tool(far))
    other = await stack.enter_async_context(tool(far, "tok-tool2"))
    assert await as_producer(again, "build")
    assert not await as_producer(other, "build")
    assert not await as_producer(other, "other")
    await run_sql(
        database_url,
        f"UPDATE nerve_names SET expires_at = expires_at - interval '{LEASE_SECONDS} seconds'"
        " WHERE name = 'other'",
    )
    assert await as_producer(other, "other")


async def test_names_are_renewed_and_what_was_lost_is_refused(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker, "RENEW_SECONDS", 0.05)
    async with replicas(database_url) as (near, far), tool(near) as it, tool(far, "tok-tool2") as other:
        assert await as_producer(it, "build")
        before = await leases(database_url)
        await eventually(lambda: leases(database_url), lambda now: now > before)
        await run_sql(database_url, "DELETE FROM nerve_names")
        await eventually(lambda: as_producer(other, "build"), bool)
        await eventually(lambda: by_producing(it, "build"), lambda may: not may)
        assert it.events("AUTH_FAIL")[-1]["code"] == 403


async def test_an_answer_is_trusted_for_a_while_and_not_longer() -> None:
    names = MemoryNames(lambda: 0.0)
    core = Protocol(Limits(), claims=True)
    for id, token in (("s1", "tok-tool"), ("s2", "tok-tool2")):
        core.connected(id, now=0)
        core.frame(id, "AUTHENTICATION", {"token": token}, now=0, ref=0)
        core.admitted(id, ADMISSIONS[token])

    def asks(id: str, now: float) -> list[Claim]:
        actions = core.frame(id, "PRODUCE", {"event": "e", "from": "Build"}, now=now, ref=0)
        return [action for action in actions if isinstance(action, Claim)]

    [asked] = asks("s1", now=100)
    assert asked.name == Name("main", "build", "client tool", "s1")
    core.answered(asked, await names.claim(asked.name))
    assert asks("s1", now=100 + TRUSTED_SECONDS - 1) == []
    core.renewed(core.claimed, core.claimed, until=200)
    assert asks("s1", now=199) == []
    [asked] = asks("s1", now=201)
    core.answered(asked, Unkept())
    [asked] = asks("s1", now=202)
    core.answered(asked, answer=False)
    assert core.claimed == set()
    assert core.disconnected("s1") == []
    [asked] = asks("s2", now=203)
    core.answered(asked, answer=True)
    assert Release((asked.name,)) in core.disconnected("s2")


async def test_who_is_gone_or_refused_holds_nothing() -> None:
    core = Protocol(Limits(), claims=True)
    for id in ("s1", "s2"):
        core.connected(id, now=0)
        core.frame(id, "AUTHENTICATION", {"token": "tok-tool"}, now=0, ref=0)
        core.admitted(id, ADMISSIONS["tok-tool"])
    [asked] = core.frame("s1", "PRODUCER", {"name": "build"}, now=1, ref=0)
    assert isinstance(asked, Claim)
    core.disconnected("s1")
    assert Release((asked.name,)) in core.answered(asked, answer=True)
    nameless = {"event": "e", "from": "build", "method": "broadcast", "broadcast": "group"}
    [asked] = core.frame("s2", "PRODUCE", nameless, now=1, ref=0)
    assert isinstance(asked, Claim)
    assert Release((asked.name,)) in core.answered(asked, answer=True)
    assert core.claimed == set()


@contextmanager
def keeper(port: int, dsn: str) -> Iterator[subprocess.Popen[bytes]]:
    """A nerve in a process of its own, to be killed."""
    process = subprocess.Popen([sys.executable, "-m", "tests.contract.keeper", str(port), dsn])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def reached(port: int) -> str:
    """The URL of a nerve that is beginning to listen there."""

    async def listens() -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return False
        writer.close()
        return True

    await eventually(listens, bool)
    return f"http://127.0.0.1:{port}"


async def eventually(look: Callable[[], Awaitable[Any]], holds: Callable[[Any], bool]) -> None:
    """Look until what is seen is as it shall be."""
    end = time.monotonic() + WAIT
    while not holds(await look()):
        assert time.monotonic() < end, "it never was"
        await asyncio.sleep(0.02)


async def links(dsn: str) -> list[Any]:
    """The links by which names are held."""
    return [link for row in await rows(dsn) for link in row["links"]]


async def leases(dsn: str) -> list[Any]:
    """When the names are free."""
    return [row["expires_at"] for row in await rows(dsn)]


async def free(dsn: str) -> None:
    """Wait until nobody holds a name."""
    await eventually(lambda: links(dsn), lambda held: not held)


async def rows(dsn: str) -> list[Any]:
    connection = await asyncpg.connect(dsn)
    try:
        found: list[Any] = await connection.fetch("SELECT * FROM nerve_names ORDER BY name")
        return found
    finally:
        await connection.close()


async def test_links_that_were_killed_do_not_pile_up_while_a_name_is_held(database_url: str) -> None:
    async with in_postgresql(database_url) as hall:
        for number in range(LINKS + 20):
            assert await hall.names.claim(replace(MINE, link=f"killed{number}"))
        held = await links(database_url)
        assert held[-1] == f"killed{LINKS + 19}"
        assert len(held) == LINKS
        assert not await hall.names.claim(ANOTHERS)
