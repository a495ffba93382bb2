"""Messages in, and single messages out."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence
from typing import Any

from api.store.door import Door
from api.store.pages import MORE, page
from api.store.predicates import ADDRESSED, HEARS, MEMBER, THERE, UNEXPIRED, state

_SEQUENCE = "pg_get_serial_sequence('conv_messages', 'id')"

COLUMNS = (
    ("realm_id", "int"),
    ("conv_id", "bigint"),
    ("sender_id", "bigint"),
    ("sender_kind", "text"),
    ("box_id", "bigint"),
    ("selector", "text"),
    ("client_id", "text"),
    ("content_hash", "bytea"),
    ("type", "text"),
    ("body", "text"),
    ("payload", "jsonb"),
    ("size", "int"),
    ("urgent", "bool"),
    ("thread_id", "text"),
    ("in_reply_to", "bigint"),
    ("relay_of", "bigint"),
    ("hop_limit", "smallint"),
    ("late", "bool"),
    ("ttl_seconds", "float8"),
    ("in_room", "bool"),
)
"""What `say` takes, a list a column. `ttl_seconds` becomes `expires_at` by the database's clock; `in_room`
asks for the sender's membership, which an address does not."""

_NAMES = ", ".join(name for name, _ in COLUMNS[:-2])
# Inside a SELECT the planner cannot see an array's length: it keeps one plan for batches of every size.
_ARRAYS = ", ".join(f"(SELECT ${place}::{type_}[])" for place, (_, type_) in enumerate(COLUMNS, start=4))


def _accepted(stale_seconds: str) -> str:
    """An agent as a receipt names it."""
    return f"json_build_object('agent', r.handle, 'state', {state(stale_seconds)})"


_AUDIENCE = f"""
    SELECT c.realm_id, c.conv_id, r.agent_id, r.kind, r.box_id, r.role, r.addresses,
           r.floor_id, r.handle, {_accepted("$2")} AS accepted
      FROM conv_members c
      JOIN agents r ON r.realm_id = c.realm_id AND r.agent_id = c.agent_id
     WHERE {MEMBER} AND r.retired_at IS NULL
"""
"""Who is in which room, each as receipts name it."""


def _receipt(audience: str) -> str:
    """Of an audience, those who hear the message `m`, and the boxes and people to nudge for them."""
    return f"""
        SELECT coalesce(json_agg(r.accepted ORDER BY r.handle), '[]')::text AS accepted,
               coalesce(array_agg(DISTINCT coalesce(r.box_id, r.agent_id)), '{{}}') AS listeners
          FROM {audience} r
         WHERE r.realm_id = m.realm_id AND r.conv_id = m.conv_id AND {HEARS} AND {ADDRESSED}
    """


HELD = "55P03"
"""The SQLSTATE of a say that waited too long for a lock; nothing of it was stored."""

PATIENCE = "set_config('lock_timeout', '250', true)"
"""How many milliseconds a lock is waited for: a commit takes a few, and whoever holds it longer is stuck."""

# Of what was said when nobody was there whom it was for: when it closes, should nobody come. A session that
# comes later can be briefed with what is for a role, for everyone, or for a label of a box that is there; in
# a room such a message waits for whoever joins. What is for a stranger to the room closes with the stranger.
_DUE = f"""
    SELECT m.realm_id, m.id, CASE WHEN later.come THEN m.created_at + $3::interval ELSE clock_timestamp() END
      FROM answered m
      JOIN conversations v ON v.realm_id = m.realm_id AND v.conv_id = m.conv_id
     CROSS JOIN LATERAL (
           SELECT m.selector = 'everyone' OR EXISTS (
               SELECT FROM agents r
                 LEFT JOIN agents its ON its.realm_id = r.realm_id AND its.agent_id = r.box_id
                 LEFT JOIN agents box ON box.realm_id = r.realm_id AND box.handle = its.addresses[1]
                WHERE r.realm_id = m.realm_id
                  AND (r.role = m.selector OR (r.label = m.selector AND r.addresses[1] <> m.selector
                                               AND box.retired_at IS NULL))) AS come) later
     WHERE m.selector IS NOT NULL AND m.accepted = '[]'
       AND CASE WHEN later.come THEN v.hidden AND m.expires_at IS NULL
                ELSE NOT EXISTS (SELECT FROM agents r WHERE r.realm_id = m.realm_id AND r.retired_at IS NULL
                                    AND {HEARS} AND {ADDRESSED}) END
"""

