"""System messages: stored within a transaction of somebody else's, so that a report and its cause are one."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.messages import PATIENCE
from api.store.tables import conv_messages

ADDRESS = """
    SELECT v.conv_id, coalesce(r.box_id, r.agent_id) AS listener
      FROM conversations v JOIN agents r ON r.realm_id = v.realm_id AND r.handle = :agent
     WHERE v.realm_id = :realm_id AND v.name = '@' || CAST(:agent AS text)
"""


async def address(connection: AsyncConnection, *, realm_id: int, agent: str) -> Any:
    """(conv_id, listener) of an agent's own address; or None."""
    return (await connection.execute(sa.text(ADDRESS), {"realm_id": realm_id, "agent": agent})).one_or_none()


async def add(connection: AsyncConnection, *, conv_id: int, **columns: Any) -> int:
    """Store a system message under its room's lock, which it waits for as briefly as `say`; its id."""
    await connection.execute(sa.text(f"SELECT {PATIENCE}"))
    await connection.execute(sa.text("SELECT pg_advisory_xact_lock(:room)"), {"room": conv_id})
    new = sa.insert(conv_messages).values(conv_id=conv_id, sender_kind="system", **columns)
    message_id: int = (await connection.execute(new.returning(conv_messages.c.id))).scalar_one()
    return message_id
