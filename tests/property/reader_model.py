"""The truth about who has what to read, in plain Python: what the record is held to."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal

Backfill = int | Literal["none", "all"]
BRIEFED = 20


@dataclass(frozen=True, eq=False)
class Agent:
    """Somebody who says and reads."""

    handle: str
    kind: str
    box: str | None
    addresses: frozenset[str]


@dataclass(eq=False)
class Said:
    """A message."""

    id: int
    room: str
    sender: Agent
    to: str | None
    body: str
    client_id: str | None
    day: int
    lasts: bool = False
    urgent: bool = False
    accepted: frozenset[str] = frozenset()
    """Who was named when it was said."""
    expired: bool = False


@dataclass(eq=False)
class Place:
    """One agent's place in one room; it stays when the agent leaves."""

    member: bool
    read_to: int
    replay_to: int
    read: int = 0
    handed: int = 0
    since: int | None = None
    """The day that a briefing reaches back to; None: everything is heard."""
    opened: int = 0
    """Where the cursor was when the agent joined."""
    missed: frozenset[int] = frozenset()
    """What had expired when the agent joined."""
    left_at: int = 0
    """The room's newest message when the agent left."""
    before: tuple[tuple[int, int], ...] = ()
    """The room's newest messages when earlier memberships began and ended."""


@dataclass(eq=False)
class Batch:
    """What one poll handed over."""

    messages: list[Said]
    lease: str | None
    open: bool
    day: int
    fresh: bool = True
    read: frozenset[int] = frozenset()
    """What had not expired of it when it was committed: what its last answer held."""


@dataclass(eq=False)
class Reader:
    """All that an agent has been given."""

    places: dict[str, Place] = field(default_factory=dict)
    batches: list[Batch] = field(default_factory=list)
    keyed: tuple[str, Batch] | None = None
    handed: set[int] = field(default_factory=set)

    @property
    def open(self) -> Batch | None:
        """The batch that is not acknowledged."""
        return next((batch for batch in self.batches if batch.open), None)


def hears(reader: Agent, sender: Agent) -> bool:
    """The echo rule, in the contract's own words."""
    if reader is sender:
        return False
    if reader.kind == "box" and sender.box == reader.box:
        return False
    return not (reader.kind == "session" and sender.kind == "box" and sender.box == reader.box)


