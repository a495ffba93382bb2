"""Bearer tokens, of boxes, people and nerve clients: only their hashes are kept."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from api.models import ValidToken
from api.store.tables import names, nerve_clients, nerve_tokens, realms, tokens

NERVE_CLIENT = "nerve client"
"""The kind of those who hold nerve tokens."""

_NOW = sa.func.clock_timestamp()

_FREE_SLOT = """
    SELECT slot FROM (VALUES (1), (2)) AS s (slot)
     WHERE NOT EXISTS (SELECT FROM {table} t WHERE t.realm_id = :realm_id AND t.name = :name
                          AND t.slot = s.slot AND t.revoked_at IS NULL)
     ORDER BY slot LIMIT 1
"""


async def lock_holder(connection: AsyncConnection, *, realm_id: int, name: str, kind: str) -> bool:
    """Let one transaction at a time make tokens of a name; False when there is none of this kind."""
    holders = nerve_clients if kind == NERVE_CLIENT else names
    mine = (holders.c.realm_id == realm_id) & (holders.c.name == name)
    if holders is names:
        mine &= names.c.kind == kind
    found = sa.select(holders.c.name).where(mine).with_for_update(key_share=True)
    return await connection.scalar(found) is not None


async def free_slot(connection: AsyncConnection, *, realm_id: int, name: str, kind: str) -> int | None:
    """The slot for one more token; None when as many as may be are valid. Expired ones make room."""
    table = _kept(kind)
    await connection.execute(
        sa.update(table)
        .where(
            table.c.realm_id == realm_id,
            table.c.name == name,
            table.c.revoked_at.is_(None),
            table.c.expires_at <= _NOW,
        )
        .values(revoked_at=table.c.expires_at)
    )
    free = sa.text(_FREE_SLOT.format(table=table.name))
    slot: int | None = await connection.scalar(free, {"realm_id": realm_id, "name": name})
    return slot


async def add(
    connection: AsyncConnection,
    *,
    realm_id: int,
    name: str,
    kind: str,
    token_id: str,
    token_hash: bytes,
    slot: int,
) -> None:
    """Keep a token's hash."""
    values = {"realm_id": realm_id, "name": name, "token_id": token_id, "hash": token_hash, "slot": slot}
    await connection.execute(sa.insert(_kept(kind)).values(values))


async def revoke(connection: AsyncConnection, token_id: str, realm_id: int | None) -> tuple[str, str] | None:
    """End a token (None: of any realm); returns its (name, realm), or None when there never was one.

    Twice is once.
    """
    for table in (tokens, nerve_tokens):
        ended = (
            sa.update(table)
            .where(
                table.c.token_id == token_id,
                table.c.realm_id == realms.c.realm_id,
                sa.true() if realm_id is None else table.c.realm_id == realm_id,
            )
            .values(revoked_at=sa.func.coalesce(table.c.revoked_at, _NOW))
            .returning(table.c.name, realms.c.name.label("realm"))
        )
        row = (await connection.execute(ended)).one_or_none()
        if row is not None:
            return row.name, row.realm
    return None


async def held(
    connection: AsyncConnection, *, realm_id: int, names: Sequence[str], kind: str
) -> dict[str, list[ValidToken]]:
    """The valid tokens of these names, oldest first."""
    table = _kept(kind)
    valid = (
        sa.select(table.c.name, table.c.token_id, table.c.created_at)
        .where(
            table.c.realm_id == realm_id,
            table.c.name.in_(names),
            table.c.revoked_at.is_(None),
            (table.c.expires_at > _NOW).is_not(False),
        )
        .order_by(table.c.created_at)
    )
    found: dict[str, list[ValidToken]] = {}
    for row in await connection.execute(valid):
        found.setdefault(row.name, []).append(ValidToken(row.token_id, row.created_at))
    return found


def _kept(kind: str) -> sa.Table:
    """Where tokens of this kind lie."""
    return nerve_tokens if kind == NERVE_CLIENT else tokens
