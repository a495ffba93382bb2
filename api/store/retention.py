"""Deleting what is older than it is to be kept, a small part at a time."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.closing import OVERLAP, REPORTED, TAKEN

WANTED = """
    SELECT realm_id, name,
           clock_timestamp() - coalesce(CAST(:forced AS int), keep_days, CAST(:keep_days AS int))
                               * interval '1 day' AS before
      FROM realms
     WHERE coalesce(CAST(:forced AS int), keep_days, CAST(:keep_days AS int)) IS NOT NULL
       AND (CAST(:realm AS text) IS NULL OR name = :realm)
     ORDER BY name
"""

# One replica at a time; the others try again at their next turn.
BEGIN = "SELECT name FROM sweeps WHERE name = 'retention' FOR UPDATE SKIP LOCKED"

# What expires is indexed anew, word for word: a part is bounded by what it holds, but never empty.
PAGE = """
    SELECT max(id) AS last_id, bool_and(created_at < :before) AS all_old
      FROM (SELECT id, created_at, sum(size) OVER (ORDER BY id) - size AS bytes_before
              FROM (SELECT id, created_at, size FROM conv_messages
                     WHERE realm_id = :realm_id AND id > :after ORDER BY id LIMIT :most) next) page
     WHERE bytes_before < :most_bytes
"""

# A thread is kept whole for as long as somebody goes on with it.
_OLD = """
    m.realm_id = :realm_id AND m.id > :after AND m.id <= :last_id AND m.created_at < :before
    AND (m.thread_id IS NULL OR (
        SELECT t.created_at FROM conv_messages t
         WHERE t.realm_id = m.realm_id AND t.thread_id = m.thread_id AND t.sender_kind <> 'system'
         ORDER BY t.id DESC LIMIT 1) < :before IS NOT FALSE)
"""

# What nobody took expires now: so its sender is told, and it goes when that has been done.
EXPIRE = f"""
    UPDATE conv_messages m SET expires_at = clock_timestamp()
     WHERE {_OLD} AND m.sender_kind <> 'system' AND (m.expires_at > clock_timestamp()) IS NOT FALSE
       AND NOT {REPORTED} AND NOT {TAKEN}
"""

DELETE = f"""
    DELETE FROM conv_messages m
     WHERE {_OLD}
       AND (m.sender_kind = 'system' OR {REPORTED} OR {TAKEN}
            OR m.expires_at <= (SELECT until FROM sweeps WHERE name = 'expired') - {OVERLAP})
"""

# Ranges that lie wholly before what is left of their room. A poll may be repeated for a day.
FORGET_RANGES = """
    DELETE FROM batch_rooms gone
     USING (SELECT k.batch_id, k.conv_id
              FROM conversations v
              CROSS JOIN LATERAL (SELECT min(x.id) AS id FROM conv_messages x
                                   WHERE x.realm_id = v.realm_id AND x.conv_id = v.conv_id) oldest
              JOIN batch_rooms k ON k.realm_id = v.realm_id AND k.conv_id = v.conv_id
                                AND (k.last_id < oldest.id) IS NOT FALSE
              JOIN batches b ON b.realm_id = k.realm_id AND b.batch_id = k.batch_id
             WHERE v.realm_id = :realm_id AND b.committed_at IS NOT NULL
               AND b.handed_at < clock_timestamp() - interval '1 day'
             LIMIT :most) found
     WHERE gone.realm_id = :realm_id AND gone.batch_id = found.batch_id AND gone.conv_id = found.conv_id
    RETURNING gone.batch_id
"""
FORGET_BATCHES = """
    DELETE FROM batches b
     WHERE b.realm_id = :realm_id AND b.batch_id = ANY (:batches)
       AND NOT EXISTS (SELECT FROM batch_rooms k WHERE k.realm_id = b.realm_id AND k.batch_id = b.batch_id)
