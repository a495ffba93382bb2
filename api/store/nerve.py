"""Who may be on the nerve: tokens, tickets and realms; and the nerve's own clients."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from api.models import Admitted, NerveClient
from api.store import tokens as tokens_store
from api.store.door import Door
from api.store.tables import nerve_clients, nerve_tickets, nerve_tokens, realms

_LIVE = "(LEAST(t.expires_at, r.expires_at) > clock_timestamp()) IS NOT FALSE AND t.revoked_at IS NULL"

# What a box or person is admitted as, by a token of theirs that is valid.
_HOLDER = f"""
    SELECT r.name AS realm, t.name, 'consumer' AS role, t.token_id, 'holder' AS kind
      FROM tokens t
      JOIN realms r ON r.realm_id = t.realm_id
      JOIN agents a ON a.realm_id = t.realm_id AND a.handle = t.name AND a.retired_at IS NULL
     WHERE {_LIVE}
"""

_CLIENT = f"""
    SELECT r.name AS realm, t.name, c.role, t.token_id, 'client' AS kind
      FROM nerve_tokens t
      JOIN realms r ON r.realm_id = t.realm_id
      JOIN nerve_clients c ON c.realm_id = t.realm_id AND c.name = t.name
     WHERE {_LIVE}
"""

# No token bears an id like this one, and a realm that is made anew under its old name has another.
_ANONYMOUS = """
    SELECT r.name AS realm, '' AS name, 'consumer' AS role, 'anonymous_' || r.realm_id AS token_id,
           'anonymous' AS kind
      FROM realms r
     WHERE r.anonymous_listeners AND (r.expires_at > clock_timestamp()) IS NOT FALSE
"""

# tokens_hash_key, nerve_tokens_hash_key
BY_TOKEN = f"{_HOLDER} AND t.hash = $1 UNION ALL {_CLIENT} AND t.hash = $1"

# nerve_tickets_hash_key; of several at a time one gets it
BY_TICKET = f"""
    WITH used AS (DELETE FROM nerve_tickets WHERE hash = $1 AND expires_at > clock_timestamp()
                  RETURNING realm_id, token_id)
    {_HOLDER} AND (t.realm_id, t.token_id) IN (SELECT realm_id, token_id FROM used)
"""

# realms_name_key
BY_REALM = f"{_ANONYMOUS} AND r.name = $1"

VALID = f"""
    SELECT token_id FROM ({_HOLDER} UNION ALL {_CLIENT} UNION ALL {_ANONYMOUS}) admitted
     WHERE token_id = ANY ($1::text[])
"""


# nerve_clients_pkey, realms_name_key
TAKEN = """
    SELECT EXISTS (SELECT FROM nerve_clients c JOIN realms r ON r.realm_id = c.realm_id
                    WHERE r.name = $1 AND c.name = $2) AS taken
"""


async def admitted_by_token(db: Door, token_hash: bytes) -> Admitted | None:
    """Whom a token admits; None for an unknown, revoked or expired one."""
    return _admitted(await db.fetch(BY_TOKEN, token_hash))


async def admitted_by_ticket(db: Door, ticket_hash: bytes) -> Admitted | None:
    """Whom a ticket admits, which is used up by it; None for an unknown, used or expired one."""
    return _admitted(await db.fetch(BY_TICKET, ticket_hash))


async def admitted_by_realm(db: Door, realm: str) -> Admitted | None:
    """What a realm admits strangers as; None when it does not, or is none."""
    return _admitted(await db.fetch(BY_REALM, realm))


async def valid(db: Door, token_ids: Collection[str]) -> set[str]:
    """Those of `token_ids` that admit somebody now."""
    return {row["token_id"] for row in await db.fetch(VALID, list(token_ids))}


async def is_taken(db: Door, realm: str, name: str) -> bool:
    """Whether a nerve client of the realm has this name."""
    return bool((await db.fetch(TAKEN, realm, name))[0]["taken"])


async def add_ticket(
    connection: AsyncConnection, *, realm_id: int, token_id: str, ticket_hash: bytes, seconds: int
) -> None:
    """Keep a ticket's hash. Those of the realm that nobody used in time are forgotten."""
    over = nerve_tickets.c.expires_at <= sa.func.clock_timestamp()
    await connection.execute(sa.delete(nerve_tickets).where(nerve_tickets.c.realm_id == realm_id, over))
    ends = sa.text("clock_timestamp() + :seconds * interval '1 second'").bindparams(seconds=seconds)
    new = sa.insert(nerve_tickets).values(
        realm_id=realm_id, hash=ticket_hash, token_id=token_id, expires_at=ends
    )
    await connection.execute(new)


async def add_client(connection: AsyncConnection, *, realm_id: int, name: str, role: str) -> bool:
    """Make a nerve client; False when the name is in use."""
    new = insert(nerve_clients).values(realm_id=realm_id, name=name, role=role).on_conflict_do_nothing()
    return await connection.scalar(new.returning(nerve_clients.c.name)) is not None


async def remove_client(connection: AsyncConnection, *, realm_id: int, name: str) -> list[str] | None:
    """Delete a nerve client with its tokens; the ids of those, or None when there is no such client."""
    mine = (nerve_tokens.c.realm_id == realm_id) & (nerve_tokens.c.name == name)
    token_ids = list(await connection.scalars(sa.select(nerve_tokens.c.token_id).where(mine)))
    gone = sa.delete(nerve_clients).where(nerve_clients.c.realm_id == realm_id, nerve_clients.c.name == name)
    return token_ids if await connection.scalar(gone.returning(nerve_clients.c.name)) is not None else None


async def clients(connection: AsyncConnection, *, realm_id: int, after: str, limit: int) -> list[NerveClient]:
    """Nerve clients of a realm by name, beginning after `after`, each with its valid tokens."""
    wanted = (
        sa.select(nerve_clients.c.name, realms.c.name, nerve_clients.c.role, nerve_clients.c.created_at)
        .join(realms, realms.c.realm_id == nerve_clients.c.realm_id)
        .where(nerve_clients.c.realm_id == realm_id, nerve_clients.c.name > after)
        .order_by(nerve_clients.c.name)
        .limit(limit)
    )
    rows = (await connection.execute(wanted)).all()
    held = await tokens_store.held(
        connection, realm_id=realm_id, names=[row[0] for row in rows], kind=tokens_store.NERVE_CLIENT
    )
    return [NerveClient(*row, tuple(held.get(row[0], ()))) for row in rows]


def _admitted(rows: list[Any]) -> Admitted | None:
    return Admitted(**rows[0]) if rows else None
