"""Queues of durable subscribers on the nerve. Each change is one statement: a kill leaves none half done."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from api.models import DeadLetter
from api.store.door import Door

OPEN = """
    WITH realm AS (
        SELECT realm_id, (SELECT count(*) FROM nerve_queues q
                           WHERE q.realm_id = realms.realm_id AND q.holder = $2) AS held
          FROM realms WHERE name = $1
    ), opened AS (
        INSERT INTO nerve_queues (realm_id, holder, consumer_id, producer, event, topic, consumer, group_name,
                                  durable, ack_seconds, attempts, delay_seconds, exponential)
        SELECT realm_id, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13 FROM realm
         WHERE held < $14 OR EXISTS (
               SELECT FROM nerve_queues q
                WHERE q.realm_id = realm.realm_id AND q.holder = $2 AND q.consumer_id = $3
                  AND q.producer = $4 AND q.event = $5 AND q.topic = $6)
            ON CONFLICT ON CONSTRAINT nerve_queues_key DO UPDATE
           SET consumer = excluded.consumer, group_name = excluded.group_name, durable = excluded.durable,
               ack_seconds = excluded.ack_seconds, attempts = excluded.attempts,
               delay_seconds = excluded.delay_seconds, exponential = excluded.exponential,
               seen_at = clock_timestamp()
        RETURNING realm_id, queue_id
    ), again AS (
        UPDATE nerve_messages m SET due_at = now() FROM opened
         WHERE m.realm_id = opened.realm_id AND m.queue_id = opened.queue_id AND m.dead_at IS NULL
           AND m.sent_to <> $15
    )
    SELECT queue_id FROM opened
"""

FORGET = """
    DELETE FROM nerve_queues q USING realms
     WHERE realms.realm_id = q.realm_id AND realms.name = $1 AND q.queue_id = $2
"""

MATCHING = """
    SELECT wanted.number, q.*
      FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY wanted(realm, producer, event, number)
      JOIN realms ON realms.name = wanted.realm
      JOIN nerve_queues q ON q.realm_id = realms.realm_id
       AND (q.topic OR (q.producer IN (wanted.producer, 'tyo-mq-all')
                        AND q.event IN (wanted.event, 'tm-all')))
     ORDER BY q.queue_id
"""

WAITING = """
    SELECT m.queue_id, count(*) AS messages, sum(m.size) AS size
      FROM realms JOIN nerve_messages m USING (realm_id)
     WHERE realms.name = $1 AND m.queue_id = ANY ($2) AND m.dead_at IS NULL AND m.expires_at > now()
     GROUP BY m.queue_id
"""

KEEP = """
    WITH wanted AS (
        SELECT q.realm_id, q.queue_id FROM nerve_queues q JOIN realms USING (realm_id)
         WHERE realms.name = $1 AND q.queue_id = ANY ($2)
           FOR KEY SHARE OF q
    )
    INSERT INTO nerve_messages (realm_id, queue_id, envelope, size, expires_at)
    SELECT realm_id, queue_id, $3, $4::int, clock_timestamp() + $5::float8 * interval '1 second'
      FROM wanted ORDER BY queue_id
