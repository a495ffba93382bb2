"""Webhooks: whose they are, what each has still to tell, and who tries it now.

What waits is derived from the messages themselves: a record that dies between a commit and its nudge
finds the nudge again when it looks.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.door import Door
from api.store.predicates import DELIVERABLE, MEMBER
from api.store.tables import agents, conv_messages, webhooks

_OWNER = """
    JOIN agents r ON r.realm_id = w.realm_id AND r.agent_id = w.agent_id AND r.retired_at IS NULL
"""
_MEMBERSHIP = f"""
    JOIN conv_members c ON c.realm_id = w.realm_id AND c.agent_id = w.agent_id AND {MEMBER}
"""

# Every value only grows, so that two replicas that look at once cannot undo each other. The rows come in one
# order, so that they cannot block each other either.
LOOK = f"""
    INSERT INTO webhook_rooms AS k (realm_id, webhook_id, conv_id, looked_id, nudged_id)
    SELECT w.realm_id, w.webhook_id, c.conv_id, newest.id, coalesce(heard.id, 0)
      FROM webhooks w {_OWNER} {_MEMBERSHIP}
      LEFT JOIN webhook_rooms k
        ON k.realm_id = w.realm_id AND k.webhook_id = w.webhook_id AND k.conv_id = c.conv_id
     CROSS JOIN LATERAL (
           SELECT x.id FROM conv_messages x
            WHERE x.realm_id = c.realm_id AND x.conv_id = c.conv_id ORDER BY x.id DESC LIMIT 1) newest
      LEFT JOIN LATERAL (
           SELECT m.id FROM conv_messages m
            WHERE m.realm_id = c.realm_id AND m.conv_id = c.conv_id AND m.id <= newest.id
              AND m.id > coalesce(k.looked_id, w.since_id) AND m.created_at > c.joined_at AND {DELIVERABLE}
            ORDER BY m.id DESC LIMIT 1) heard ON true
     WHERE w.disabled_at IS NULL AND newest.id > coalesce(k.looked_id, w.since_id)
       AND ($1::bigint[] IS NULL OR c.conv_id = ANY ($1))
     ORDER BY w.realm_id, w.webhook_id, c.conv_id
        ON CONFLICT (realm_id, webhook_id, conv_id) DO UPDATE
       SET looked_id = greatest(k.looked_id, excluded.looked_id),
           nudged_id = greatest(k.nudged_id, excluded.nudged_id)
    RETURNING k.nudged_id > k.told_id AS waiting
"""

_WAITING = f"""
    LATERAL (SELECT k.conv_id, k.nudged_id, v.name AS room, coalesce(s.handle, 'system') AS sender,
                    floor(extract(epoch FROM m.created_at) * 1000)::bigint AS at
               FROM webhook_rooms k
               JOIN conv_members c ON c.realm_id = w.realm_id AND c.agent_id = w.agent_id
                                  AND c.conv_id = k.conv_id AND {MEMBER}
               JOIN conversations v ON v.realm_id = k.realm_id AND v.conv_id = k.conv_id
               JOIN conv_messages m ON m.realm_id = k.realm_id AND m.id = k.nudged_id
               LEFT JOIN agents s ON s.realm_id = m.realm_id AND s.agent_id = m.sender_id
              WHERE k.realm_id = w.realm_id AND k.webhook_id = w.webhook_id AND k.nudged_id > k.told_id
              ORDER BY k.nudged_id LIMIT 1) waiting
"""

# One nudge a webhook at a time: an address that is slow or dead costs one call, however many rooms it has.
CLAIM = f"""
    WITH due AS (
        SELECT w.realm_id, w.webhook_id, waiting.*
          FROM webhooks w {_OWNER} CROSS JOIN {_WAITING}
         WHERE w.disabled_at IS NULL AND w.next_at <= clock_timestamp()
         ORDER BY w.next_at LIMIT $1
           FOR NO KEY UPDATE OF w SKIP LOCKED
    ), claimed AS (
        UPDATE webhooks w SET next_at = clock_timestamp() + $2 * interval '1 second'
          FROM due WHERE w.realm_id = due.realm_id AND w.webhook_id = due.webhook_id
        RETURNING w.*
    )
    SELECT realm_id, webhook_id, url, secret, attempts, conv_id, nudged_id, room, sender, at,
           CASE WHEN old_secret_until > clock_timestamp() THEN old_secret END AS old_secret,
           coalesce(extract(epoch FROM clock_timestamp() - failing_since), 0)::float8 AS failing_seconds
      FROM claimed JOIN due USING (realm_id, webhook_id)
"""

TOLD = """
    WITH room AS (
        UPDATE webhook_rooms SET told_id = greatest(told_id, $4)
         WHERE realm_id = $1 AND webhook_id = $2 AND conv_id = $3
    )
    UPDATE webhooks SET next_at = clock_timestamp(), attempts = 0, failing_since = NULL, failure = NULL
     WHERE realm_id = $1 AND webhook_id = $2
"""

FAILED = """
    UPDATE webhooks
       SET next_at = clock_timestamp() + $3 * interval '1 second', attempts = attempts + 1, failure = $4,
           failing_since = coalesce(failing_since, clock_timestamp())
     WHERE realm_id = $1 AND webhook_id = $2
