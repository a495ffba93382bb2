"""Whatever a link asks for, at whichever replica and over whichever transport: it hears what its holder may.

A box hears of the rooms that its sessions are in, of its addresses and of everyone; a person of theirs.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.contract.nerves import WAIT, Ear
from tests.http.running import Party, Running, running, settings_for, until
from tests.http.test_rooms import said

# The stock client leaves the answers to its polls to the collector, which says so.
pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

HOLDERS = ("work3", "devmac", "eric")
ROOMS = ("api", "docs", "ops")
ADDRESSES = (
    "work3",
    "work3-agent",
    "work3-agent#1",
    "devmac",
    "devmac-agent-reach",
    "reach",
    "eric",
    "everyone",
)
END = "end"
"""A room that everybody is in: what is said there last comes after all else."""

PAIRS = ("msg", "MSG", "#", "+", "+/#", "TM-ALL", "TYO-MQ-ALL", "tyo-mq-all", "agent", "comms-msg")
OWNERS = ("agent-comms", "AGENT-COMMS", "agent-comms-msg", "work3", "devmac", "eric", "*", "main", "other")
NAMES = st.sampled_from([*PAIRS, *OWNERS])
TRICKS = st.one_of(
    st.tuples(
        st.just("SUBSCRIBE"),
        st.fixed_dictionaries(
            {"event": NAMES},
            optional={
                "producer": NAMES,
                "mode": st.sampled_from(["topic", "durable"]),
                "scope": st.just("all"),
                "group": NAMES,
                "consumer": NAMES,
                "consumer_id": NAMES,
                "realm": NAMES,
                "to": st.lists(NAMES, max_size=2),
                "names": st.lists(NAMES, max_size=2),
            },
        ),
    ),
    st.tuples(st.just("CONSUMER"), st.fixed_dictionaries({"name": NAMES, "id": NAMES})),
    st.tuples(st.just("PRODUCER"), st.fixed_dictionaries({"name": NAMES, "id": NAMES})),
    st.tuples(st.just("AUTHENTICATION"), st.fixed_dictionaries({"realm": NAMES, "role": st.just("admin")})),
    st.tuples(st.just("HELLO"), st.dictionaries(NAMES, NAMES, max_size=2)),
)
LINKS = st.lists(
    st.tuples(
        st.sampled_from(HOLDERS),
        st.integers(0, 1),
        st.sampled_from(["websocket", "polling"]),
        st.lists(TRICKS, max_size=6),
    ),
    min_size=2,
    max_size=5,
)
MEMBERS = st.fixed_dictionaries({room: st.frozensets(st.sampled_from(HOLDERS)) for room in ROOMS})
SAID = st.lists(st.tuples(st.sampled_from([*ROOMS, *(f"@{a}" for a in ADDRESSES)]), st.integers(0, 1)))


@dataclass
class World:
    """Two replicas, driven from code that does not await; each example has a realm of its own."""

    runner: asyncio.Runner
    replicas: list[Running]
    realms: itertools.count[int]


@pytest.fixture
def world(database_url: str, tmp_path: Path) -> Any:
    with asyncio.Runner() as runner, contextlib.ExitStack() as stack:
        replicas = AsyncExitStack()
        both = [
            runner.run(replicas.enter_async_context(running(settings_for(database_url, tmp_path))))
            for _ in range(2)
        ]
        stack.callback(gc.collect)
        stack.callback(lambda: runner.run(replicas.aclose()))
        yield World(runner, both, itertools.count(1))


@settings(
    max_examples=10,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(members=MEMBERS, links=LINKS, spoken=SAID)
def test_a_link_hears_what_its_holder_may_and_all_of_it(
    world: World,
    members: dict[str, frozenset[str]],
    links: list[tuple[str, int, str, list[tuple[str, dict[str, Any]]]]],
    spoken: list[tuple[str, int]],
) -> None:
    world.runner.run(example(world, members, links, spoken))


async def example(
    world: World,
    members: dict[str, frozenset[str]],
    links: list[tuple[str, int, str, list[tuple[str, dict[str, Any]]]]],
    spoken: list[tuple[str, int]],
) -> None:
    realm = f"realm{next(world.realms)}"
    record = world.replicas[0]
    await record.operator.post("/v1/admin/realms", {"name": realm})
    parties = await settled(record, realm, members)
    speaker = await record.session(await record.box("zoo", realm=realm))
    for room in (*ROOMS, END):
        await speaker.post("/v1/rooms", {"name": room})
    async with AsyncExitStack() as stack:
        ears = []
        for number, (holder, where, transport, tricks) in enumerate(links):
            link = linked(world.replicas[where], parties[holder], f"ear{number}", transport, tricks)
            ears.append((holder, await stack.enter_async_context(link)))
        for place, through in [*spoken, (END, 0)]:
            await speak(world.replicas[through], speaker, place)
        await until(lambda: all(END in convs(ear) for _, ear in ears), "the end is heard")
        for holder, ear in ears:
            may = {END, *(place for place, _ in spoken if place in hearing(holder, members))}
            # What was said through the other replica may come after the end that was said through this one.
            await until(lambda: may <= convs(ear), f"{holder} hears all of it")  # noqa: B023
            assert convs(ear) == may, (holder, ear.consumed)


async def settled(record: Running, realm: str, members: dict[str, frozenset[str]]) -> dict[str, Party]:
    """The holders; a session of each box, or the person, is in the rooms."""
    work3, devmac = await record.box("work3", realm=realm), await record.box("devmac", realm=realm)
    eric = await record.person("eric", realm=realm)
    parties = {"work3": work3, "devmac": devmac, "eric": eric}
    agents = {
        "work3": await record.session(work3),
        "devmac": await record.session(devmac, "reach"),
        "eric": eric,
    }
    for holder, agent in agents.items():
        for room in [END, *(room for room, who in members.items() if holder in who)]:
            assert (await agent.post("/v1/rooms", {"name": room})).status < 300
    return parties


def hearing(holder: str, members: dict[str, frozenset[str]]) -> set[str]:
    """Where a holder hears what is said."""
    addresses = {
        "work3": ("work3", "work3-agent", "work3-agent#1"),
        "devmac": ("devmac", "devmac-agent-reach", "reach"),
        "eric": ("eric",),
    }
    rooms = {room for room, who in members.items() if holder in who}
    return {*rooms, "@everyone", *(f"@{address}" for address in addresses[holder])}


@contextlib.asynccontextmanager
async def linked(
    record: Running, party: Party, name: str, transport: str, tricks: list[tuple[str, dict[str, Any]]]
) -> AsyncIterator[Ear]:
    """A link that is logged in, hears nudges, and has tried its tricks."""
    it = Ear()
    await it.client.connect(record.url, transports=[transport], wait_timeout=WAIT)
    try:
        await it.log_in(str(party.token), name)
        for event, payload in tricks:
            await it.send(event, with_own_names(name, event, payload))
        await it.barrier()
        yield it
    finally:
        await it.client.disconnect()


def with_own_names(link: str, event: str, payload: dict[str, Any]) -> dict[str, Any]:
    """Consumers' names that no other link of the holder has: a second one would take the first one's link."""
    return {**payload, "name": f"{payload['name']}-{link}"} if event == "CONSUMER" else payload


async def speak(record: Running, speaker: Party, place: str) -> None:
    party = record.holding(str(speaker.token), speaker.agent)
    if not place.startswith("@"):
        await said(party, place, "b")
        return
    reply = await party.post("/v1/messages", {"to": place[1:], "body": "b"})
    assert reply.status == 201, reply


def convs(ear: Ear) -> set[str]:
    """The rooms of all that was delivered, under whatever name; not a reminder after a replica was silent."""
    nudges = [payload["message"] for _, payload in ear.consumed]
    return {nudge["conv"] for nudge in nudges if nudge["from"] != "system"}