# One statement for a whole batch. The rooms' locks, in order, are held through the commit, and ids are drawn
# under them: within a room, commit order is id order. The cursor of every reader rests on that. The rooms'
# members are looked up once for all messages of a batch.
SAY = f"""
    WITH patience AS MATERIALIZED (
        SELECT {PATIENCE}
    ), locked AS MATERIALIZED (
        SELECT pg_advisory_xact_lock(room) FROM patience CROSS JOIN unnest((SELECT $1::bigint[])) AS room
    ), m AS MATERIALIZED (
        SELECT nextval({_SEQUENCE}) AS id, clock_timestamp() AS created_at, said.*
          FROM (SELECT count(*) FROM locked) AS every_lock,
               unnest({_ARRAYS}) WITH ORDINALITY AS said ({", ".join(name for name, _ in COLUMNS)}, place)
         WHERE NOT in_room OR (
               SELECT {MEMBER} FROM conv_members c
                WHERE c.realm_id = said.realm_id AND c.agent_id = said.sender_id AND c.conv_id = said.conv_id)
         ORDER BY place
    ), stored AS (
        INSERT INTO conv_messages (id, created_at, expires_at, {_NAMES}) OVERRIDING SYSTEM VALUE
        SELECT id, created_at, created_at + ttl_seconds * interval '1 second', {_NAMES} FROM m
            ON CONFLICT (realm_id, sender_id, client_id) WHERE client_id IS NOT NULL DO NOTHING
        RETURNING id, expires_at
    ), audience AS MATERIALIZED (
        {_AUDIENCE} AND (c.realm_id, c.conv_id) IN (SELECT realm_id, conv_id FROM m)
    ), answered AS MATERIALIZED (
        SELECT m.place, m.id, m.realm_id, m.conv_id, m.sender_id, m.sender_kind, m.box_id, m.selector,
               m.created_at, stored.expires_at, a.accepted, a.listeners
          FROM stored JOIN m USING (id) CROSS JOIN LATERAL ({_receipt("audience")}) a
    ), expected AS (
        INSERT INTO unheard (realm_id, id, due_at) {_DUE}
    )
    SELECT place, id, created_at, expires_at, accepted, listeners FROM answered
"""

# Shared, so that two who look do not see each other.
HELD_ROOMS = """
    SELECT room FROM unnest($1::bigint[]) AS room WHERE NOT pg_try_advisory_xact_lock_shared(room)
"""

MESSAGE = """
    m.id, v.name AS room, coalesce(s.handle, 'system') AS sender, m.sender_kind, b.handle AS box, m.selector,
    m.type, m.body, m.payload::text AS payload, m.urgent, m.client_id, m.thread_id, m.in_reply_to, m.relay_of,
    m.hop_limit, m.late, m.created_at, m.expires_at, m.size
"""
"""The columns that every reading statement returns for a message; needs FROM_MESSAGE's aliases."""

FROM_MESSAGE = """
      JOIN conversations v ON v.realm_id = m.realm_id AND v.conv_id = m.conv_id
      LEFT JOIN agents s ON s.realm_id = m.realm_id AND s.agent_id = m.sender_id
      LEFT JOIN agents b ON b.realm_id = m.realm_id AND b.agent_id = m.box_id
"""

BY_CLIENT_ID = f"""
    SELECT {MESSAGE}, m.conv_id, m.content_hash, a.accepted
      FROM conv_messages m {FROM_MESSAGE} CROSS JOIN LATERAL (
           SELECT coalesce(json_agg({_accepted("$2")} ORDER BY r.handle), '[]')::text AS accepted
             FROM conv_members c
             JOIN agents r ON r.realm_id = c.realm_id AND r.agent_id = c.agent_id
            CROSS JOIN LATERAL ({THERE}) there
            WHERE c.realm_id = m.realm_id AND c.conv_id = m.conv_id AND {HEARS} AND {ADDRESSED}
              AND there.then) a
     WHERE m.realm_id = $1 AND m.sender_id = $3 AND m.client_id = $4
"""


def _readable(by: str) -> str:
    """Who may read: a room's current members; of an address, the sender and those whom the selector matches.

    `by` is the agent_id of `r`.
    """
    return f"""(
        (v.hidden AND (m.sender_id = {by} OR {ADDRESSED}))
        OR (NOT v.hidden AND EXISTS (
            SELECT FROM conv_members c
             WHERE c.realm_id = m.realm_id AND c.agent_id = {by} AND c.conv_id = m.conv_id AND {MEMBER}))
    )"""


