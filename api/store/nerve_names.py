"""Which nerve token goes by which producer's name: a row each, and each change one statement on it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.door import Door

LINKS = 256
"""Of one name, the newest; a link that was killed stays among them for as long as others hold the name."""

# Whoever comes second waits for the row of whoever came first, and then sees it.
_UNLESS_ANOTHERS = f"""
        ON CONFLICT (realm_id, name) DO UPDATE
       SET holder = excluded.holder, expires_at = excluded.expires_at,
           links = CASE WHEN n.holder = excluded.holder AND n.expires_at > clock_timestamp()
                        THEN array_cat(array_remove(n.links[cardinality(n.links) - {LINKS - 2}:],
                                                    excluded.links[1]), excluded.links)
                        ELSE excluded.links END
     WHERE n.holder = excluded.holder OR n.expires_at <= clock_timestamp()
    RETURNING n.name
"""

# The name of a nerve token is its own, whether it is there or not.
CLAIM = f"""
    INSERT INTO nerve_names AS n (realm_id, name, holder, links, expires_at)
    SELECT realm_id, $2, $3, ARRAY[$4], clock_timestamp() + $5::float8 * interval '1 second'
      FROM realms
     WHERE realms.name = $1
       AND NOT EXISTS (SELECT FROM nerve_clients c WHERE c.realm_id = realms.realm_id AND c.name = $2)
    {_UNLESS_ANOTHERS}
"""

RESERVE = f"""
    INSERT INTO nerve_names AS n (realm_id, name, holder, links, expires_at)
    VALUES (:realm_id, :name, :holder, '{{}}',
            clock_timestamp() + CAST(:seconds AS float8) * interval '1 second')
    {_UNLESS_ANOTHERS}
"""

# Locked in one order, for two replicas may renew the same ones.
RENEW = """
    WITH held AS (
        SELECT n.realm_id, n.name, wanted.number
          FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])
               WITH ORDINALITY wanted(realm, name, holder, link, number)
          JOIN realms ON realms.name = wanted.realm
          JOIN nerve_names n ON n.realm_id = realms.realm_id AND n.name = wanted.name
                            AND n.holder = wanted.holder AND wanted.link = ANY (n.links)
         ORDER BY n.realm_id, n.name
           FOR NO KEY UPDATE OF n
    ), renewed AS (
        UPDATE nerve_names n SET expires_at = clock_timestamp() + $5::float8 * interval '1 second'
          FROM held WHERE n.realm_id = held.realm_id AND n.name = held.name
    )
    SELECT number FROM held
"""

RELEASE = """
    UPDATE nerve_names n
       SET links = array_remove(n.links, $4),
           expires_at = CASE WHEN array_remove(n.links, $4) = '{}' THEN clock_timestamp()
                             ELSE n.expires_at END
      FROM realms
     WHERE realms.realm_id = n.realm_id AND realms.name = $1 AND n.name = $2 AND n.holder = $3
       AND $4 = ANY (n.links)
"""

SWEEP = """
    DELETE FROM nerve_names n
     USING (SELECT realm_id, name FROM nerve_names WHERE expires_at <= now()
               FOR UPDATE SKIP LOCKED) over
     WHERE n.realm_id = over.realm_id AND n.name = over.name
"""


async def claim(db: Door, realm: str, name: str, holder: str, link: str, *, seconds: float) -> bool:
    """Give a name to a holder for so long; False when it is another's."""
    return bool(await db.fetch(CLAIM, realm, name, holder, link, seconds))


async def renew(db: Door, names: Collection[tuple[str, str, str, str]], *, seconds: float) -> Sequence[int]:
    """Leave names to their holders for so long from now; the places of those that are still theirs."""
    columns = [list(column) for column in zip(*names, strict=True)]
    return [row["number"] - 1 for row in await db.fetch(RENEW, *columns, seconds)]


async def release(db: Door, realm: str, name: str, holder: str, link: str) -> None:
    """A link is gone; with the last one the name is free."""
    await db.fetch(RELEASE, realm, name, holder, link)


async def sweep(db: Door) -> None:
    """Delete the names that are nobody's."""
    await db.fetch(SWEEP)


async def reserve(
    connection: AsyncConnection, *, realm_id: int, name: str, holder: str, seconds: float
) -> bool:
    """Give a name to a holder who has no link yet, or none any more; False when it is another's."""
    values = {"realm_id": realm_id, "name": name, "holder": holder, "seconds": seconds}
    return (await connection.execute(sa.text(RESERVE), values)).first() is not None
