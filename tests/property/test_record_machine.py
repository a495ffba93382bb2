"""Whatever several readers and writers do, in whatever order: each message comes once, or marked, to each."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Iterator
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
ROOM = st.sampled_from(["one", "one", "one", "two"])
KEYS = ("k1", "k2")
WHO = st.integers(0, 99)
READER = st.sampled_from([3, 3, 3, 3, 4, 5])
SPEAKER = st.sampled_from([1, 2, 2, 3, 4, 5, 0])
"""Mostly one reader in one room, so that its batches, keys and leases meet."""
SEEN = st.sampled_from(["", "", "own", "never given"])
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
        realm = self.realm = next(self.world.realms)
        record, run = self.world.record, self.world.runner.run
        assert run(record.operator.post("/v1/admin/realms", {"name": realm})).status == 201
        self.boxes = {name: run(record.box(name, realm=realm)) for name in ("work3", "devmac")}
        for name, party in self.boxes.items():
            self.come(Agent(name, "box", name, frozenset({name, "everyone"})), party)
        eric = run(record.person("eric", realm=realm))
        self.come(Agent("eric", "person", None, frozenset({"eric", "everyone"})), eric)
        for box, role in (("work3", "reach"), ("work3", None), ("devmac", None)):
            self.check_in(box, role)
        for agent in self.truth.agents[1:5]:
            self.start(agent, "one", 20)
        for agent in self.truth.agents[2:4]:
            self.start(agent, "two", 20)

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

    @rule(box=st.sampled_from(["work3", "devmac"]), role=st.sampled_from([None, "reach"]), day=st.booleans())
    def brief_a_late_session(self, box: str, role: str | None, day: bool) -> None:
        """It hears what lasts and what is fresh, and what is neither does not come again with them."""
        if sum(agent.kind == "session" for agent in self.truth.agents) >= MOST_SESSIONS:
            return
        for lasts in (True, False):
            self.speak(self.agent(2), "/v1/messages", "@everyone", "everyone", 3, False, "", lasts=lasts)
        if day:
            self.a_day_passes()
            self.speak(self.agent(2), "/v1/messages", "@everyone", "everyone", 3, False, "")
        self.check_in(box, role)
        for _ in range(2):
            self.polled(len(self.truth.agents) - 1, leased=True)

    def start(self, agent: Agent, room: str, backfill: Backfill) -> None:
        reply = self.call(agent, "POST", "/v1/rooms", {"name": room, "backfill": backfill})
        assert reply.status == (200 if room in self.truth.rooms else 201)
        self.truth.rooms.add(room)
        self.truth.join(agent, room, backfill)
        self.stands(agent, room, reply)

    @rule(who=READER, room=ROOM, backfill=BACKFILL)
    def join(self, who: int, room: str, backfill: Backfill) -> None:
        agent = self.agent(who)
        reply = self.call(agent, "POST", f"/v1/rooms/{room}/join", {"backfill": backfill})
        assert reply.status == 200
        self.truth.join(agent, room, backfill)
        self.stands(agent, room, reply)

    def stands(self, agent: Agent, room: str, reply: Reply) -> None:
        waiting = self.truth.waiting(agent, behind_lease=True).get(room, [])
        assert reply.body["unread"] == len(waiting)

    @rule(who=READER, room=ROOM)
    def leave(self, who: int, room: str) -> None:
        agent = self.agent(who)
        reply = self.call(agent, "POST", f"/v1/rooms/{room}/leave")
        assert reply.status == (200 if self.truth.member(agent, room) else 403)
        if reply.status == 200:
            self.truth.leave(agent, room)

    @rule(
        who=READER,
        room=ROOM,
        backfill=BACKFILL,
        leased=st.booleans(),
        between=st.booleans(),
        key=st.sampled_from([None, "k1"]),
    )
    def read_and_come_back(
        self, who: int, room: str, backfill: Backfill, leased: bool, between: bool, key: str | None
    ) -> None:
        """What was read stays so; what was only handed over comes again, marked."""
        self.join(who, room, "none")
        self.say_much(2, 3, room)
        self.polled(who, leased=leased, key=key, seen="own")
        self.leave(who, room)
        if between:
            self.polled(who, leased=leased, key=key)
        self.join(who, room, backfill)
        self.polled(who, leased=leased, seen="own")

    @rule(
        who=SPEAKER,
        room=ROOM,
        to=st.one_of(st.none(), st.none(), WHO),
        size=st.sampled_from([3, 60]),
        named=st.booleans(),
        seen=SEEN,
    )
    def say(self, who: int, room: str, to: int | None, size: int, named: bool, seen: str) -> None:
        agent = self.agent(who)
        selector = None if to is None else self.address(to)
        self.speak(agent, f"/v1/rooms/{room}/messages", room, selector, size, named, seen)

    @rule(who=SPEAKER, count=st.integers(2, 4), room=ROOM)
    def say_much(self, who: int, count: int, room: str) -> None:
        """Several at once, each second one for somebody else."""
        for number in range(count):
            to = "eric" if number % 2 else None
            self.speak(self.agent(who), f"/v1/rooms/{room}/messages", room, to, 3, False, "")

    @rule(who=SPEAKER, to=WHO, named=st.booleans(), lasts=st.booleans(), seen=SEEN)
    def send(self, who: int, to: int, named: bool, lasts: bool, seen: str) -> None:
        selector = self.address(to)
        self.speak(self.agent(who), "/v1/messages", f"@{selector}", selector, 3, named, seen, lasts=lasts)

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
        seen: str,
        *,
        lasts: bool = False,
    ) -> None:
        number = next(self.numbers)
        new: dict[str, Any] = {"body": f"{number}".ljust(size, "."), "to": to, "urgent": number % 3 == 0}
        if named:
            new["client_id"] = f"c{number}"
        if lasts:
            new["ttl_seconds"] = 300 * 86400
        batch = self.truth.readers[agent].open
        new["seen"] = self.lease_to_name(agent, seen)
        reply = self.call(agent, "POST", path, new)
        if to is not None and not self.truth.matched(agent, to):
            assert (reply.status, reply.code) == (422, "no_such_agent")
        elif seen == "never given":
            assert (reply.status, reply.code) == (404, "not_found")
        elif not room.startswith("@") and not self.truth.member(agent, room):
            assert (reply.status, reply.code) == (403, "not_a_member")
        else:
            assert reply.status == 201, reply
            message = reply.body["message"]
            day, urgent = self.truth.day, bool(new["urgent"])
            client_id: str | None = new.get("client_id")
            said = Said(message["id"], room, agent, to, new["body"], client_id, day, lasts, urgent)
            assert (message["room"], message["sender"]) == (room, agent.handle)
            assert said.id > max((each.id for each in self.truth.in_room(room)), default=0)
            self.truth.messages.append(said)
            accepted = {each["agent"] for each in reply.body["receipt"]["accepted"]}
            assert accepted == self.truth.audience(said)
            said.accepted = frozenset(accepted)
            if seen == "own" and batch is not None:
                self.truth.commit(agent, batch)

    def lease_to_name(self, agent: Agent, seen: str) -> str | None:
        batch = self.truth.readers[agent].open
        return (batch.lease if batch is not None else None) if seen == "own" else seen or None

    @rule(which=WHO, changed=st.booleans())
    def say_again(self, which: int, changed: bool) -> None:
        named = [each for each in self.truth.messages if each.client_id is not None]
        if not named:
            return
        said = named[which % len(named)]
        hidden = said.room.startswith("@")
        path = "/v1/messages" if hidden else f"/v1/rooms/{said.room}/messages"
        body = "something else" if changed else said.body
        new: dict[str, Any] = {
            "body": body,
            "to": said.to,
            "client_id": said.client_id,
            "urgent": said.urgent,
        }
        if said.lasts:
            new["ttl_seconds"] = 300 * 86400
        reply = self.call(said.sender, "POST", path, new)
        if hidden or self.truth.member(said.sender, said.room):
            assert reply.status == (409 if changed else 200), reply
            assert (reply.body["id"] if changed else reply.body["message"]["id"]) == said.id
        else:
            assert reply.status in (200, 403, 409)

    @rule(which=WHO)
    def expires(self, which: int) -> None:
        """One of the newest."""
        alive = [each for each in self.truth.messages if not each.expired]
        if alive:
            self.ends(alive[-1 - which % min(4, len(alive))])

    def ends(self, said: Said) -> None:
        """As if it had been reported: or a report would come to the sender at a time of its own."""
        said.expired = True
        self.world.sql(
            """
            WITH ended AS (
                UPDATE conv_messages SET expires_at = clock_timestamp() WHERE id = $1 RETURNING realm_id, id
            )
            INSERT INTO undelivered (realm_id, id, reason) SELECT realm_id, id, 'expired' FROM ended
            """,
            said.id,
        )

    @rule(
        who=READER,
        room=ROOM,
        which=WHO,
        then=st.sampled_from(["auto", "lease", "acknowledged"]),
        key=st.sampled_from([None, "k1"]),
    )
    def expires_between_two_handings(
        self, who: int, room: str, which: int, then: str, key: str | None
    ) -> None:
        """Nobody has read what the answer that was committed cannot have held."""
        self.join(who, room, "none")
        self.say_much(2, 3, room)
        self.polled(who, leased=True, seen="own", key=key)
        batch = self.truth.readers[self.agent(who)].open
        alive = [each for each in batch.messages if not each.expired] if batch is not None else []
        if not alive:
            return
        said = alive[which % len(alive)]
        self.ends(said)
        if then != "acknowledged":
            self.polled(who, leased=then == "lease", key=key)
        self.acknowledge_own(who)
        self.receipt_is_true(said)

    @rule()
    def a_day_passes(self) -> None:
        """All that happened moves 25 hours into the past."""
        self.truth.a_day_passes()
        for table, columns in {
            "conv_messages": ("created_at", "expires_at"),
            "conv_members": ("joined_at", "left_at", "briefed_since"),
            "past_members": ("joined_at", "left_at"),
            "batches": ("handed_at", "fresh_until", "committed_at"),
        }.items():
            moved = ", ".join(f"{column} = {column} - interval '25 hours'" for column in columns)
            which = "WHERE realm_id = (SELECT realm_id FROM realms WHERE name = $1)"
            self.world.sql(f"UPDATE {table} SET {moved} {which}", self.realm)

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
        seen=SEEN,
        rooms=st.sampled_from([None, None, None, ["one"], ["two", "@everyone"]]),
    )
    def poll(
        self,
        who: int,
        leased: bool,
        limit: int,
        max_bytes: int,
        key: str | None,
        seen: str,
        rooms: list[str] | None,
    ) -> None:
        self.polled(who, leased=leased, limit=limit, max_bytes=max_bytes, key=key, seen=seen, rooms=rooms)

    def polled(
        self,
        who: int,
        *,
        leased: bool,
        limit: int = 100,
        max_bytes: int = 10_000,
        key: str | None = None,
        seen: str = "",
        rooms: list[str] | None = None,
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
        how["seen"] = self.lease_to_name(agent, seen)
        reply = self.call(agent, "POST", "/v1/poll", how)
        if not set(rooms or ()) <= self.truth.joined(agent):
            assert (reply.status, reply.code) == (422, "invalid")
            return
        if seen == "never given":
            assert (reply.status, reply.code) == (404, "not_found")
            return
        assert reply.status == 200, reply
        if seen == "own" and reader.open is not None:
            self.truth.commit(agent, reader.open)
        if not self.handed_again(agent, reader, reply.body, how):
            self.handed_new(agent, reader, reply.body, how)
        self.marked(agent, reply.body)
        self.left_behind(agent, reply.body, rooms)

    def handed_again(self, agent: Agent, reader: Reader, polled: dict[str, Any], how: dict[str, Any]) -> bool:
        """Whether an earlier batch is what must have come; it is checked, then."""
        leased, key = how["ack"] == "lease", how["poll_key"]
        keyed = self.truth.keyed(agent, key)
        earlier = [batch for batch in (keyed, reader.open) if batch is not None]
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
            assert self.flat(polled) == [(message.id, True) for message in self.in_order(again)]
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
        assert self.flat(polled) == [(each.id, each.id in marked) for each in self.in_order(taken)]
        unmarked = {message.id for message in taken} - marked
        assert not reader.handed & unmarked, "no message comes twice unmarked"
        reader.handed |= {message.id for message in taken}
        self.bounded(asked, taken, how)
        if taken:
            batch = Batch(taken, polled["lease"], True, self.truth.day)
            reader.batches.append(batch)
            if how["ack"] == "auto":
                self.truth.commit(agent, batch)
            if how["poll_key"] is not None:
                reader.keyed = (how["poll_key"], batch)
        assert (polled["lease"] is not None) == (bool(taken) and how["ack"] == "lease")

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

    def left_behind(self, agent: Agent, polled: dict[str, Any], rooms: list[str] | None) -> None:
        """What waits behind the batch: in all of the rooms that were asked for, and in each that came."""
        left = self.truth.waiting(agent, behind_lease=True)
        asked = self.truth.joined(agent) if rooms is None else rooms
        behind = sum(len(messages) for room, messages in left.items() if room in asked)
        assert (polled["more"], polled["unread_left"]) == (behind > 0, behind)
        assert polled["newest_id"] == self.truth.newest(asked)
        for room in polled["rooms"]:
            assert room["unread_left"] == len(left.get(room["room"], []))
            assert room["newest_id"] == self.truth.newest([room["room"]])

    def marked(self, agent: Agent, polled: dict[str, Any]) -> None:
        """What was said before the reader came says so, and whether somebody else has read it."""
        places = self.truth.readers[agent].places
        others = [each for each in self.truth.agents if each is not agent]
        for room in polled["rooms"]:
            for message in room["messages"]:
                replayed = message["id"] <= places[room["room"]].replay_to
                read = replayed and any(message["id"] in self.truth.taken(other) for other in others)
                assert message["replayed"] == (", sent before you started" in message["text"]) == replayed
                assert (", already read by another" in message["text"]) == read

    @staticmethod
    def in_order(messages: list[Said]) -> list[Said]:
        """By id within a room, the rooms one after the other, the oldest first."""
        return sorted(messages, key=lambda message: (message.room, message.id))

    @staticmethod
    def flat(polled: dict[str, Any]) -> list[tuple[int, bool]]:
        """As they came, but for the order of the rooms."""
        every = [
            message
            for room in sorted(polled["rooms"], key=lambda r: r["room"])
            for message in room["messages"]
        ]
        assert polled["count"] == len(every)
        assert all(each["room"] == room["room"] for room in polled["rooms"] for each in room["messages"])
        return [(message["id"], message["redelivered"]) for message in every]

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

    @rule(who=READER, room=ROOM, ahead=st.booleans(), which=WHO)
    def go_on_beside_a_lease(self, who: int, room: str, ahead: bool, which: int) -> None:
        """The cursor is moved by hand while a batch is open, which is acknowledged afterwards."""
        self.join(who, room, "none")
        self.say_much(1, 3, room)
        self.polled(who, leased=True, seen="own")
        self.say_much(1, 2, room)
        self.move_by_hand(who, room, -1 if ahead else which)
        self.polled(who, leased=True)
        self.acknowledge_own(who)

    @rule(who=READER, room=ROOM, which=WHO)
    def move_by_hand(self, who: int, room: str, which: int) -> None:
        agent, every = self.agent(who), self.truth.in_room(room)
        if every:
            message_id = every[which % len(every)].id
            reply = self.call(agent, "POST", "/v1/ack", {"rooms": {room: message_id}})
            assert reply.status == (200 if self.truth.member(agent, room) else 422)
            if reply.status == 200:
                self.truth.passed(agent, room, message_id)

    @rule(look=st.integers(0, 4), who=WHO, room=ROOM)
    def look(self, look: int, who: int, room: str) -> None:
        """One of the calls that move nothing; seldom, for they find seldom what the counts have not found."""
        if look == 0:
            self.feed(who, limit=2)
        elif look == 1:
            self.feed(who, limit=1000)
        elif look == 2:
            self.look_around(who, room)
        elif look == 3:
            self.look_at_a_receipt(who)
        else:
            self.counted_for(self.boxes["devmac"], "devmac")
            eric = self.truth.agents[2]
            self.counted(self.parties[eric], [eric])

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

    def look_at_a_receipt(self, which: int) -> None:
        if self.truth.messages:
            self.receipt_is_true(self.truth.messages[which % len(self.truth.messages)])

    def receipt_is_true(self, said: Said) -> None:
        if not said.room.startswith("@") and not self.truth.member(said.sender, said.room):
            return
        reply = self.call(said.sender, "GET", f"/v1/messages/{said.id}")
        assert reply.status == 200
        accepted = {each["agent"] for each in reply.body["receipt"]["accepted"]}
        assert accepted == said.accepted, "who was named when it was said stays"
        concerned = self.truth.concerned(said)
        read = {each["agent"] for each in reply.body["receipt"]["read_by"]}
        assert read == {
            agent.handle
            for agent in self.truth.agents
            if agent.handle in concerned and said.id in self.truth.taken(agent)
        }
        assert {each["agent"] for each in reply.body["receipt"]["unread_by"]} == concerned - read

    @invariant()
    def unread_is_what_a_poll_would_bring(self) -> None:
        """For the box of those who read most; for the others now and then."""
        if hasattr(self, "boxes"):
            self.counted_for(self.boxes["work3"], "work3")

    def counted_for(self, party: Party, box: str) -> None:
        self.counted(party, [agent for agent in self.truth.agents if agent.box == box])

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
                    "urgent": sum(message.urgent for message in every),
                    "rooms": {room: len(messages) for room, messages in waiting.items()},
                    "oldest_ids": {room: messages[0].id for room, messages in waiting.items()},
                    "addressed_in": how_many(waiting, lambda m: m.to not in (None, "everyone")),
                    "urgent_in": how_many(waiting, lambda m: m.urgent),
                    "from_people_in": how_many(waiting, lambda m: m.sender.kind in ("person", "box")),
                }
        assert reply.body["agents"] == expected


def how_many(waiting: dict[str, list[Said]], counts: Callable[[Said], bool]) -> dict[str, int]:
    """Room -> how many of what waits there count, rooms with none left out."""
    numbers = {room: sum(map(counts, messages)) for room, messages in waiting.items()}
    return {room: number for room, number in numbers.items() if number}


@pytest.fixture
def world(database_url: str, tmp_path: Path) -> Iterator[World]:
    """A record for a whole run of examples."""
    with asyncio.Runner() as runner:
        stack = contextlib.AsyncExitStack()

        async def begin() -> World:
            limits = settings_for(
                database_url, tmp_path, say_per_second=100_000, say_burst=100_000, urgent_burst=100_000
            )
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


@pytest.mark.long
@pytest.mark.timeout(300)
def test_each_message_comes_once_or_marked_to_each_reader(world: World) -> None:
    drive(world, examples=4, steps=40)  # from ten on, hypothesis makes the first ones too small to find much


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_each_message_comes_once_or_marked_to_each_reader_at_length(world: World) -> None:
    drive(world, examples=25, steps=40)
