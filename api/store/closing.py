"""Closing a message: finding what nobody took, and reporting it once."""

from __future__ import annotations

import datetime as dt
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.door import Door
from api.store.messages import FROM_MESSAGE, MESSAGE
from api.store.pages import MORE, page
from api.store.predicates import ADDRESSED, HEARS, MEMBER, UNEXPIRED, WAITS, taken
from api.store.tables import undelivered

OVERLAP = "interval '1 minute'"
"""A message can appear after the moment at which it expires: its commit may take that long."""

SETTLING = "interval '1 second'"
"""A batch can appear after the moment at which it was committed, too."""

# One replica at a time; the others try again at their next turn. Each kind of report goes on by itself.
BEGIN = """
    SELECT until, clock_timestamp() AS now FROM sweeps WHERE name = :kind FOR UPDATE SKIP LOCKED
"""
END = "UPDATE sweeps SET until = :now WHERE name = :kind"

TAKEN = taken("true")
REPORTED = "EXISTS (SELECT FROM undelivered u WHERE u.realm_id = m.realm_id AND u.id = m.id)"

EXPIRED = f"""
    SELECT m.realm_id, m.id, 'expired' AS reason FROM conv_messages m
     WHERE m.expires_at > CAST(:since AS timestamptz) - {OVERLAP}
       AND m.expires_at <= CAST(:now AS timestamptz) - {SETTLING}
       AND m.sender_kind <> 'system' AND NOT {REPORTED} AND NOT {TAKEN}
     ORDER BY m.expires_at LIMIT :most
"""

# An unnumbered handle to which other sessions answered, too, is a label and waits for any of them.
_LABEL_TOO = """(
    r.label IS NOT DISTINCT FROM r.addresses[1]
    AND EXISTS (SELECT FROM agents o WHERE o.realm_id = r.realm_id AND o.box_id = r.box_id
                   AND o.label = r.label AND o.agent_id <> r.agent_id)
)"""


# Looked for when somebody retires, and once more when all that was under way then has been committed.
# Whose name somebody else got since was meant by what was said until then. conv_messages_selector_idx.
RETIRED = f"""
    WITH ended AS MATERIALIZED (
        SELECT DISTINCT r.realm_id, r.agent_id, its.selector, heir.floor_id AS until_id
          FROM agents r
          LEFT JOIN agents heir ON heir.realm_id = r.realm_id AND heir.handle = r.addresses[1]
                               AND heir.agent_id <> r.agent_id
         CROSS JOIN LATERAL (
               SELECT r.addresses[1] AS selector WHERE NOT {_LABEL_TOO}
                UNION
               SELECT o.label FROM agents o
                WHERE r.kind = 'box' AND o.realm_id = r.realm_id AND o.box_id = r.agent_id
                  AND o.label IS NOT NULL) its
         WHERE (r.retired_at > CAST(:since AS timestamptz) - 2 * {SETTLING}
               AND r.retired_at <= CAST(:now AS timestamptz) - {SETTLING})
            OR (r.retired_at > CAST(:since AS timestamptz) - {OVERLAP}
                AND r.retired_at <= CAST(:now AS timestamptz) - {OVERLAP})
    )
    SELECT m.realm_id, m.id, 'retired' AS reason
      FROM ended JOIN conv_messages m USING (realm_id, selector)
     WHERE (m.id > ended.until_id) IS NOT TRUE AND {UNEXPIRED} AND m.sender_kind <> 'system'
       AND EXISTS (SELECT FROM agents r
                    WHERE r.realm_id = m.realm_id AND ended.agent_id IN (r.agent_id, r.box_id)
                      AND {HEARS} AND {ADDRESSED})
       AND NOT {REPORTED} AND NOT {TAKEN}
     LIMIT :most
"""

_AWAITED = f"""
    EXISTS (SELECT FROM conv_members c
              JOIN agents r ON r.realm_id = c.realm_id AND r.agent_id = c.agent_id AND r.retired_at IS NULL
             WHERE c.realm_id = m.realm_id AND c.conv_id = m.conv_id AND {MEMBER}
               AND c.last_read_id < m.id AND {WAITS})
"""

# When no briefing reaches back any more to what somebody had not read who has gone since. Step by step: who
# else might read it is dear to know, and seldom asked.
ABANDONED = f"""
    WITH unread AS MATERIALIZED (
        SELECT DISTINCT m.realm_id, m.id
          FROM agents r
          JOIN conv_members c ON c.realm_id = r.realm_id AND c.agent_id = r.agent_id
          JOIN conversations v ON v.realm_id = c.realm_id AND v.conv_id = c.conv_id
          JOIN conv_messages m
            ON m.realm_id = c.realm_id AND m.conv_id = c.conv_id AND m.id > c.last_read_id
         WHERE r.retired_at > CAST(:since AS timestamptz) - {OVERLAP} - CAST(:briefed AS interval)
           AND r.retired_at <= CAST(:now AS timestamptz) - CAST(:briefed AS interval)
           AND v.hidden AND m.created_at <= r.retired_at AND m.expires_at IS NULL
           AND m.sender_kind <> 'system' AND {HEARS} AND {ADDRESSED}
    ), untaken AS MATERIALIZED (
        SELECT m.* FROM unread JOIN conv_messages m USING (realm_id, id) WHERE NOT {REPORTED} AND NOT {TAKEN}
    )
    SELECT m.realm_id, m.id, 'retired' AS reason FROM untaken m WHERE NOT {_AWAITED} LIMIT :most
"""

