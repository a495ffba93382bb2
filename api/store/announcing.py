"""NOTIFY between replicas: which rooms have moved. After the commit, on a connection of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from api.store.door import Door

CHANNEL = "readyroom_moved"
NERVE = "readyroom_nerve"
"""Where the replicas of the embedded nerve pass nudges on, if they do it here."""

PAYLOAD_ROOMS = 300
"""A payload has to stay below 8,000 bytes."""

NAMES = "SELECT agent_id, handle FROM agents WHERE realm_id = $1 AND agent_id = ANY ($2::bigint[])"


def told(rooms: Collection[int]) -> Iterator[str]:
    """The announcements that say that these rooms have moved."""
    ids = [str(room) for room in rooms]
    for first in range(0, len(ids), PAYLOAD_ROOMS):
        yield " ".join(ids[first : first + PAYLOAD_ROOMS])


def heard(payload: str) -> Iterator[int]:
    """The rooms of an announcement; anything else is passed over."""
    return (int(word) for word in payload.split() if word.isdecimal())


async def names(db: Door, realm_id: int, agent_ids: list[int]) -> dict[int, str]:
    """What boxes and people are called; names never change."""
    return {row["agent_id"]: row["handle"] for row in await db.fetch(NAMES, realm_id, agent_ids)}