"""

_UNDELIVERABLE = "q.ack_seconds IS NOT NULL AND (due.timeouts >= q.attempts OR due.attempts >= $6)"

# Only the beginning of a queue is out at once. What goes over the connection that it went over before was not
# acknowledged in time; what went over another one comes again because that one is gone.
TAKE = f"""
    WITH q AS (
        SELECT q.* FROM nerve_queues q JOIN realms USING (realm_id)
         WHERE realms.name = $1 AND q.queue_id = $2
    ), seen AS (
        UPDATE nerve_queues s SET seen_at = now() FROM q
         WHERE s.realm_id = q.realm_id AND s.queue_id = q.queue_id
           AND s.seen_at < now() - interval '20 seconds'
    ), head AS (
        SELECT m.realm_id, m.message_id, m.due_at,
               sum(m.size) OVER (ORDER BY m.message_id) - m.size AS size_before
          FROM q JOIN nerve_messages m USING (realm_id, queue_id)
         WHERE m.dead_at IS NULL AND m.expires_at > now()
         ORDER BY m.message_id LIMIT $4
    ), due AS (
        SELECT m.realm_id, m.message_id, m.attempts,
               m.timeouts + CASE WHEN m.sent_to = $3 THEN 1 ELSE 0 END AS timeouts
          FROM head JOIN nerve_messages m USING (realm_id, message_id)
         WHERE head.due_at <= now() AND head.size_before < $5 AND m.due_at <= now() AND m.dead_at IS NULL
           FOR NO KEY UPDATE OF m SKIP LOCKED
    ), dead AS (
        UPDATE nerve_messages m
           SET dead_at = now(), timeouts = due.timeouts, expires_at = now() + $7::float8 * interval '1 second'
          FROM due CROSS JOIN q
         WHERE m.realm_id = due.realm_id AND m.message_id = due.message_id AND {_UNDELIVERABLE}
    ), sent AS (
        UPDATE nerve_messages m
           SET attempts = due.attempts + 1, timeouts = due.timeouts, sent_to = $3,
               due_at = now() + interval '1 second' * (
                   coalesce(q.ack_seconds, 30)
                   + CASE WHEN due.timeouts + 1 >= q.attempts THEN 0
                          ELSE q.delay_seconds * CASE WHEN q.exponential THEN 2 ^ due.timeouts ELSE 1 END END)
          FROM due CROSS JOIN q
         WHERE m.realm_id = due.realm_id AND m.message_id = due.message_id AND NOT ({_UNDELIVERABLE})
        RETURNING m.message_id, m.envelope, m.attempts, m.due_at
    )
    SELECT sent.message_id, sent.envelope, sent.attempts,
           (SELECT count(*) >= $4 OR coalesce(max(size_before), 0) >= $5 FROM head) AS more,
           extract(epoch FROM least((SELECT min(due_at) FROM head WHERE due_at > now()),
                                    (SELECT min(due_at) FROM sent)) - clock_timestamp())::float8 AS seconds
      FROM (SELECT) one LEFT JOIN sent ON true
     ORDER BY sent.message_id
"""

DROP = """
    DELETE FROM nerve_messages m USING realms
     WHERE realms.realm_id = m.realm_id AND realms.name = $1 AND m.queue_id = $2 AND m.message_id = ANY ($3)
"""

ACKNOWLEDGED = """
    WITH found AS (
        SELECT m.realm_id, m.message_id, m.queue_id, m.sent_to
          FROM realms JOIN nerve_messages m USING (realm_id) JOIN nerve_queues q USING (realm_id, queue_id)
         WHERE realms.name = $1 AND q.holder = $2 AND m.message_id = $3 AND m.sent_to IS NOT NULL
    ), gone AS (
        DELETE FROM nerve_messages m USING found
         WHERE m.realm_id = found.realm_id AND m.message_id = found.message_id AND m.sent_to = $4
        RETURNING m.queue_id
    )
    SELECT (SELECT queue_id FROM gone) AS queue_id FROM found
"""

EXPIRE = "DELETE FROM nerve_messages WHERE expires_at <= now()"

FORGET_OLD = """
    DELETE FROM nerve_queues q
     WHERE q.seen_at < now() - interval '1 second' * CASE WHEN q.durable THEN $1::float8 ELSE $2::float8 END
       AND (q.durable OR NOT EXISTS (
            SELECT FROM nerve_messages m WHERE m.realm_id = q.realm_id AND m.queue_id = q.queue_id))
"""

FEWER_DEAD = """
    DELETE FROM nerve_messages m
     USING (SELECT realm_id, message_id,
                   row_number() OVER (PARTITION BY realm_id ORDER BY message_id DESC) AS place
              FROM nerve_messages WHERE dead_at IS NOT NULL) dead
     WHERE m.realm_id = dead.realm_id AND m.message_id = dead.message_id AND dead.place > $1
"""

FORGET_HOLDER = "DELETE FROM nerve_queues WHERE realm_id = :realm_id AND holder = :holder"

DEAD = """
    SELECT m.message_id AS id, realms.name AS realm, q.holder, q.consumer_id AS consumer, q.producer, q.event,
           m.size, m.attempts, m.created_at, m.dead_at
      FROM realms JOIN nerve_messages m USING (realm_id) JOIN nerve_queues q USING (realm_id, queue_id)
     WHERE realms.name = :realm AND m.dead_at IS NOT NULL AND m.message_id < :before
     ORDER BY m.message_id DESC LIMIT :limit
