"""Search: full text over what an agent may read. The words are those of migration 0002."""

from __future__ import annotations

import datetime as dt
from typing import Any

from api.store.door import Door
from api.store.messages import FROM_MESSAGE, MESSAGE, READABLE

CANDIDATES = 2000
"""Of more matches than this, only the newest are ranked."""

# conv_messages_words_idx
SEARCH = f"""
    WITH found AS MATERIALIZED (
        SELECT m.id, ts_rank_cd(message_words(m.body, m.payload), searched_words($3)) AS rank
          FROM conv_messages m
          JOIN conversations v ON v.realm_id = m.realm_id AND v.conv_id = m.conv_id
          JOIN agents r ON r.realm_id = m.realm_id AND r.agent_id = $2
         WHERE m.realm_id = $1 AND message_words(m.body, m.payload) @@ searched_words($3) AND {READABLE}
           AND ($4::text IS NULL OR v.name = $4)
           AND ($5::text IS NULL OR m.sender_id = (
                SELECT agent_id FROM agents WHERE realm_id = $1 AND handle = $5))
           AND ($6::text IS NULL OR m.type = $6)
           AND ($7::timestamptz IS NULL OR m.created_at >= $7)
         ORDER BY m.id DESC LIMIT {CANDIDATES}
    )
    SELECT {MESSAGE}, found.rank
      FROM found JOIN conv_messages m ON m.realm_id = $1 AND m.id = found.id {FROM_MESSAGE}
     ORDER BY found.rank DESC, m.id DESC
    OFFSET $8 LIMIT $9
"""


async def search(
    db: Door,
    *,
    realm_id: int,
    agent_id: int,
    words: str,
    room: str | None,
    sender: str | None,
    type_: str | None,
    since: dt.datetime | None,
    offset: int,
    limit: int,
) -> list[Any]:
    """Messages that hold all the words, best first, each with its rank."""
    return await db.fetch(SEARCH, realm_id, agent_id, words, room, sender, type_, since, offset, limit)