# What was addressed when nobody was there whom it was for, and nobody has come.
UNHEARD = f"""
    WITH due AS (
        DELETE FROM unheard
         WHERE (realm_id, id) IN (SELECT realm_id, id FROM unheard
                                   WHERE due_at <= :now ORDER BY due_at LIMIT :most)
        RETURNING realm_id, id
    ), untaken AS MATERIALIZED (
        SELECT m.* FROM due JOIN conv_messages m USING (realm_id, id)
         WHERE {UNEXPIRED} AND NOT {REPORTED} AND NOT {TAKEN}
    )
    SELECT m.realm_id, m.id, 'retired' AS reason FROM untaken m WHERE NOT {_AWAITED}
"""

KINDS = {"expired": EXPIRED, "retired": RETIRED, "abandoned": ABANDONED, "unheard": UNHEARD}
"""What is looked for, each by a statement and with a row of `sweeps` of its own."""

# The sender, or where the sender is gone every person of the realm.
CLOSED = f"""
    SELECT {MESSAGE}, realm.name AS realm, s.retired_at IS NOT NULL AS sender_gone
      FROM conv_messages m {FROM_MESSAGE} JOIN realms realm ON realm.realm_id = m.realm_id
     WHERE m.realm_id = $1 AND m.id = $2
"""
PEOPLE = (
    "SELECT handle FROM agents WHERE realm_id = $1 AND kind = 'person' AND retired_at IS NULL ORDER BY handle"
)

_LISTED = """
    SELECT m.id, m.size, u.reason
      FROM undelivered u
      JOIN conv_messages m ON m.realm_id = u.realm_id AND m.id = u.id
      LEFT JOIN agents s ON s.realm_id = m.realm_id AND s.agent_id = m.sender_id
     WHERE u.realm_id = $1 AND u.id > $4
       AND (m.sender_id = $2 OR ($3 = 'box' AND m.box_id = $2)
            OR ($3 = 'person' AND s.retired_at IS NOT NULL))
     ORDER BY u.id LIMIT $5::int + 1
"""
LIST = f"""
    {page(_LISTED, order="id", limit="$5")}
    SELECT {MESSAGE}, page.reason AS why, {MORE}
      FROM page JOIN conv_messages m ON m.realm_id = $1 AND m.id = page.id {FROM_MESSAGE}
     ORDER BY m.id
"""

OFFLINE = """
    UPDATE agents SET retired_at = clock_timestamp()
      FROM realms
     WHERE realms.realm_id = agents.realm_id AND kind = 'session' AND retired_at IS NULL
       AND offline_since < clock_timestamp() - CAST(:seconds AS float8) * interval '1 second'
    RETURNING realms.name, handle
"""
SILENT = """
    UPDATE agents SET state = 'offline', state_at = clock_timestamp(), offline_since = last_seen
     WHERE kind = 'session' AND retired_at IS NULL AND offline_since IS NULL
       AND last_seen < clock_timestamp() - CAST(:seconds AS float8) * interval '1 second'
       AND state_at < clock_timestamp() - CAST(:seconds AS float8) * interval '1 second'
"""


async def begin(connection: AsyncConnection, kind: str) -> Any:
    """(until, now) of this turn at one of KINDS; None while another replica has it."""
    return (await connection.execute(sa.text(BEGIN), {"kind": kind})).one_or_none()


async def end(connection: AsyncConnection, kind: str, now: Any) -> None:
    """Note how far the sweep has come."""
    await connection.execute(sa.text(END), {"kind": kind, "now": now})


async def untaken(
    connection: AsyncConnection, kind: str, *, since: Any, now: Any, most: int, briefed: dt.timedelta
) -> list[Any]:
    """Messages that closed between `since` and `now` without a reader: (realm_id, id, reason).

    `briefed`: how long a message without an expiry waits for sessions that come later.
    """
    values = {"since": since, "now": now, "most": most, "briefed": briefed}
    return list((await connection.execute(sa.text(KINDS[kind]), values)).all())


async def note(connection: AsyncConnection, *, realm_id: int, message_id: int, reason: str) -> bool:
    """List a message as undelivered; False when it stood there before."""
    new = insert(undelivered).values(realm_id=realm_id, id=message_id, reason=reason)
    return (await connection.execute(new.on_conflict_do_nothing())).rowcount > 0


async def closed(db: Door, *, realm_id: int, message_id: int) -> Any:
    """The message with its realm and whether its sender is gone."""
    return (await db.fetch(CLOSED, realm_id, message_id))[0]


async def people(db: Door, realm_id: int) -> list[str]:
    """The realm's people."""
    return [row["handle"] for row in await db.fetch(PEOPLE, realm_id)]


async def listed(db: Door, *, realm_id: int, agent_id: int, kind: str, after: int, limit: int) -> list[Any]:
    """A page of what nobody took of what this agent said, a box its sessions; people see the orphans, too."""
    return await db.fetch(LIST, realm_id, agent_id, kind, after, limit)


async def retire_offline(connection: AsyncConnection, seconds: int) -> list[tuple[str, str]]:
    """Retire sessions that were offline for long: (realm, handle). Who was silent for as long is offline."""
    await connection.execute(sa.text(SILENT), {"seconds": seconds})
    retired = await connection.execute(sa.text(OFFLINE), {"seconds": seconds})
    return [(row.name, row.handle) for row in retired]
