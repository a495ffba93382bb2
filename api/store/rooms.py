"""Rooms and who is in them."""

from __future__ import annotations

import datetime as dt
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.door import Door
from api.store.predicates import ADDRESSED, HEARS, MEMBER, WAITS, doubled, state
from api.store.reading import WAITING
from api.store.tables import agents, conv_members, conversations, realms

ROOM = "SELECT conv_id, title FROM conversations WHERE realm_id = $1 AND name = $2"

# The cursor opens before the newest `backfill` messages that this reader would hear, or behind what this one
# has read, whichever is later: that is never shown again, while what an earlier joining passed may be.
JOIN = f"""
    WITH r AS (SELECT * FROM agents WHERE realm_id = :realm_id AND agent_id = :agent_id),
    c AS (SELECT clock_timestamp() - CAST(:within AS interval) AS briefed_since),
    newest AS (SELECT coalesce(max(id), 0) AS id FROM conv_messages
                WHERE realm_id = :realm_id AND conv_id = :conv_id),
    oldest AS (SELECT min(id) AS id FROM (
        SELECT m.id FROM conv_messages m, r, c
         WHERE m.realm_id = :realm_id AND m.conv_id = :conv_id AND {WAITS}
         ORDER BY m.id DESC LIMIT :backfill) AS earlier),
    past AS (
        INSERT INTO past_members (realm_id, agent_id, conv_id, joined_at, left_at)
        SELECT realm_id, agent_id, conv_id, joined_at, left_at
          FROM conv_members, newest
         WHERE realm_id = :realm_id AND agent_id = :agent_id AND conv_id = :conv_id AND left_at IS NOT NULL
           AND newest.id > replay_until_id
            ON CONFLICT DO NOTHING)
    INSERT INTO conv_members
           (realm_id, agent_id, conv_id, last_read_id, since_id, replay_until_id, briefed_since)
    SELECT :realm_id, :agent_id, :conv_id, opened.id, opened.id, newest.id, c.briefed_since
      FROM oldest, newest, c, LATERAL (SELECT coalesce(oldest.id - 1, newest.id) AS id) opened
        ON CONFLICT (realm_id, agent_id, conv_id) DO UPDATE
       SET left_at = NULL, joined_at = clock_timestamp(), replay_until_id = excluded.replay_until_id,
           briefed_since = excluded.briefed_since,
           last_read_id = greatest(conv_members.read_id, excluded.last_read_id),
           since_id = greatest(conv_members.read_id, excluded.since_id)
     WHERE conv_members.left_at IS NOT NULL
"""

STANDING = f"""
    SELECT v.title, c.last_read_id, waiting.unread
      FROM agents r
      JOIN conv_members c ON c.realm_id = r.realm_id AND c.agent_id = r.agent_id
      JOIN conversations v ON v.realm_id = c.realm_id AND v.conv_id = c.conv_id, {WAITING}
     WHERE r.realm_id = $1 AND r.agent_id = $2 AND c.conv_id = $3 AND {MEMBER}
"""

_LISTED = f"""
    SELECT v.name AS room, v.title, c.agent_id IS NOT NULL AS member, coalesce(waiting.unread, 0) AS unread,
           (SELECT count(*) FROM conv_members x
             WHERE x.realm_id = v.realm_id AND x.conv_id = v.conv_id AND x.left_at IS NULL) AS members,
           (SELECT x.created_at FROM conv_messages x
             WHERE x.realm_id = v.realm_id AND x.conv_id = v.conv_id
             ORDER BY x.id DESC LIMIT 1) AS last_message_at
      FROM conversations v
      JOIN agents r ON r.realm_id = v.realm_id AND r.agent_id = $2
      {{join}} JOIN conv_members c
        ON c.realm_id = v.realm_id AND c.agent_id = $2 AND c.conv_id = v.conv_id AND {MEMBER}
      LEFT JOIN LATERAL (SELECT unread FROM (SELECT) AS one, {WAITING}) waiting ON c.agent_id IS NOT NULL
     WHERE v.realm_id = $1 AND NOT v.hidden AND v.name > $3
     ORDER BY v.name LIMIT $4
"""
MINE = _LISTED.format(join="")
ALL = _LISTED.format(join="LEFT")

MEMBERS = f"""
    SELECT r.handle AS agent, r.kind, {state("$5")} AS state, {doubled("$5")} AS doubled, c.last_read_id,
           waiting.unread
      FROM conv_members c
      JOIN agents r ON r.realm_id = c.realm_id AND r.agent_id = c.agent_id, {WAITING}
     WHERE c.realm_id = $1 AND c.conv_id = $2 AND {MEMBER} AND r.retired_at IS NULL AND r.handle > $3
     ORDER BY r.handle LIMIT $4
"""

NEWEST = 2**63 - 1

# Who an address reaches besides the sender: retired agents have matched it, too.
MATCHED = f"""
    SELECT EXISTS (
        SELECT FROM agents r, (SELECT $2::bigint AS sender_id, $3::text AS sender_kind, $4::bigint AS box_id,
                                      $5::text AS selector, {NEWEST} AS id) m
         WHERE r.realm_id = $1 AND r.addresses @> ARRAY[$5::text] AND {HEARS} AND {ADDRESSED}) AS matched
"""

ADDRESSABLE = f"""
    SELECT r.handle
      FROM agents r, (SELECT $2::bigint AS sender_id, $3::text AS sender_kind, $4::bigint AS box_id) m
     WHERE r.realm_id = $1 AND r.retired_at IS NULL AND {HEARS}
     ORDER BY r.last_seen DESC LIMIT 20
"""


