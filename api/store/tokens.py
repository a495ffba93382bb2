"""Bearer tokens: only their hashes are kept."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.tables import names, realms, tokens

_NOW = sa.func.clock_timestamp()

_FREE_SLOT = """
    SELECT slot FROM (VALUES (1), (2)) AS s (slot)
     WHERE NOT EXISTS (SELECT FROM tokens t WHERE t.realm_id = :realm_id AND t.name = :name
                          AND t.slot = s.slot AND t.revoked_at IS NULL)
     ORDER BY slot LIMIT 1
"""


async def lock_holder(connection: AsyncConnection, *, realm_id: int, name: str, kind: str) -> bool:
    """Let one transaction at a time make tokens of a name; False when there is none of this kind."""
    mine = (names.c.realm_id == realm_id) & (names.c.name == name) & (names.c.kind == kind)
    found = sa.select(names.c.name).where(mine).with_for_update(key_share=True)
    return await connection.scalar(found) is not None


async def free_slot(connection: AsyncConnection, *, realm_id: int, name: str) -> int | None:
    """The slot for one more token; None when as many as may be are valid. Expired ones make room."""
    await connection.execute(
        sa.update(tokens)
        .where(
            tokens.c.realm_id == realm_id,
            tokens.c.name == name,
            tokens.c.revoked_at.is_(None),
            tokens.c.expires_at <= _NOW,
        )
        .values(revoked_at=tokens.c.expires_at)
    )
    slot: int | None = await connection.scalar(sa.text(_FREE_SLOT), {"realm_id": realm_id, "name": name})
    return slot


async def add(
    connection: AsyncConnection, *, realm_id: int, name: str, token_id: str, token_hash: bytes, slot: int
) -> None:
    """Keep a token's hash."""
    values = {"realm_id": realm_id, "name": name, "token_id": token_id, "hash": token_hash, "slot": slot}
    await connection.execute(sa.insert(tokens).values(values))


async def revoke(connection: AsyncConnection, token_id: str) -> tuple[str, str] | None:
    """End a token; returns its (name, realm), or None when there never was one. Twice is once."""
    ended = (
        sa.update(tokens)
        .where(tokens.c.token_id == token_id, tokens.c.realm_id == realms.c.realm_id)
        .values(revoked_at=sa.func.coalesce(tokens.c.revoked_at, _NOW))
        .returning(tokens.c.name, realms.c.name.label("realm"))
    )
    row = (await connection.execute(ended)).one_or_none()
    return (row.name, row.realm) if row else None