"""

REVIVE = """
    UPDATE nerve_messages m
       SET dead_at = NULL, attempts = 0, timeouts = 0, sent_to = NULL, due_at = now(),
           expires_at = now() + CAST(:seconds AS float8) * interval '1 second'
      FROM realms
     WHERE realms.realm_id = m.realm_id AND realms.name = :realm AND m.message_id = :id
       AND m.dead_at IS NOT NULL
    RETURNING m.queue_id
"""

DISCARD = """
    DELETE FROM nerve_messages m USING realms
     WHERE realms.realm_id = m.realm_id AND realms.name = :realm AND m.message_id = :id
       AND m.dead_at IS NOT NULL
"""


async def open_(db: Door, realm: str, *values: Any, most: int, connection: str) -> int | None:
    """Make a queue or change its options, with what is out over other connections due; its id."""
    rows = await db.fetch(OPEN, realm, *values, most, connection)
    return rows[0]["queue_id"] if rows else None


async def forget(db: Door, realm: str, queue: int) -> None:
    """Delete a queue with what is in it."""
    await db.fetch(FORGET, realm, queue)


async def matching(db: Door, pairs: Sequence[tuple[str, str, str]]) -> list[Any]:
    """The queues for pairs, and all that have a pattern; `number` says for which of the pairs, from 1."""
    realms, producers, events = zip(*pairs, strict=True)
    return await db.fetch(MATCHING, list(realms), list(producers), list(events))


async def waiting(db: Door, realm: str, queues: Collection[int]) -> dict[int, tuple[int, int]]:
    """How many messages wait in queues, and how many characters; those where none does are left out."""
    rows = await db.fetch(WAITING, realm, list(queues))
    return {row["queue_id"]: (row["messages"], row["size"]) for row in rows}


async def keep(db: Door, realm: str, queues: Collection[int], envelope: str, *, seconds: float) -> None:
    """Put a message into those of the queues that are there."""
    await db.fetch(KEEP, realm, list(queues), envelope, len(envelope), seconds)


async def take(
    db: Door, realm: str, queue: int, connection: str, *, window: int, size: int, sendings: int, dead: float
) -> list[Any]:
    """What is to be sent now, at least one row: one without a message says when to come again."""
    return await db.fetch(TAKE, realm, queue, connection, window, size, sendings, dead)


async def drop(db: Door, realm: str, queue: int, ids: Collection[int]) -> None:
    """Delete messages that were sent."""
    await db.fetch(DROP, realm, queue, list(ids))


async def acknowledged(db: Door, realm: str, holder: str, id: int, *, connection: str) -> list[Any]:
    """Delete a message that this connection got: its queue, or None when another got it; no row: unknown."""
    return await db.fetch(ACKNOWLEDGED, realm, holder, id, connection)


async def sweep(db: Door, *, durable: float, other: float, dead: int) -> None:
    """Delete expired messages, queues unused for so many seconds, and all but the newest dead letters."""
    await db.fetch(EXPIRE)
    await db.fetch(FORGET_OLD, durable, other)
    await db.fetch(FEWER_DEAD, dead)


async def forget_holder(connection: AsyncConnection, *, realm_id: int, holder: str) -> None:
    """Delete every queue of somebody who is gone: whoever comes under that name later is somebody else."""
    await connection.execute(sa.text(FORGET_HOLDER), {"realm_id": realm_id, "holder": holder})


async def dead_letters(
    connection: AsyncConnection, *, realm: str, before: int, limit: int
) -> list[DeadLetter]:
    """Dead letters of a realm with a smaller id than `before`, newest first."""
    values = {"realm": realm, "before": before, "limit": limit}
    return [DeadLetter(*row) for row in await connection.execute(sa.text(DEAD), values)]


async def revive(connection: AsyncConnection, *, realm: str, id: int, seconds: float) -> int | None:
    """Put a dead letter back into its queue, whose id this is; None: there is none."""
    values = {"realm": realm, "id": id, "seconds": seconds}
    queue: int | None = (await connection.execute(sa.text(REVIVE), values)).scalar_one_or_none()
    return queue


async def discard(connection: AsyncConnection, *, realm: str, id: int) -> bool:
    """Delete a dead letter; False: there is none."""
    return (await connection.execute(sa.text(DISCARD), {"realm": realm, "id": id})).rowcount > 0
