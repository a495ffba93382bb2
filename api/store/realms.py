"""Realms, and the boxes and people in them."""

from __future__ import annotations

from typing import Literal

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from api.models import Named, Realm
from api.store import tokens
from api.store.tables import names, realms

_REALM = (
    realms.c.name,
    realms.c.created_at,
    realms.c.expires_at,
    realms.c.keep_days,
    realms.c.anonymous_listeners,
)


async def realm_id(connection: AsyncConnection, name: str) -> int | None:
    """The key of a realm that has not expired."""
    alive = (realms.c.expires_at > sa.func.clock_timestamp()).is_not(False)
    return await connection.scalar(sa.select(realms.c.realm_id).where(realms.c.name == name, alive))


async def add(
    connection: AsyncConnection,
    *,
    name: str,
    ttl_seconds: int | None,
    keep_days: int | None,
    anonymous_listeners: bool,
) -> Realm | None:
    """A new realm; None when the name is in use."""
    ends = sa.text("clock_timestamp() + :ttl * interval '1 second'").bindparams(ttl=ttl_seconds)
    expires_at = ends if ttl_seconds is not None else None
    new = insert(realms).values(
        name=name, expires_at=expires_at, keep_days=keep_days, anonymous_listeners=anonymous_listeners
    )
    row = (await connection.execute(new.on_conflict_do_nothing().returning(*_REALM))).one_or_none()
    return Realm(*row) if row else None


async def keep(connection: AsyncConnection, name: str, *, days: int | None) -> Realm | None:
    """Set for how many days a realm's messages are kept; None when there is no such realm."""
    changed = sa.update(realms).where(realms.c.name == name).values(keep_days=days).returning(*_REALM)
    row = (await connection.execute(changed)).one_or_none()
    return Realm(*row) if row else None


async def let_in(connection: AsyncConnection, name: str, *, anonymous: bool) -> tuple[int, Realm] | None:
    """Set whether a realm lets anonymous listeners in; its key, or None when there is no such realm."""
    wanted = sa.update(realms).where(realms.c.name == name).values(anonymous_listeners=anonymous)
    row = (await connection.execute(wanted.returning(realms.c.realm_id, *_REALM))).one_or_none()
    return (row[0], Realm(*row[1:])) if row else None


async def page(connection: AsyncConnection, *, after: str, limit: int) -> list[Realm]:
    """Realms by name, beginning after `after`."""
    wanted = sa.select(*_REALM).where(realms.c.name > after).order_by(realms.c.name).limit(limit)
    return [Realm(*row) for row in await connection.execute(wanted)]


async def remove(connection: AsyncConnection, name: str) -> int | None:
    """Delete a realm with everything in it; returns the key that it had."""
    gone = sa.delete(realms).where(realms.c.name == name).returning(realms.c.realm_id)
    return await connection.scalar(gone)


async def sweep(connection: AsyncConnection) -> list[str]:
    """Delete every realm whose time is over, with everything in it; their names."""
    over = sa.delete(realms).where(realms.c.expires_at <= sa.func.clock_timestamp())
    return list(await connection.scalars(over.returning(realms.c.name)))


async def holders(
    connection: AsyncConnection, *, realm: str, kind: Literal["box", "person"], after: str, limit: int
) -> list[Named]:
    """Boxes or people of a realm by name, beginning after `after`, each with its valid tokens."""
    wanted = (
        sa.select(realms.c.realm_id, names.c.name, names.c.created_at)
        .join(realms, realms.c.realm_id == names.c.realm_id)
        .where(realms.c.name == realm, names.c.kind == kind, names.c.name > after)
        .order_by(names.c.name)
        .limit(limit)
    )
    rows = (await connection.execute(wanted)).all()
    if not rows:
        return []
    named = [row.name for row in rows]
    held = await tokens.held(connection, realm_id=rows[0].realm_id, names=named, kind=kind)
    return [Named(row.name, realm, row.created_at, tuple(held.get(row.name, ()))) for row in rows]