READABLE = _readable("$2")

PASSED_ON = "(m.type = 'task.request' OR m.relay_of IS NOT NULL)"
"""What costs a hop; notes, replies and the record's own messages do not."""

BY_ID = f"""
    SELECT {MESSAGE}, m.conv_id, m.sender_id, {UNEXPIRED} AS unexpired, {PASSED_ON} AS passed_on
      FROM conv_messages m {FROM_MESSAGE}
      JOIN agents r ON r.realm_id = m.realm_id AND r.agent_id = $2
     WHERE m.realm_id = $1 AND m.id = $3 AND {READABLE}
"""

ASKS = "coalesce(m.payload ? 'output_schema', false)"
LONGEST_WAY = 1000
"""Of replies to replies, so many are followed back to what was asked."""

# Back along what was answered, as far as the caller may read it, to what was asked for first: a request, or
# whatever else named a schema.
ASKED = f"""
    WITH RECURSIVE answered AS (
        SELECT m.id, m.in_reply_to, m.type, {ASKS} AS asks, 1 AS steps
          FROM conv_messages m WHERE m.realm_id = $1 AND m.id = $3
         UNION ALL
        SELECT m.id, m.in_reply_to, m.type, {ASKS}, steps + 1
          FROM answered
          JOIN conv_messages m ON m.realm_id = $1 AND m.id = answered.in_reply_to
          JOIN conversations v ON v.realm_id = m.realm_id AND v.conv_id = m.conv_id
          JOIN agents r ON r.realm_id = m.realm_id AND r.agent_id = $2
         WHERE NOT answered.asks AND answered.type <> 'task.request' AND steps < {LONGEST_WAY} AND {READABLE}
    )
    SELECT m.payload::text AS payload
      FROM answered JOIN conv_messages m ON m.realm_id = $1 AND m.id = answered.id
     WHERE answered.asks
"""

# Where nothing was passed on yet, the others count; never the record's own, which have no sender.
FEWEST_HOPS = f"""
    SELECT m.thread_id, m.hop_limit, s.handle AS sender
      FROM conv_messages m
      JOIN conversations v ON v.realm_id = m.realm_id AND v.conv_id = m.conv_id
      JOIN agents s ON s.realm_id = m.realm_id AND s.agent_id = m.sender_id
      JOIN agents r ON r.realm_id = m.realm_id AND r.agent_id = $2
     WHERE m.realm_id = $1 AND m.thread_id = $3 AND {READABLE}
     ORDER BY {PASSED_ON} DESC, m.hop_limit, m.id LIMIT 1
"""

# Back along what was passed on: a reader, who passed something on to them, who to those. A thread_id that
# somebody merely named leads to nobody.
ORIGIN_OF_THREAD = f"""
    WITH RECURSIVE reader (agent_id) AS (
        SELECT $2::bigint
         UNION
        SELECT m.sender_id
          FROM reader
          JOIN agents r ON r.realm_id = $1 AND r.agent_id = reader.agent_id
          JOIN conv_messages m ON m.realm_id = $1 AND m.thread_id = $3 AND {PASSED_ON}
          JOIN conversations v ON v.realm_id = m.realm_id AND v.conv_id = m.conv_id
         WHERE {_readable("r.agent_id")}
    )
    SELECT s.handle
      FROM reader
      JOIN agents r ON r.realm_id = $1 AND r.agent_id = reader.agent_id
      JOIN conv_messages m ON m.realm_id = $1 AND m.thread_id = $3
      JOIN conversations v ON v.realm_id = m.realm_id AND v.conv_id = m.conv_id
      JOIN agents s ON s.realm_id = m.realm_id AND s.agent_id = m.sender_id
     WHERE {_readable("r.agent_id")}
     ORDER BY m.id LIMIT 1
"""

_THREAD = f"""
    SELECT m.id, m.size
      FROM conv_messages m
      JOIN conversations v ON v.realm_id = m.realm_id AND v.conv_id = m.conv_id
      JOIN agents r ON r.realm_id = m.realm_id AND r.agent_id = $2
     WHERE m.realm_id = $1 AND m.thread_id = $3 AND m.id > $4 AND {READABLE}
     ORDER BY m.id LIMIT $5::int + 1
"""
THREAD = f"""
    {page(_THREAD, order="id", limit="$5")}
    SELECT {MESSAGE}, {MORE}
      FROM page JOIN conv_messages m ON m.realm_id = $1 AND m.id = page.id {FROM_MESSAGE}
     ORDER BY m.id
"""


