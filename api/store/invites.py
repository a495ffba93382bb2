"""Invites that nobody has redeemed yet: only the hashes of their codes."""

from __future__ import annotations

import datetime as dt

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from api.models import Invite
from api.store.tables import invites, realms

_NOW = sa.func.clock_timestamp()
_LIVE_REALM = (realms.c.expires_at > _NOW).is_not(False)


async def add(
    connection: AsyncConnection,
    *,
    realm_id: int,
    invite_id: str,
    name: str,
    code_hash: bytes,
    ttl_seconds: int,
) -> dt.datetime:
    """Keep an invite's hash; returns when it ends. Those of the realm that have ended are forgotten."""
    over = sa.delete(invites).where(invites.c.realm_id == realm_id, invites.c.expires_at <= _NOW)
    await connection.execute(over)
    ends = sa.text("clock_timestamp() + :ttl * interval '1 second'").bindparams(ttl=ttl_seconds)
    new = sa.insert(invites).values(
        realm_id=realm_id, invite_id=invite_id, name=name, hash=code_hash, expires_at=ends
    )
    expires_at: dt.datetime = (await connection.execute(new.returning(invites.c.expires_at))).scalar_one()
    return expires_at


async def page(connection: AsyncConnection, *, realm_id: int, after: str, limit: int) -> list[Invite]:
    """Invites of a realm that can be redeemed, by id, beginning after `after`."""
    wanted = (
        sa.select(
            invites.c.invite_id, invites.c.name, realms.c.name, invites.c.created_at, invites.c.expires_at
        )
        .join(realms, realms.c.realm_id == invites.c.realm_id)
        .where(invites.c.realm_id == realm_id, invites.c.invite_id > after, invites.c.expires_at > _NOW)
        .order_by(invites.c.invite_id)
        .limit(limit)
    )
    return [Invite(*row) for row in await connection.execute(wanted)]


async def revoke(connection: AsyncConnection, invite_id: str, realm_id: int | None) -> tuple[str, str] | None:
    """Delete an invite (None: of any realm); returns its (box, realm), or None when there is none."""
    gone = (
        sa.delete(invites)
        .where(
            invites.c.invite_id == invite_id,
            realms.c.realm_id == invites.c.realm_id,
            sa.true() if realm_id is None else invites.c.realm_id == realm_id,
        )
        .returning(invites.c.name, realms.c.name.label("realm"))
    )
    row = (await connection.execute(gone)).one_or_none()
    return (row.name, row.realm) if row else None


async def redeem(connection: AsyncConnection, code_hash: bytes) -> tuple[int, str, str, str] | None:
    """Delete a code's invite, if it can still be redeemed: (realm_id, realm, box, invite_id).

    Of several transactions at a time one gets it; the others wait for that one's end.
    """
    gone = (
        sa.delete(invites)
        .where(
            invites.c.hash == code_hash,
            invites.c.expires_at > _NOW,
            realms.c.realm_id == invites.c.realm_id,
            _LIVE_REALM,
        )
        .returning(invites.c.realm_id, realms.c.name.label("realm"), invites.c.name, invites.c.invite_id)
    )
    row = (await connection.execute(gone)).one_or_none()
    return (row.realm_id, row.realm, row.name, row.invite_id) if row else None
