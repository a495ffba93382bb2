"""Whatever several readers and writers do, in whatever order: each message comes once, or marked, to each."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.http.running import Party, Reply, Running, running, settings_for
from tests.property.reader_model import Agent, Backfill, Batch, Reader, Said, Truth

ROOMS = ("one", "two")
KEYS = ("k1", "k2")
WHO = st.integers(0, 99)
READER = st.one_of(st.just(3), WHO)
"""Often the same one, so that its batches, keys and leases meet."""
BACKFILL: st.SearchStrategy[Backfill] = st.sampled_from(["none", "all", 0, 1, 2, 20])
MOST_SESSIONS = 8


@dataclass
class World:
    """One record, driven from code that does not await; each example gets a realm of its own."""

    runner: asyncio.Runner
    record: Running
    database: asyncpg.Connection
    realms: Iterator[str] = field(default_factory=lambda: (f"realm{n}" for n in itertools.count(1)))

    def sql(self, statement: str, *arguments: Any) -> None:
        """Let time pass for a row: the record's clock is its database's."""
        self.runner.run(self.database.execute(statement, *arguments))


class RecordMachine(RuleBasedStateMachine):
    """Two boxes with sessions, one of them also bare, and a person; two rooms, and every address."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.truth = Truth()
        self.parties: dict[Agent, Party] = {}
        self.fed: dict[Agent, tuple[str | None, set[int]]] = {}
        self.numbers = itertools.count(1)

    @initialize()
    def begin(self) -> None:
        realm = next(self.world.realms)
        record, run = self.world.record, self.world.runner.run
        assert run(record.operator.post("/v1/admin/realms", {"name": realm})).status == 201
        self.boxes = {name: run(record.box(name, realm=realm)) for name in ("work3", "devmac")}
        for name, party in self.boxes.items():
            self.come(Agent(name, "box", name, frozenset({name, "everyone"})), party)
        eric = run(record.person("eric", realm=realm))
        self.come(Agent("eric", "person", None, frozenset({"eric", "everyone"})), eric)
        for box, role in (("work3", "reach"), ("work3", None), ("devmac", None)):
            self.check_in(box, role)
        for name in ROOMS:
            for agent in self.truth.agents[1:4]:
                self.start(agent, name, 20)

    def come(self, agent: Agent, party: Party, *, briefed: frozenset[str] = frozenset()) -> None:
        self.truth.come(agent, briefed=briefed)
        self.parties[agent] = party

    def check_in(self, box: str, role: str | None) -> None:
        party = self.world.runner.run(self.world.record.session(self.boxes[box], role))
        handle = str(party.agent)
        told = frozenset({handle.split("#")[0], "everyone"} | ({role} if role else set()))
        self.come(Agent(handle, "session", box, told | {handle, box}), party, briefed=told)

    def call(self, agent: Agent, method: str, path: str, body: Any = None) -> Reply:
        reply = self.world.runner.run(self.parties[agent].call(method, path, body))
        assert reply.status < 500, reply
        assert reply.headers["x-tyode-agent"] == agent.handle
        return reply

    def agent(self, who: int) -> Agent:
        return self.truth.agents[who % len(self.truth.agents)]

    @rule(box=st.sampled_from(["work3", "devmac"]), role=st.sampled_from([None, "reach"]))
    def late_check_in(self, box: str, role: str | None) -> None:
        if sum(agent.kind == "session" for agent in self.truth.agents) < MOST_SESSIONS:
            self.check_in(box, role)

    def start(self, agent: Agent, room: str, backfill: Backfill) -> None:
        reply = self.call(agent, "POST", "/v1/rooms", {"name": room, "backfill": backfill})
        assert reply.status == (200 if room in self.truth.rooms else 201)
        self.truth.rooms.add(room)
        self.truth.join(agent, room, backfill)
        self.stands(agent, room, reply)

    @rule(who=WHO, room=st.sampled_from(ROOMS), backfill=BACKFILL)
    def join(self, who: int, room: str, backfill: Backfill) -> None:
        agent = self.agent(who)
        reply = self.call(agent, "POST", f"/v1/rooms/{room}/join", {"backfill": backfill})
        assert reply.status == 200
        self.truth.join(agent, room, backfill)
        self.stands(agent, room, reply)

    def stands(self, agent: Agent, room: str, reply: Reply) -> None:
        waiting = self.truth.waiting(agent, behind_lease=True).get(room, [])
        assert reply.body["unread"] == len(waiting)

    @rule(who=READER, room=st.sampled_from(ROOMS))
    def leave(self, who: int, room: str) -> None:
        agent = self.agent(who)
        reply = self.call(agent, "POST", f"/v1/rooms/{room}/leave")
        assert reply.status == (200 if self.truth.member(agent, room) else 403)
        if reply.status == 200:
            self.truth.leave(agent, room)

    @rule(
        who=WHO,
        room=st.sampled_from(ROOMS),
        to=st.one_of(st.none(), WHO),
        size=st.sampled_from([3, 60]),
        named=st.booleans(),
        with_seen=st.booleans(),
    )
    def say(self, who: int, room: str, to: int | None, size: int, named: bool, with_seen: bool) -> None:
        agent = self.agent(who)
        selector = None if to is None else self.address(to)
        self.speak(agent, f"/v1/rooms/{room}/messages", room, selector, size, named, with_seen)

    @rule(who=WHO, to=WHO, named=st.booleans())
    def send(self, who: int, to: int, named: bool) -> None:
        selector = self.address(to)
        self.speak(self.agent(who), "/v1/messages", f"@{selector}", selector, 3, named, False)

    def address(self, number: int) -> str:
        every = sorted({address for agent in self.truth.agents for address in agent.addresses})
        return every[number % len(every)]

    def speak(
        self,
        agent: Agent,
        path: str,
        room: str,
        to: str | None,
        size: int,
        named: bool,
        with_seen: bool,
    ) -> None:
        number = next(self.numbers)
        new: dict[str, Any] = {"body": f"{number}".ljust(size, "."), "to": to}
        if named:
            new["client_id"] = f"c{number}"
        batch = self.truth.readers[agent].open
        if with_seen and batch is not None:
            new["seen"] = batch.lease
        reply = self.call(agent, "POST", path, new)
        if to is not None and not self.truth.matched(agent, to):
            assert (reply.status, reply.code) == (422, "no_such_agent")
        elif not room.startswith("@") and not self.truth.member(agent, room):
            assert (reply.status, reply.code) == (403, "not_a_member")
        else:
            assert reply.status == 201, reply
            message = reply.body["message"]
            said = Said(message["id"], room, agent, to, new["body"], new.get("client_id"))
            assert (message["room"], message["sender"]) == (room, agent.handle)
            assert said.id > max((each.id for each in self.truth.in_room(room)), default=0)
            self.truth.messages.append(said)
            accepted = {each["agent"] for each in reply.body["receipt"]["accepted"]}
            assert accepted == self.truth.audience(said)
            if "seen" in new and batch is not None:
                self.truth.commit(agent, batch)
            return
        if "seen" in new:  # an error changes nothing
            assert self.call(agent, "POST", "/v1/ack", {"lease": new["seen"]}).status == 200
            assert batch is not None
            self.truth.commit(agent, batch)

    @rule(which=WHO, changed=st.booleans())
    def say_again(self, which: int, changed: bool) -> None:
        named = [each for each in self.truth.messages if each.client_id is not None]
        if not named:
            return
        said = named[which % len(named)]
        hidden = said.room.startswith("@")
        path = "/v1/messages" if hidden else f"/v1/rooms/{said.room}/messages"
        body = "something else" if changed else said.body
        reply = self.call(
            said.sender, "POST", path, {"body": body, "to": said.to, "client_id": said.client_id}
        )
        if hidden or self.truth.member(said.sender, said.room):
            assert reply.status == (409 if changed else 200), reply
            assert (reply.body["id"] if changed else reply.body["message"]["id"]) == said.id
        else:
            assert reply.status in (200, 403, 409)

    @rule(which=WHO)
    def expires(self, which: int) -> None:
        """So long ago that no report comes, which would wait for the sender at a time of its own."""
        alive = [each for each in self.truth.messages if not each.expired]
        if alive:
            said = alive[-1 - which % min(4, len(alive))]
            said.expired = True
            self.world.sql(
                "UPDATE conv_messages SET expires_at = clock_timestamp() - interval '1 day' WHERE id = $1",
                said.id,
            )

    @rule(who=READER)
    def lease_runs_out(self, who: int) -> None:
        batch = self.truth.readers[self.agent(who)].open
        if batch is not None:
            batch.fresh = False
            self.world.sql(
                "UPDATE batches SET fresh_until = clock_timestamp() - interval '1 s' WHERE lease = $1",
                batch.lease,
            )

    @rule(
        who=READER,
        leased=st.booleans(),
        limit=st.sampled_from([1, 2, 3, 100]),
        max_bytes=st.sampled_from([1, 61, 130, 10_000]),
        key=st.sampled_from([None, None, None, *KEYS]),
        named=st.booleans(),
        rooms=st.sampled_from([None, None, None, ["one"], ["two", "@everyone"]]),
    )
    def poll(
        self,
        who: int,
        leased: bool,
        limit: int,
        max_bytes: int,
        key: str | None,
        named: bool,
        rooms: list[str] | None,
    ) -> None:
        agent = self.agent(who)
        reader = self.truth.readers[agent]
        how: dict[str, Any] = {
            "ack": "lease" if leased else "auto",
            "limit": limit,
            "max_bytes": max_bytes,
            "rooms": rooms,
            "poll_key": key,
        }
        if named and reader.open is not None:
            how["seen"] = reader.open.lease
            self.truth.commit(agent, reader.open)
        reply = self.call(agent, "POST", "/v1/poll", how)
        assert reply.status == 200, reply
        if not self.handed_again(agent, reader, reply.body, leased, key):
            self.handed_new(agent, reader, reply.body, how)

    def handed_again(
        self, agent: Agent, reader: Reader, polled: dict[str, Any], leased: bool, key: str | None
    ) -> bool:
        """Whether an earlier batch is what must have come; it is checked, then."""
        earlier = [reader.keyed[1]] if reader.keyed is not None and reader.keyed[0] == key else []
        earlier += [reader.open] if reader.open is not None and reader.open not in earlier else []
        for batch in earlier:
            self.truth.drop_left_rooms(agent, batch)
            again = self.truth.once_more(agent, batch)
            if not again:
                self.truth.drop(agent, batch)
                continue
            if leased and batch.lease is not None:
                batch.fresh = True
            else:
                self.truth.commit(agent, batch)
            if key is not None:
                reader.keyed = (key, batch)
            assert polled["lease"] == (batch.lease if leased else None)
            assert self.flat(polled) == sorted((message.id, True) for message in again)
            self.left_behind(agent, polled)
            return True
        return False

    def handed_new(self, agent: Agent, reader: Reader, polled: dict[str, Any], how: dict[str, Any]) -> None:
        waiting = self.truth.waiting(agent)
        asked = {room: waiting[room] for room in waiting if how["rooms"] is None or room in how["rooms"]}
        taken: list[Said] = []
        for room in polled["rooms"]:
            ids = [message["id"] for message in room["messages"]]
            queue = asked[room["room"]]
            assert ids == [message.id for message in queue[: len(ids)]], "in order, and none skipped"
            taken += queue[: len(ids)]
        marked = {message.id for message in taken if message.id <= reader.places[message.room].handed}
        assert self.flat(polled) == sorted((message.id, message.id in marked) for message in taken)
        unmarked = {message.id for message in taken} - marked
        assert not reader.handed & unmarked, "no message comes twice unmarked"
        reader.handed |= {message.id for message in taken}
        self.bounded(asked, taken, how)
        if taken:
            batch = Batch(taken, polled["lease"], open=True)
            reader.batches.append(batch)
            if how["ack"] == "auto":
                self.truth.commit(agent, batch)
            if how["poll_key"] is not None:
                reader.keyed = (how["poll_key"], batch)
        assert (polled["lease"] is not None) == (bool(taken) and how["ack"] == "lease")
        if how["rooms"] is None:
            self.left_behind(agent, polled)
        self.replayed_marks(agent, polled)

    def bounded(self, asked: dict[str, list[Said]], taken: list[Said], how: dict[str, Any]) -> None:
        """As much as the bounds allow, and no more; at least one."""
        size = sum(len(message.body) for message in taken)
        assert len(taken) <= how["limit"]
        assert size <= how["max_bytes"] or len(taken) == 1
        rest = [message for queue in asked.values() for message in queue if message not in taken]
        if rest:
            assert taken
            full = size + max(len(message.body) for message in rest) > how["max_bytes"]
            assert len(taken) == how["limit"] or full

    def left_behind(self, agent: Agent, polled: dict[str, Any]) -> None:
        left = self.truth.waiting(agent, behind_lease=True)
        assert polled["more"] == bool(left)
        for room in polled["rooms"]:
            assert room["unread_left"] == len(left.get(room["room"], []))

    def replayed_marks(self, agent: Agent, polled: dict[str, Any]) -> None:
        places = self.truth.readers[agent].places
        for room in polled["rooms"]:
            for message in room["messages"]:
                assert message["replayed"] == (message["id"] <= places[room["room"]].replay_to)
                assert (", sent before you started" in message["text"]) == message["replayed"]

    @staticmethod
    def flat(polled: dict[str, Any]) -> list[tuple[int, bool]]:
        every = [message for room in polled["rooms"] for message in room["messages"]]
        assert polled["count"] == len(every)
        return sorted((message["id"], message["redelivered"]) for message in every)

    @rule(who=WHO, which=WHO)
    def acknowledge(self, who: int, which: int) -> None:
        """The open batch, one of long ago, or somebody else's."""
        agent = self.agent(who)
        leases = [
            (owner, batch)
            for owner, reader in self.truth.readers.items()
            for batch in reader.batches
            if batch.lease is not None
        ]
        if leases:
            owner, batch = leases[which % len(leases)]
            reply = self.call(agent, "POST", "/v1/ack", {"lease": batch.lease})
            assert reply.status == (200 if owner is agent else 404)
            if owner is agent:
                self.truth.commit(agent, batch)

    @rule(who=READER)
    def acknowledge_own(self, who: int) -> None:
        agent = self.agent(who)
        batch = self.truth.readers[agent].open
        if batch is not None:
            assert self.call(agent, "POST", "/v1/ack", {"lease": batch.lease}).status == 200
            self.truth.commit(agent, batch)

    @rule(who=WHO, room=st.sampled_from(ROOMS), which=WHO)
    def move_by_hand(self, who: int, room: str, which: int) -> None:
        agent, every = self.agent(who), self.truth.in_room(room)
        if every:
            message_id = every[which % len(every)].id
            reply = self.call(agent, "POST", "/v1/ack", {"rooms": {room: message_id}})
            assert reply.status == (200 if self.truth.member(agent, room) else 422)
            if reply.status == 200:
                self.truth.passed(agent, room, message_id)

    @rule(who=WHO, limit=st.sampled_from([1, 3, 1000]))
    def feed(self, who: int, limit: int) -> None:
        """Read on to the end: nothing is skipped, and only what may be heard is there."""
        agent = self.agent(who)
        cursor, fed = self.fed.get(agent, (None, set()))
        rooms = [room for room, place in self.truth.readers[agent].places.items() if place.member]
        heard = {
            message.id
            for room in rooms
            for message in self.truth.in_room(room)
            if self.truth.deliverable(agent, message)
        }
        drained: list[int] = []
        while True:
            at = f"&cursor={cursor}" if cursor else ""
            page = self.call(agent, "GET", f"/v1/messages?limit={limit}{at}").body
            cursor = page["next_cursor"]
            drained += [message["id"] for message in page["messages"]]
            if not page["messages"]:
                break
        assert len(drained) == len(set(drained))
        assert set(drained) <= heard
        fed |= set(drained)
        assert heard <= fed
        self.fed[agent] = (cursor, fed)

    @rule(who=WHO, room=st.sampled_from(ROOMS))
    def look_around(self, who: int, room: str) -> None:
        """History and members, for those who are in the room."""
        agent = self.agent(who)
        history = self.call(agent, "GET", f"/v1/rooms/{room}/messages?limit=1000")
        members = self.call(agent, "GET", f"/v1/rooms/{room}/members")
        if not self.truth.member(agent, room):
            assert history.status == members.status == 403
            return
        assert [each["id"] for each in history.body["messages"]] == [
            each.id for each in self.truth.in_room(room)
        ]
        counted = {each["agent"]: each["unread"] for each in members.body["members"]}
        assert counted == {
            each.handle: len(self.truth.waiting(each, behind_lease=True).get(room, []))
            for each in self.truth.agents
            if self.truth.member(each, room)
        }

    @rule(which=WHO)
    def look_at_a_receipt(self, which: int) -> None:
        alive = [each for each in self.truth.messages if not each.expired]
        if not alive:
            return
        said = alive[which % len(alive)]
        if not said.room.startswith("@") and not self.truth.member(said.sender, said.room):
            return
        reply = self.call(said.sender, "GET", f"/v1/messages/{said.id}")
        assert reply.status == 200
        audience = self.truth.audience(said)
        read = {each["agent"] for each in reply.body["receipt"]["read_by"]}
        assert read == {
            agent.handle
            for agent in self.truth.agents
            if agent.handle in audience and said.id in self.truth.taken(agent)
        }
        assert {each["agent"] for each in reply.body["receipt"]["unread_by"]} == audience - read

    @invariant()
    def unread_is_what_a_poll_would_bring(self) -> None:
        for name, party in getattr(self, "boxes", {}).items():
            self.counted(party, [agent for agent in self.truth.agents if agent.box == name])
        for agent in self.truth.agents:
            if agent.kind == "person":
                self.counted(self.parties[agent], [agent])

    def counted(self, party: Party, agents: list[Agent]) -> None:
        reply = self.world.runner.run(party.get("/v1/unread"))
        expected = {}
        for agent in agents:
            waiting = self.truth.waiting(agent, behind_lease=True)
            every = [message for messages in waiting.values() for message in messages]
            if every:
                expected[agent.handle] = {
                    "unread": len(every),
                    "addressed": sum(message.to not in (None, "everyone") for message in every),
                    "urgent": 0,
                    "rooms": {room: len(messages) for room, messages in waiting.items()},
                }
        assert reply.body["agents"] == expected


@pytest.fixture
def world(database_url: str, tmp_path: Path) -> Iterator[World]:
    """A record for a whole run of examples."""
    with asyncio.Runner() as runner:
        stack = contextlib.AsyncExitStack()

        async def begin() -> World:
            limits = settings_for(database_url, tmp_path, say_per_second=100_000, say_burst=100_000)
            record = await stack.enter_async_context(running(limits))
            database = await asyncpg.connect(database_url)
            stack.push_async_callback(database.close)
            return World(runner, record, database)

        world = runner.run(begin())
        try:
            yield world
        finally:
            runner.run(stack.aclose())


def drive(world: World, *, examples: int, steps: int) -> None:
    class Driven(RecordMachine):
        def __init__(self) -> None:
            super().__init__(world)

    run_state_machine_as_test(
        Driven,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            phases=[Phase.generate],  # each try is a new realm: shrinking takes minutes
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_each_message_comes_once_or_marked_to_each_reader(world: World) -> None:
    drive(world, examples=6, steps=30)


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_each_message_comes_once_or_marked_to_each_reader_at_length(world: World) -> None:
    drive(world, examples=25, steps=40)
