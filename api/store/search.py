"""Search: full text over what an agent may read. The words are those of migration 0002."""

from __future__ import annotations

import datetime as dt
from typing import Any

from api.store.door import Door
from api.store.messages import FROM_MESSAGE, MESSAGE, READABLE
from api.store.pages import MORE, page

CANDIDATES = 2000
"""Of more matches than this, only the newest are ranked."""

RANKED_CHARACTERS = 1000
"""Of each candidate: taking the words of all of a large body costs a hundred times as much."""

# By conv_messages_words_idx alone: with another index, or without any, the words of every body that is looked
# at are taken anew. So nothing that another index could serve may stand here. (OFFSET 0 below: the planner
# cannot know how many match, and would compare all with all where it took them for few.)
_MATCHING = """
    SELECT m.id FROM conv_messages m
     WHERE message_words(m.body, m.payload) @@ searched_words($3) AND m.realm_id + 0 = $1
"""
_RANK = f"""
    ts_rank_cd(
        message_words(left(coalesce(m.body, m.payload ->> 'summary'), {RANKED_CHARACTERS}), NULL),
        searched_words($3))
"""
_FOUND = f"""
    WITH matching AS MATERIALIZED ({_MATCHING})
    SELECT * FROM (
        SELECT m.id, m.size, {_RANK} AS rank
          FROM matching
          CROSS JOIN LATERAL (
            SELECT * FROM conv_messages WHERE realm_id = $1 AND id = matching.id OFFSET 0) m
          JOIN conversations v ON v.realm_id = m.realm_id AND v.conv_id = m.conv_id
          JOIN agents r ON r.realm_id = m.realm_id AND r.agent_id = $2
         WHERE {READABLE}
           AND ($4::text IS NULL OR v.name = $4)
           AND ($5::text IS NULL OR m.sender_id = (
                SELECT agent_id FROM agents WHERE realm_id = $1 AND handle = $5))
           AND ($6::text IS NULL OR m.type = $6)
           AND ($7::timestamptz IS NULL OR m.created_at >= $7)
         ORDER BY matching.id DESC LIMIT {CANDIDATES}
    ) found
     ORDER BY rank DESC, id DESC OFFSET $8 LIMIT $9::int + 1
"""
SEARCH = f"""
    {page(_FOUND, order="rank DESC, id DESC", limit="$9")}
    SELECT {MESSAGE}, page.rank, {MORE}
      FROM page JOIN conv_messages m ON m.realm_id = $1 AND m.id = page.id {FROM_MESSAGE}
     ORDER BY page.place
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
    """A page of messages that hold all the words, best first, each with its rank."""
    return await db.fetch(SEARCH, realm_id, agent_id, words, room, sender, type_, since, offset, limit)