class Truth:
    """Everything that was done in one realm, and what follows from it."""

    def __init__(self) -> None:
        self.agents: list[Agent] = []
        self.readers: dict[Agent, Reader] = {}
        self.messages: list[Said] = []
        self.rooms: set[str] = set()
        self.day = 0

    def come(self, agent: Agent, *, briefed: frozenset[str] = frozenset()) -> None:
        """Somebody is there from now on."""
        self.agents.append(agent)
        self.readers[agent] = Reader()
        for address in agent.addresses:
            if address in briefed:
                self.join(agent, f"@{address}", BRIEFED, since=self.day)
            else:
                self.join(agent, f"@{address}", "none")

    def a_day_passes(self) -> None:
        """Leases run out, and what was said until now is of the day before."""
        self.day += 1
        for reader in self.readers.values():
            if reader.open is not None:
                reader.open.fresh = False

    def in_room(self, room: str) -> list[Said]:
        """All that was said there."""
        return [message for message in self.messages if message.room == room]

    def member(self, agent: Agent, room: str) -> bool:
        """Whether the agent is in the room now."""
        place = self.readers[agent].places.get(room)
        return place is not None and place.member

    def newest(self, rooms: Collection[str]) -> int | None:
        """The newest message of all these rooms."""
        return max((message.id for message in self.messages if message.room in rooms), default=None)

    def joined(self, agent: Agent) -> set[str]:
        """The rooms that the agent is in now."""
        return {room for room, place in self.readers[agent].places.items() if place.member}

    def join(self, agent: Agent, room: str, backfill: Backfill, *, since: int | None = None) -> None:
        """Become a member; the newest `backfill` that were never read are unread."""
        places = self.readers[agent].places
        place = places.get(room)
        if place is not None and place.member:
            return
        newest = self.newest([room]) or 0
        read, handed = (place.read, place.handed) if place else (0, 0)
        before = (*place.before, (place.replay_to, place.left_at)) if place else ()
        places[room] = Place(True, newest, newest, read, handed, since, before=before)
        heard = [message.id for message in self.in_room(room) if self.waits(agent, message)]
        count = {"none": 0, "all": len(heard)}.get(str(backfill), backfill)
        assert isinstance(count, int)
        shown = heard[len(heard) - min(count, len(heard)) :]
        places[room].read_to = places[room].opened = max(shown[0] - 1 if shown else newest, read)
        places[room].missed = frozenset(message.id for message in self.in_room(room) if message.expired)

    def leave(self, agent: Agent, room: str) -> None:
        """Be a member no longer."""
        place = self.readers[agent].places[room]
        place.member, place.left_at = False, self.newest([room]) or 0

    def matched(self, sender: Agent, to: str) -> bool:
        """Whether somebody who may hear the sender answers to the selector."""
        return to == "everyone" or any(
            to in agent.addresses and hears(agent, sender) for agent in self.agents
        )

    def waits(self, agent: Agent, message: Said) -> bool:
        """Whether the message is handed over and counted when the cursor is before it."""
        return self.briefed(agent, message) and self.deliverable(agent, message)

    def briefed(self, agent: Agent, message: Said) -> bool:
        """Whether what this member hears of before reaches back to the message: to what expires, always."""
        since = self.readers[agent].places[message.room].since
        return since is None or message.lasts or message.expired or message.day >= since

    def deliverable(self, agent: Agent, message: Said) -> bool:
        """Whether the message is for this member."""
        return self.meant(agent, message) and not message.expired

    def meant(self, agent: Agent, message: Said) -> bool:
        """Whether the agent, where it is in the room, is one whom the message is for."""
        addressed = message.to is None or message.to in agent.addresses
        return hears(agent, message.sender) and addressed

    def audience(self, message: Said) -> set[str]:
        """Who may hear it now, were it not for its expiry."""
        return {
            agent.handle
            for agent in self.agents
            if self.member(agent, message.room) and self.meant(agent, message)
        }

    def concerned(self, message: Said) -> set[str]:
        """Who was there when it was said; who was given it when they came; who has read it."""
        return {
            agent.handle
            for agent in self.agents
            if self.meant(agent, message)
            and (
                self.offered(agent, message)
                or self.was_member(agent, message)
                or message.id in self.taken(agent)
            )
        }

    def offered(self, agent: Agent, message: Said) -> bool:
        """Whether this member's cursor opened before the message, and it was to be handed over then."""
        place = self.readers[agent].places.get(message.room)
        if place is None or not place.member or message.id in place.missed:
            return False
        return message.id > place.opened and self.briefed(agent, message)

    def was_member(self, agent: Agent, message: Said) -> bool:
        """Whether the agent was in the room when this was said."""
        place = self.readers[agent].places.get(message.room)
        if place is None:
            return False
        last = (place.replay_to, message.id if place.member else place.left_at)
        return any(joined < message.id <= left for joined, left in (*place.before, last))

    def waiting(self, agent: Agent, *, behind_lease: bool = False) -> dict[str, list[Said]]:
        """What is behind the cursor, by room; with `behind_lease` without a batch whose lease is fresh."""
        reader = self.readers[agent]
        leased: dict[str, int] = {}
        if behind_lease and reader.open is not None and reader.open.fresh:
            for message in reader.open.messages:
                leased[message.room] = max(leased.get(message.room, 0), message.id)
        return {
            room: messages
            for room, place in reader.places.items()
            if place.member
            and (
                messages := [
                    message
                    for message in self.in_room(room)
                    if message.id > max(place.read_to, leased.get(room, 0)) and self.waits(agent, message)
                ]
            )
        }

    def once_more(self, agent: Agent, batch: Batch) -> list[Said]:
        """What of a batch may be handed over again."""
        return [
            message
            for message in batch.messages
            if self.member(agent, message.room) and self.waits(agent, message)
        ]

    def commit(self, agent: Agent, batch: Batch) -> None:
        """The reader has taken the batch."""
        if not batch.open:
            return
        batch.open, batch.day = False, self.day
        batch.read = frozenset(message.id for message in batch.messages if not message.expired)
        for message in batch.messages:
            self.passed(agent, message.room, message.id)

    def drop_left_rooms(self, agent: Agent, batch: Batch) -> None:
        """What an open batch holds of rooms that were left is handed over no more; it comes again, marked."""
        for message in batch.messages if batch.open else ():
            place = self.readers[agent].places[message.room]
            if not place.member:
                place.handed = max(place.handed, message.id)
        if batch.open:
            batch.messages = [each for each in batch.messages if self.member(agent, each.room)]

    def drop(self, agent: Agent, batch: Batch) -> None:
        """An open batch of which nothing is left was never taken."""
        if batch in self.readers[agent].batches and batch.open:
            self.readers[agent].batches.remove(batch)

    def passed(self, agent: Agent, room: str, message_id: int) -> None:
        """Move a cursor; never back, never past the end."""
        place = self.readers[agent].places[room]
        newest = self.newest([room]) or 0
        place.read_to = max(place.read_to, min(message_id, newest))
        place.read = max(place.read, min(message_id, newest))

    def keyed(self, agent: Agent, key: str | None) -> Batch | None:
        """The batch that a poll with this key gives again; a key is kept for a day."""
        reader = self.readers[agent]
        if reader.keyed is None or reader.keyed[0] != key or reader.keyed[1].day < self.day:
            return None
        return reader.keyed[1]

    def taken(self, agent: Agent) -> set[int]:
        """What this agent has read: it was in a batch, and had not expired when that was committed."""
        return {message_id for batch in self.readers[agent].batches for message_id in batch.read}
