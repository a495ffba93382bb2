"""The one namespace that boxes, people and roles of a realm share."""

from __future__ import annotations

from typing import Literal

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.tables import names

_SPAN = """
    CASE WHEN :kind = 'role' THEN namespace(:realm_id || '/' || :name, :realm_id || '/' || :name, '[]')
         ELSE namespace(:realm_id || '/' || :name, :realm_id || '/' || :name || '.', '[)') END
"""


async def claim(
    connection: AsyncConnection, *, realm_id: int, name: str, kind: Literal["box", "person", "role"]
) -> bool:
    """Take a name; False when it, or what it would span, is in use. Waits for a rival's transaction."""
    new = insert(names).values(realm_id=realm_id, name=name, kind=kind)
    return await connection.scalar(new.on_conflict_do_nothing().returning(names.c.name)) is not None


async def in_the_way(
    connection: AsyncConnection, *, realm_id: int, name: str, kind: Literal["box", "person", "role"]
) -> list[tuple[str, str]]:
    """The (name, kind) of each name whose span overlaps the wanted one's."""
    found = sa.text(f"SELECT name, kind FROM names WHERE span && {_SPAN} ORDER BY name")
    values = {"realm_id": str(realm_id), "name": name, "kind": kind}
    return [(row.name, row.kind) for row in await connection.execute(found, values)]


async def free(
    connection: AsyncConnection, *, realm_id: int, name: str, kind: Literal["box", "person"]
) -> bool:
    """Give a name up, and its tokens with it; False when there is none of this kind."""
    mine = (names.c.realm_id == realm_id) & (names.c.name == name) & (names.c.kind == kind)
    return (await connection.execute(sa.delete(names).where(mine))).rowcount > 0
