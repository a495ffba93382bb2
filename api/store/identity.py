"""Who holds a token, and which session a handle is: the two look-ups behind every call."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from api.models import Caller, Holder, Session
from api.store.door import Door

CHANNEL = "readyroom_identity"
"""Says what no replica may go on believing; `Identity.forget` lists the words."""

# tokens_hash_key
HOLDER = """
    SELECT t.realm_id, r.name AS realm, t.name, n.kind, t.token_id, a.agent_id, a.addresses,
           EXTRACT(epoch FROM LEAST(t.expires_at, r.expires_at) - clock_timestamp())::float8 AS valid_seconds
      FROM tokens t
      JOIN realms r ON r.realm_id = t.realm_id
      JOIN names n ON n.realm_id = t.realm_id AND n.name = t.name
      JOIN agents a ON a.realm_id = t.realm_id AND a.handle = t.name
     WHERE t.hash = $1 AND t.revoked_at IS NULL AND a.retired_at IS NULL
       AND (LEAST(t.expires_at, r.expires_at) > clock_timestamp()) IS NOT FALSE
"""

# agents_realm_id_handle_key
SESSION = """
    SELECT agent_id, handle, box_id, role, addresses, retired_at IS NOT NULL AS retired
      FROM agents WHERE realm_id = $1 AND handle = $2 AND kind = 'session'
"""

VALID = """
    SELECT t.token_id FROM tokens t JOIN realms r ON r.realm_id = t.realm_id
     WHERE t.revoked_at IS NULL AND (LEAST(t.expires_at, r.expires_at) > clock_timestamp()) IS NOT FALSE
"""


async def holder(db: Door, token_hash: bytes) -> Holder | None:
    """Who holds the token; None for an unknown, revoked or expired one."""
    rows = await db.fetch(HOLDER, token_hash)
    if not rows:
        return None
    row = rows[0]
    is_box = row["kind"] == "box"
    bare = Caller(
        realm_id=row["realm_id"],
        realm=row["realm"],
        agent_id=row["agent_id"],
        handle=row["name"],
        kind=row["kind"],
        box_id=row["agent_id"] if is_box else None,
        box=row["name"] if is_box else None,
        name=row["name"],
        token_id=row["token_id"],
        addresses=tuple(row["addresses"]),
    )
    return Holder(bare, row["valid_seconds"])


async def session(db: Door, *, realm_id: int, handle: str) -> Session | None:
    """The session that has this handle, of whichever box; None when there never was one."""
    rows = await db.fetch(SESSION, realm_id, handle)
    if not rows:
        return None
    row = rows[0]
    return Session(
        agent_id=row["agent_id"],
        handle=row["handle"],
        box_id=row["box_id"],
        role=row["role"],
        addresses=tuple(row["addresses"]),
        retired=row["retired"],
    )


async def valid_tokens(db: Door) -> frozenset[str]:
    """The ids of all tokens that are valid now."""
    return frozenset(row["token_id"] for row in await db.fetch(VALID))


async def beat(db: Door) -> None:
    """Say something that means nothing: who hears it would hear of a revocation, too."""
    await db.fetch("SELECT pg_notify($1, 'beat')", CHANNEL)


async def tell(connection: AsyncConnection, word: str) -> None:
    """Say `word` to every replica, this one too, if and when the transaction is committed."""
    await connection.execute(sa.select(sa.func.pg_notify(CHANNEL, word)))