def _history(order: str) -> str:
    candidates = f"""
        SELECT m.id, m.size FROM conv_messages m
         WHERE m.realm_id = $1 AND m.conv_id = $2
           AND ($3::bigint IS NULL OR m.id < $3) AND ($4::bigint IS NULL OR m.id > $4)
           AND ($5::text IS NULL OR m.thread_id = $5)
         ORDER BY m.id {order} LIMIT $6::int + 1
    """
    return f"""
        {page(candidates, order=f"id {order}", limit="$6")}
        SELECT {MESSAGE}, {MORE}
          FROM page JOIN conv_messages m ON m.realm_id = $1 AND m.id = page.id {FROM_MESSAGE}
         ORDER BY m.id
    """


NEWEST_FIRST = _history("DESC")
OLDEST_FIRST = _history("ASC")


async def say(
    db: Door,
    columns: Sequence[Sequence[Any]],
    *,
    rooms: list[int],
    stale_seconds: int,
    briefed: dt.timedelta,
) -> list[Any]:
    """Store a batch: rows of (place, id, created_at, expires_at, accepted, listeners), places from 1.

    A row that is missing was not stored: the sender is no member, or its client_id came before. Where a lock
    is not to be had in time, the door refuses the whole batch with HELD. `columns` holds one list a column of
    COLUMNS; `rooms` the distinct conv_ids, ascending, since every batch must lock in the same order.
    `briefed`: how long a message that nobody is there for waits for sessions that come later.
    """
    return await db.fetch(SAY, rooms, stale_seconds, briefed, *columns)


async def held(db: Door, rooms: Collection[int]) -> set[int]:
    """Those of the rooms whose lock somebody holds at this moment."""
    return {row["room"] for row in await db.fetch(HELD_ROOMS, list(rooms))}


async def by_client_id(db: Door, *, realm_id: int, stale_seconds: int, sender_id: int, client_id: str) -> Any:
    """What this sender stored under this client_id, and for whom it was then, with their states; or None."""
    rows = await db.fetch(BY_CLIENT_ID, realm_id, stale_seconds, sender_id, client_id)
    return rows[0] if rows else None


async def by_id(db: Door, *, realm_id: int, agent_id: int, message_id: int) -> Any:
    """One message, if the agent may read it; or None."""
    rows = await db.fetch(BY_ID, realm_id, agent_id, message_id)
    return rows[0] if rows else None


async def history(
    db: Door,
    *,
    realm_id: int,
    conv_id: int,
    before: int | None,
    after: int | None,
    thread_id: str | None,
    limit: int,
) -> list[Any]:
    """A page of a room's messages, oldest first: the newest of them, or with `after` alone the next."""
    statement = OLDEST_FIRST if after is not None and before is None else NEWEST_FIRST
    return await db.fetch(statement, realm_id, conv_id, before, after, thread_id, limit)


async def asked(db: Door, *, realm_id: int, agent_id: int, message_id: int) -> str | None:
    """The payload, with a schema, of the nearest request that a reply to the message answers; or None."""
    rows = await db.fetch(ASKED, realm_id, agent_id, message_id)
    return rows[0]["payload"] if rows else None


async def fewest_hops(db: Door, *, realm_id: int, agent_id: int, thread_id: str) -> list[Any]:
    """What has the fewest hops of what the agent may read of the thread: (thread_id, hop_limit, sender)."""
    return await db.fetch(FEWEST_HOPS, realm_id, agent_id, thread_id)


async def origin_of_thread(db: Door, *, realm_id: int, agent_id: int, thread_id: str | None) -> str | None:
    """The handle of whoever said the first message of the thread that reached the agent; or None."""
    rows = await db.fetch(ORIGIN_OF_THREAD, realm_id, agent_id, thread_id)
    return rows[0]["handle"] if rows else None


async def thread(
    db: Door, *, realm_id: int, agent_id: int, thread_id: str, after: int, limit: int
) -> list[Any]:
    """A page of the thread's messages behind `after` that the agent may read, oldest first."""
    return await db.fetch(THREAD, realm_id, agent_id, thread_id, after, limit)
