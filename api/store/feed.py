"""The feed: everything that an agent may hear, behind a position that the client holds."""

from __future__ import annotations

from typing import Any

from api.store.door import Door
from api.store.messages import FROM_MESSAGE, MESSAGE
from api.store.pages import MORE, page
from api.store.predicates import DELIVERABLE, MEMBER

ENDS = f"""
    SELECT c.conv_id, newest.id AS newest_id
      FROM conv_members c
      CROSS JOIN LATERAL (SELECT x.id FROM conv_messages x
                           WHERE x.realm_id = c.realm_id AND x.conv_id = c.conv_id
                           ORDER BY x.id DESC LIMIT 1) newest
     WHERE c.realm_id = $1 AND c.agent_id = $2 AND {MEMBER}
"""

_PARTS = f"""
    SELECT m.id, m.size
      FROM unnest($3::bigint[], $4::bigint[], $5::bigint[]) AS part (conv_id, after_id, newest_id)
      JOIN agents r ON r.realm_id = $1 AND r.agent_id = $2
      CROSS JOIN LATERAL (
          SELECT m.id, m.size FROM conv_messages m
           WHERE m.realm_id = $1 AND m.conv_id = part.conv_id
             AND m.id > part.after_id AND m.id <= part.newest_id
             AND {DELIVERABLE}
           ORDER BY m.id LIMIT $6::int + 1) m
     ORDER BY m.id LIMIT $6::int + 1
"""
FEED = f"""
    {page(_PARTS, order="id", limit="$6")}
    SELECT {MESSAGE}, m.conv_id, {MORE}
      FROM page JOIN conv_messages m ON m.realm_id = $1 AND m.id = page.id {FROM_MESSAGE}
     ORDER BY m.id
"""


async def ends(db: Door, *, realm_id: int, agent_id: int) -> dict[int, int]:
    """The newest message of each of the agent's rooms: conv_id -> id."""
    return {row["conv_id"]: row["newest_id"] for row in await db.fetch(ENDS, realm_id, agent_id)}


async def between(
    db: Door, *, realm_id: int, agent_id: int, parts: list[tuple[int, int, int]], limit: int
) -> list[Any]:
    """A page of messages for the agent within parts of rooms (conv_id, after, up to), by id."""
    conv_ids, after, newest = zip(*parts, strict=True)
    return await db.fetch(FEED, realm_id, agent_id, list(conv_ids), list(after), list(newest), limit)