"""

# Who was a member, or retired, only before the oldest of what is left was said: no receipt asks for it.
FORGET_MEMBERSHIPS = """
    DELETE FROM past_members gone
     USING (SELECT p.agent_id, p.conv_id, p.joined_at
              FROM past_members p
              LEFT JOIN LATERAL (SELECT x.created_at FROM conv_messages x
                                  WHERE x.realm_id = p.realm_id AND x.conv_id = p.conv_id
                                  ORDER BY x.id LIMIT 1) oldest ON true
             WHERE p.realm_id = :realm_id AND p.left_at < clock_timestamp() - interval '1 day'
               AND (p.left_at < oldest.created_at) IS NOT FALSE
             LIMIT :most) found
     WHERE gone.realm_id = :realm_id AND gone.agent_id = found.agent_id AND gone.conv_id = found.conv_id
       AND gone.joined_at = found.joined_at
"""
FORGET_RETIREMENTS = f"""
    DELETE FROM past_retirements gone
     USING (SELECT p.agent_id, p.retired_at
              FROM past_retirements p
              LEFT JOIN (SELECT created_at FROM conv_messages
                          WHERE realm_id = :realm_id ORDER BY id LIMIT 1) oldest ON true
             WHERE p.realm_id = :realm_id AND p.ended_at < clock_timestamp() - interval '1 day'
               AND (p.ended_at < oldest.created_at - {OVERLAP}) IS NOT FALSE
             LIMIT :most) found
     WHERE gone.realm_id = :realm_id AND gone.agent_id = found.agent_id
       AND gone.retired_at = found.retired_at
"""


async def wanted(
    connection: AsyncConnection, *, realm: str | None, keep_days: int | None, forced: int | None
) -> list[Any]:
    """The realms that do not keep for ever: (realm_id, name, before). `forced` goes before all settings."""
    values = {"realm": realm, "keep_days": keep_days, "forced": forced}
    return list((await connection.execute(sa.text(WANTED), values)).all())


async def begin(connection: AsyncConnection) -> bool:
    """Take the turn for this transaction; False while another has it."""
    return (await connection.execute(sa.text(BEGIN))).one_or_none() is not None


async def page(
    connection: AsyncConnection, *, realm_id: int, before: Any, after: int, most: int, most_bytes: int
) -> Any:
    """The next part of a realm's messages: (last_id, all_old); last_id is None behind the last one.

    It has at most `most` messages, and ends with the one that brings it to `most_bytes`.
    """
    values = {
        "realm_id": realm_id,
        "before": before,
        "after": after,
        "most": most,
        "most_bytes": most_bytes,
    }
    return (await connection.execute(sa.text(PAGE), values)).one()


async def prune(
    connection: AsyncConnection, *, realm_id: int, before: Any, after: int, last_id: int
) -> tuple[int, int]:
    """Delete what is old of a part, let expire what nobody took; how many of each."""
    values = {"realm_id": realm_id, "before": before, "after": after, "last_id": last_id}
    deleted = await connection.execute(sa.text(DELETE), values)
    expired = await connection.execute(sa.text(EXPIRE), values)
    return deleted.rowcount, expired.rowcount


async def forget_batches(connection: AsyncConnection, *, realm_id: int, most: int) -> int:
    """Delete ranges of which every message has gone, and batches without any; how many ranges."""
    found = await connection.execute(sa.text(FORGET_RANGES), {"realm_id": realm_id, "most": most})
    batches = list(found.scalars())
    if batches:
        await connection.execute(sa.text(FORGET_BATCHES), {"realm_id": realm_id, "batches": batches})
    return len(batches)


async def forget_absences(connection: AsyncConnection, *, realm_id: int, most: int) -> int:
    """Delete what is known of who was there or away before the oldest message; the most rows of one kind."""
    values = {"realm_id": realm_id, "most": most}
    memberships = await connection.execute(sa.text(FORGET_MEMBERSHIPS), values)
    retirements = await connection.execute(sa.text(FORGET_RETIREMENTS), values)
    return max(memberships.rowcount, retirements.rowcount)
