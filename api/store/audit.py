"""What the operator did, for good."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.tables import audit_log


async def note(connection: AsyncConnection, *, act: str, target: str, realm: str | None) -> None:
    """Write an act down, in the transaction of the act."""
    await connection.execute(sa.insert(audit_log).values(act=act, target=target, realm=realm))