"""

DISABLE = """
    UPDATE webhooks w SET disabled_at = clock_timestamp(), failure = :failure
      FROM agents r JOIN realms USING (realm_id)
     WHERE w.realm_id = :realm_id AND w.webhook_id = :webhook_id AND w.disabled_at IS NULL
       AND r.realm_id = w.realm_id AND r.agent_id = w.agent_id
    RETURNING r.handle, realms.name AS realm
"""

ROTATE = """
    UPDATE webhooks
       SET secret = :secret, old_secret = secret,
           old_secret_until = clock_timestamp() + CAST(:overlap AS float8) * interval '1 second'
     WHERE realm_id = :realm_id AND agent_id = :agent_id AND webhook_id = :webhook_id
    RETURNING url, old_secret_until
"""

LIST = """
    SELECT webhook_id, url, created_at, failing_since, failure, disabled_at,
           CASE WHEN old_secret_until > clock_timestamp() THEN old_secret_until END AS old_secret_until
      FROM webhooks
     WHERE realm_id = $1 AND agent_id = $2 AND webhook_id > $3 ORDER BY webhook_id LIMIT $4
"""


async def add(
    connection: AsyncConnection,
    *,
    realm_id: int,
    agent_id: int,
    webhook_id: str,
    url: str,
    secret: str,
    most: int,
) -> Any:
    """Store a webhook; its moment of creation, or None when its agent has `most` already."""
    owner = sa.select(agents.c.agent_id).where(agents.c.realm_id == realm_id, agents.c.agent_id == agent_id)
    await connection.execute(owner.with_for_update(key_share=True))
    its = (webhooks.c.realm_id == realm_id) & (webhooks.c.agent_id == agent_id)
    if (await connection.scalar(sa.select(sa.func.count()).select_from(webhooks).where(its)) or 0) >= most:
        return None
    newest = sa.select(sa.func.coalesce(sa.func.max(conv_messages.c.id), 0))
    new = sa.insert(webhooks).values(
        realm_id=realm_id,
        webhook_id=webhook_id,
        agent_id=agent_id,
        url=url,
        secret=secret,
        since_id=newest.where(conv_messages.c.realm_id == realm_id).scalar_subquery(),
    )
    return await connection.scalar(new.returning(webhooks.c.created_at))


async def rotate(
    connection: AsyncConnection,
    *,
    realm_id: int,
    agent_id: int,
    webhook_id: str,
    secret: str,
    overlap_seconds: float,
) -> Any:
    """Give one of the agent's webhooks another secret: (url, old_secret_until); None: there is none."""
    values = {
        "realm_id": realm_id,
        "agent_id": agent_id,
        "webhook_id": webhook_id,
        "secret": secret,
        "overlap": overlap_seconds,
    }
    return (await connection.execute(sa.text(ROTATE), values)).one_or_none()


async def remove(connection: AsyncConnection, *, realm_id: int, agent_id: int, webhook_id: str) -> bool:
    """Delete one of the agent's webhooks with all that it had still to tell; False: there is none."""
    gone = sa.delete(webhooks).where(
        webhooks.c.realm_id == realm_id,
        webhooks.c.agent_id == agent_id,
        webhooks.c.webhook_id == webhook_id,
    )
    return (await connection.execute(gone)).rowcount > 0


async def remove_all(connection: AsyncConnection, *, realm_id: int, name: str) -> None:
    """Delete the webhooks of a box with those of its sessions, or of a person."""
    holder = sa.select(agents.c.agent_id).where(agents.c.realm_id == realm_id, agents.c.handle == name)
    own = holder.scalar_subquery()
    its = sa.select(agents.c.agent_id).where(
        agents.c.realm_id == realm_id, (agents.c.agent_id == own) | (agents.c.box_id == own)
    )
    await connection.execute(
        sa.delete(webhooks).where(webhooks.c.realm_id == realm_id, webhooks.c.agent_id.in_(its))
    )


async def disable(connection: AsyncConnection, *, realm_id: int, webhook_id: str, failure: str) -> Any:
    """Disable a webhook: (handle, realm) of its owner; None when it is gone or was disabled before."""
    values = {"realm_id": realm_id, "webhook_id": webhook_id, "failure": failure}
    return (await connection.execute(sa.text(DISABLE), values)).one_or_none()


async def listed(db: Door, *, realm_id: int, agent_id: int, after: str, limit: int) -> list[Any]:
    """The agent's webhooks by id, beginning after `after`."""
    return await db.fetch(LIST, realm_id, agent_id, after, limit)


async def look(db: Door, rooms: Collection[int] | None) -> bool:
    """Note what there is to tell in these rooms, or in all; whether anything waits there."""
    rows = await db.fetch(LOOK, None if rooms is None else list(rooms))
    return any(row["waiting"] for row in rows)


async def claim(db: Door, *, most: int, seconds: float) -> list[Any]:
    """Nudges to deliver now, at most one a webhook; nobody else gets these webhooks for `seconds`."""
    return await db.fetch(CLAIM, most, seconds)


async def told(db: Door, *, realm_id: int, webhook_id: str, conv_id: int, nudged_id: int) -> None:
    """A nudge was taken."""
    await db.fetch(TOLD, realm_id, webhook_id, conv_id, nudged_id)


async def failed(db: Door, *, realm_id: int, webhook_id: str, seconds: float, failure: str) -> None:
    """A nudge was not taken; nothing is tried at this webhook for `seconds`."""
    await db.fetch(FAILED, realm_id, webhook_id, seconds, failure)
