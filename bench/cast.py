"""Who speaks where: the boxes, sessions and rooms of a run, made over REST as agents make them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import aiohttp

from bench.database import rows
from bench.load import LoadFailed
from bench.machine import Machine

BOXES = 8
SESSIONS = 64
ROOMS = 64
ROOM_MEMBERS = 4
HOT_MEMBERS = 33


@dataclass(frozen=True)
class Session:
    """One who speaks."""

    token: str
    handle: str


@dataclass(frozen=True)
class Place:
    """A row of rooms, their numbers in a row as well; room n has the sessions n, n + 1, …, in a ring.

    Attributes:
        rooms: their names.
        members: how many sessions are in each.
        first_room: the first one's conv_id.
    """

    rooms: tuple[str, ...]
    members: int
    first_room: int


@dataclass(frozen=True)
class Cast:
    """All of them.

    Attributes:
        sessions: spread over the boxes in turn; their agent_ids are in a row.
        realm_id, box_id, first_sender: as the tables have them.
        many: sixty-four rooms of a few.
        hot: one room of all who speak at a time, and one more.
    """

    sessions: tuple[Session, ...]
    realm_id: int
    box_id: int
    first_sender: int
    many: Place
    hot: Place

    def speakers(self, place: Place) -> list[tuple[Session, str]]:
        """Every session in every room of a place."""
        return [
            (self.sessions[(number + step) % SESSIONS], room)
            for number, room in enumerate(place.rooms)
            for step in range(place.members)
        ]


def assemble(machine: Machine) -> Cast:
    """Make them.

    Raises:
        LoadFailed: the record refused something.
    """
    return asyncio.run(_assemble(machine))


async def _assemble(machine: Machine) -> Cast:
    async with aiohttp.ClientSession(machine.url, trust_env=False) as http:
        admin = {"Authorization": f"Bearer {machine.operators_token()}"}
        tokens = [
            (await _post(http, "/v1/admin/boxes", admin, name=f"bench{number}"))["token"]
            for number in range(1, BOXES + 1)
        ]
        sessions = [await _session(http, tokens[number % BOXES]) for number in range(SESSIONS)]
        many = [f"room{number}" for number in range(1, ROOMS + 1)]
        for founder, room in zip((*sessions, sessions[0]), (*many, "hot"), strict=True):
            await _post(http, "/v1/rooms", _headers(founder), name=room)
        for number, room in enumerate(many):
            await _join(http, room, [sessions[(number + step) % SESSIONS] for step in range(ROOM_MEMBERS)])
        await _join(http, "hot", sessions[:HOT_MEMBERS])
    return await _cast(machine, sessions, many)


async def _cast(machine: Machine, sessions: list[Session], many: list[str]) -> Cast:
    names = [session.handle for session in sessions]
    agents = await rows(
        machine.dsn,
        "SELECT a.agent_id, a.realm_id, a.box_id FROM unnest($1::text[]) WITH ORDINALITY AS n (handle, place)"
        " JOIN agents a USING (handle) ORDER BY n.place",
        names,
    )
    rooms = await rows(
        machine.dsn,
        "SELECT v.conv_id FROM unnest($1::text[]) WITH ORDINALITY AS n (name, place)"
        " JOIN conversations v USING (name) ORDER BY n.place",
        [*many, "hot"],
    )
    first_sender = _first([row["agent_id"] for row in agents])
    first_room = _first([row["conv_id"] for row in rooms])
    return Cast(
        sessions=tuple(sessions),
        realm_id=agents[0]["realm_id"],
        box_id=agents[0]["box_id"],
        first_sender=first_sender,
        many=Place(tuple(many), ROOM_MEMBERS, first_room),
        hot=Place(("hot",), HOT_MEMBERS, first_room + ROOMS),
    )


def _first(numbers: list[int]) -> int:
    """The first of numbers in a row; pgbench can count, but cannot look up."""
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        raise LoadFailed("The record gave numbers that are not in a row, although nobody else was there.")
    return numbers[0]


def _headers(session: Session) -> dict[str, str]:
    return {"Authorization": f"Bearer {session.token}", "X-Tyode-Agent": session.handle}


async def _session(http: aiohttp.ClientSession, token: str) -> Session:
    answer = await _post(http, "/v1/checkin", {"Authorization": f"Bearer {token}"})
    return Session(token, answer["agent"])


async def _join(http: aiohttp.ClientSession, room: str, members: list[Session]) -> None:
    for member in members:
        await _post(http, f"/v1/rooms/{room}/join", _headers(member))


async def _post(http: aiohttp.ClientSession, path: str, headers: dict[str, str], **body: str) -> Any:
    async with http.post(path, json=body, headers=headers) as response:
        if response.status >= 400:
            raise LoadFailed(f"POST {path}: {response.status} {(await response.text())[:500]}")
        return await response.json()
