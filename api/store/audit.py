"""What the operator did, for good."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from api.models import Act
from api.store.tables import audit_log


async def note(connection: AsyncConnection, *, act: str, target: str, realm: str | None) -> None:
    """Write an act down, in the transaction of the act."""
    await connection.execute(sa.insert(audit_log).values(act=act, target=target, realm=realm))


async def knows(connection: AsyncConnection, realm: str) -> bool:
    """Whether anything was ever done in a realm."""
    acts = sa.exists().where(audit_log.c.realm == realm)
    return bool(await connection.scalar(sa.select(acts)))


async def page(connection: AsyncConnection, *, realm: str | None, before: int, limit: int) -> list[Act]:
    """Acts with a smaller id than `before`, newest first."""
    columns = (audit_log.c.audit_id, audit_log.c.at, audit_log.c.act, audit_log.c.target, audit_log.c.realm)
    wanted = sa.select(*columns).where(audit_log.c.audit_id < before)
    if realm is not None:
        wanted = wanted.where(audit_log.c.realm == realm)
    newest = wanted.order_by(audit_log.c.audit_id.desc()).limit(limit)
    return [Act(*row) for row in await connection.execute(newest)]
