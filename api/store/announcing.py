"""NOTIFY between replicas: which rooms have moved. After the commit, in a statement of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from api.store.door import Door

CHANNEL = "readyroom_moved"
PAYLOAD_ROOMS = 300
"""A payload has to stay below 8,000 bytes."""

NAMES = "SELECT agent_id, handle FROM agents WHERE realm_id = $1 AND agent_id = ANY ($2::bigint[])"


async def announce(db: Door, rooms: Collection[int]) -> None:
    """Tell every replica that these rooms have moved; best effort."""
    ids = [str(room) for room in rooms]
    for first in range(0, len(ids), PAYLOAD_ROOMS):
        await db.fetch("SELECT pg_notify($1, $2)", CHANNEL, " ".join(ids[first : first + PAYLOAD_ROOMS]))


def heard(payload: str) -> Iterator[int]:
    """The rooms of an announcement; anything else is passed over."""
    return (int(word) for word in payload.split() if word.isdecimal())


async def names(db: Door, realm_id: int, agent_ids: list[int]) -> dict[int, str]:
    """What boxes and people are called; names never change."""
    return {row["agent_id"]: row["handle"] for row in await db.fetch(NAMES, realm_id, agent_ids)}