async def room(db: Door, realm_id: int, name: str) -> Any:
    """(conv_id, title) of a room, hidden ones too; or None."""
    rows = await db.fetch(ROOM, realm_id, name)
    return rows[0] if rows else None


async def create(
    connection: AsyncConnection, *, realm_id: int, name: str, title: str | None = None
) -> tuple[int, bool]:
    """The room's conv_id, and whether it is new. A room that exists keeps its title."""
    new = insert(conversations).values(realm_id=realm_id, name=name, title=title)
    added = await connection.scalar(new.on_conflict_do_nothing().returning(conversations.c.conv_id))
    if added is not None:
        return added, True
    found = sa.select(conversations.c.conv_id).where(
        conversations.c.realm_id == realm_id, conversations.c.name == name
    )
    return (await connection.execute(found)).scalar_one(), False


async def join(
    connection: AsyncConnection,
    *,
    realm_id: int,
    agent_id: int,
    conv_id: int,
    backfill: int | None,
    within: dt.timedelta | None = None,
) -> bool:
    """Make the agent a member. False: it was one, and nothing has changed.

    Args:
        connection: of the transaction.
        realm_id: the realm.
        agent_id: who joins.
        conv_id: the room.
        backfill: how many of the newest messages are unread to them; None: all.
        within: only of so much time before now, but for what has an expiry of its own; None: of all time.
    """
    values = {
        "realm_id": realm_id,
        "agent_id": agent_id,
        "conv_id": conv_id,
        "backfill": backfill,
        "within": within,
    }
    return (await connection.execute(sa.text(JOIN), values)).rowcount > 0


async def lock_realm(connection: AsyncConnection, realm_id: int) -> None:
    """Let one transaction at a time count a realm's rooms and add one."""
    realm = sa.select(realms.c.realm_id).where(realms.c.realm_id == realm_id)
    await connection.execute(realm.with_for_update(key_share=True))


async def lock_reader(connection: AsyncConnection, agent_id: int) -> None:
    """Let nobody hand anything over to this reader meanwhile; take it before a room's lock."""
    await connection.execute(sa.text("SELECT pg_advisory_xact_lock(:reader)"), {"reader": -agent_id})


async def lock_room(connection: AsyncConnection, *, realm_id: int, conv_id: int) -> None:
    """Let one transaction at a time count a room's members and add one; nobody who speaks there waits."""
    room = sa.select(conversations.c.conv_id).where(
        conversations.c.realm_id == realm_id, conversations.c.conv_id == conv_id
    )
    await connection.execute(room.with_for_update(key_share=True))


async def count(connection: AsyncConnection, realm_id: int) -> int:
    """How many rooms of a realm can be listed."""
    visible = sa.select(sa.func.count()).where(
        conversations.c.realm_id == realm_id, conversations.c.hidden.is_(False)
    )
    return (await connection.execute(visible)).scalar_one()


async def member_count(connection: AsyncConnection, *, realm_id: int, conv_id: int) -> int:
    """How many members a room has, those that retired aside. conv_members_room_idx."""
    its = (agents.c.realm_id == conv_members.c.realm_id) & (agents.c.agent_id == conv_members.c.agent_id)
    current = (
        sa.select(sa.func.count())
        .select_from(conv_members.join(agents, its))
        .where(
            conv_members.c.realm_id == realm_id,
            conv_members.c.conv_id == conv_id,
            conv_members.c.left_at.is_(None),
            agents.c.retired_at.is_(None),
        )
    )
    return (await connection.execute(current)).scalar_one()


async def leave(connection: AsyncConnection, *, realm_id: int, agent_id: int, conv_id: int) -> bool:
    """End a membership; the cursor stays. False: there was none."""
    mine = (
        (conv_members.c.realm_id == realm_id)
        & (conv_members.c.agent_id == agent_id)
        & (conv_members.c.conv_id == conv_id)
        & conv_members.c.left_at.is_(None)
    )
    done = await connection.execute(
        sa.update(conv_members).where(mine).values(left_at=sa.func.clock_timestamp())
    )
    return done.rowcount > 0


async def standing(db: Door, *, realm_id: int, agent_id: int, conv_id: int) -> Any:
    """(title, last_read_id, unread) of a member; or None for a stranger."""
    rows = await db.fetch(STANDING, realm_id, agent_id, conv_id)
    return rows[0] if rows else None


async def listed(db: Door, *, realm_id: int, agent_id: int, mine: bool, after: str, limit: int) -> list[Any]:
    """Rooms by name, with what waits in mine: (room, title, member, unread, members, last_message_at)."""
    return await db.fetch(MINE if mine else ALL, realm_id, agent_id, after, limit)


async def members(
    db: Door, *, realm_id: int, conv_id: int, after: str, limit: int, stale_seconds: int
) -> list[Any]:
    """A room's members by handle: (agent, kind, state, doubled, last_read_id, unread)."""
    return await db.fetch(MEMBERS, realm_id, conv_id, after, limit, stale_seconds)


async def matched(
    db: Door, *, realm_id: int, sender_id: int, sender_kind: str, box_id: int | None, selector: str
) -> bool:
    """Whether anyone who may hear this sender was ever matched by the selector."""
    rows = await db.fetch(MATCHED, realm_id, sender_id, sender_kind, box_id, selector)
    return bool(rows[0]["matched"])


async def addressable(
    db: Door, *, realm_id: int, sender_id: int, sender_kind: str, box_id: int | None
) -> list[str]:
    """Up to 20 handles that this sender can write to now, those seen last first."""
    rows = await db.fetch(ADDRESSABLE, realm_id, sender_id, sender_kind, box_id)
    return [row["handle"] for row in rows]
