"""Start, join, leave and list rooms; who is in them."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Literal

from api.db import Database, Transaction
from api.errors import BadField, NotAMember, RoomNotFound
from api.models import Caller
from api.services import fields
from api.services.limits import check_ceiling
from api.store import rooms as store

Backfill = int | Literal["none", "all"]
DEFAULT_BACKFILL = 20


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a member stands in a room."""

    room: str
    title: str | None
    joined: bool
    last_read_id: int
    unread: int


@dataclass(frozen=True, slots=True)
class Listed:
    """A room in a list."""

    room: str
    title: str | None
    members: int
    unread: int
    member: bool
    last_message_at: dt.datetime | None


@dataclass(frozen=True, slots=True)
class Member:
    """A member in a list."""

    agent: str
    kind: str
    state: str
    doubled: bool
    last_read_id: int
    unread: int
    you: bool


class Rooms:
    """The use cases of rooms. A room's name leads to the same conv_id for ever, so that is remembered."""

    def __init__(
        self, db: Database, *, stale_seconds: int, rooms_per_realm: int, members_per_room: int
    ) -> None:
        self.db = db
        self._rooms_per_realm = rooms_per_realm
        self._members_per_room = members_per_room
        self._stale_seconds = stale_seconds
        self._ids: dict[tuple[int, str], int] = {}

    async def conv_id(self, caller: Caller, room: str) -> int:
        """The conv_id of a room of the caller's realm.

        Raises:
            RoomNotFound: there is none, or the name is an address.
        """
        if not fields.NAME.fullmatch(room):
            raise RoomNotFound(room[:80])
        return await self._conv_id(caller, room)

    async def address_id(self, caller: Caller, address: str) -> int:
        """The conv_id of the hidden room behind an address.

        Raises:
            RoomNotFound: nobody was ever matched by it.
        """
        return await self._conv_id(caller, f"@{address}")

    async def member_conv_id(self, caller: Caller, room: str) -> int:
        """The conv_id of a room that the caller is in.

        Raises:
            RoomNotFound, NotAMember
        """
        conv_id = await self.conv_id(caller, room)
        await self._standing(caller, room, conv_id)
        return conv_id

    async def start(
        self, caller: Caller, room: str, *, title: str | None, backfill: Backfill
    ) -> tuple[Standing, bool]:
        """Create a room, or join it when it exists; True when it is new.

        Raises:
            BadField: the name or the title will not do.
            LimitReached: the realm has too many rooms, or the room too many members.
        """
        fields.name("name", room)
        fields.line("title", title)
        count = _count(backfill)
        async with self.db.transaction() as connection:
            conv_id, new = await store.create(connection, realm_id=caller.realm_id, name=room, title=title)
            if new:
                await store.lock_realm(connection, caller.realm_id)
                there = await store.count(connection, caller.realm_id)
                check_ceiling(there, self._rooms_per_realm, limit="rooms_per_realm", what="rooms")
            await self._enter(connection, caller, conv_id, count)
        return await self._standing(caller, room, conv_id), new

    async def join(self, caller: Caller, room: str, *, backfill: Backfill) -> Standing:
        """Join a room that exists; for a member nothing changes.

        Raises:
            RoomNotFound
            LimitReached: the room has too many members.
        """
        count = _count(backfill)
        conv_id = await self.conv_id(caller, room)
        async with self.db.transaction() as connection:
            await self._enter(connection, caller, conv_id, count)
        return await self._standing(caller, room, conv_id)

    async def leave(self, caller: Caller, room: str) -> None:
        """Stop hearing a room; the cursor stays where it is.

        Raises:
            RoomNotFound, NotAMember
        """
        conv_id = await self.conv_id(caller, room)
        async with self.db.transaction() as connection:
            await store.lock_reader(connection, caller.agent_id)
            left = await store.leave(
                connection, realm_id=caller.realm_id, agent_id=caller.agent_id, conv_id=conv_id
            )
        if not left:
            raise NotAMember(room, leaving=True)

    async def listed(self, caller: Caller, *, mine: bool, after: str, limit: int) -> list[Listed]:
        """Rooms by name behind `after`: the caller's own, or every one of the realm."""
        rows = await store.listed(
            self.db, realm_id=caller.realm_id, agent_id=caller.agent_id, mine=mine, after=after, limit=limit
        )
        return [
            Listed(
                row["room"],
                row["title"],
                row["members"],
                row["unread"],
                row["member"],
                row["last_message_at"],
            )
            for row in rows
        ]

    async def members(self, caller: Caller, room: str, *, after: str, limit: int) -> list[Member]:
        """The members by handle behind `after`.

        Raises:
            RoomNotFound, NotAMember
        """
        conv_id = await self.member_conv_id(caller, room)
        rows = await store.members(
            self.db,
            realm_id=caller.realm_id,
            conv_id=conv_id,
            after=after,
            limit=limit,
            stale_seconds=self._stale_seconds,
        )
        return [Member(**row, you=row["agent"] == caller.handle) for row in rows]

    async def _enter(
        self, connection: Transaction, caller: Caller, conv_id: int, backfill: int | None
    ) -> None:
        await store.lock_reader(connection, caller.agent_id)
        await store.lock_room(connection, realm_id=caller.realm_id, conv_id=conv_id)
        joined = await store.join(
            connection,
            realm_id=caller.realm_id,
            agent_id=caller.agent_id,
            conv_id=conv_id,
            backfill=backfill,
        )
        if joined:
            there = await store.member_count(connection, realm_id=caller.realm_id, conv_id=conv_id)
            check_ceiling(there, self._members_per_room, limit="members_per_room", what="members of a room")

    async def _conv_id(self, caller: Caller, name: str) -> int:
        key = (caller.realm_id, name)
        if key not in self._ids:
            found = await store.room(self.db, caller.realm_id, name)
            if found is None:
                raise RoomNotFound(name)
            self._ids[key] = found["conv_id"]
        return self._ids[key]

    async def _standing(self, caller: Caller, room: str, conv_id: int) -> Standing:
        row = await store.standing(
            self.db, realm_id=caller.realm_id, agent_id=caller.agent_id, conv_id=conv_id
        )
        if row is None:
            raise NotAMember(room)
        return Standing(room, row["title"], True, row["last_read_id"], row["unread"])


def _count(backfill: Backfill) -> int | None:
    match backfill:
        case "all":
            return None
        case "none":
            return 0
        case int() if 0 <= backfill <= 1_000_000:
            return backfill
    raise BadField("backfill", "none, all, or a number from 0 to 1000000")
