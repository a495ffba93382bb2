"""Reading: what is unread, handing it over once, and committing what was handed over.

Everything that moves a reader forward runs under that reader's lock, taken before the statement's snapshot:
two polls of one reader are one after the other, through whichever replica they come.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from api.store.door import Door, Reader
from api.store.messages import FROM_MESSAGE, MESSAGE
from api.store.predicates import MEMBER, WAITS, taken

_NEWEST = """
    LATERAL (SELECT x.id FROM conv_messages x
              WHERE x.realm_id = c.realm_id AND x.conv_id = c.conv_id ORDER BY x.id DESC LIMIT 1) newest
"""

_AMONG = "($3::bigint[] IS NULL OR c.conv_id = ANY ($3))"
"""Of the rooms that were asked for; null: of all."""

READ_BEFORE = f"(m.id <= {{replay_until_id}} AND {taken('b.agent_id <> $2')}) AS read_before"
"""Said before the reader came, and another one has read it."""

# A pure read: no lock, no transaction id. Most polls end here.
PEEK = f"""
    SELECT EXISTS (SELECT FROM batches b
                    WHERE b.realm_id = $1 AND b.agent_id = $2 AND b.committed_at IS NULL) AS open_batch,
           coalesce(bool_or(newest.id > c.last_read_id), false) AS moved,
           max(newest.id) AS newest_id,
           EXISTS (SELECT FROM agents r
                    WHERE r.realm_id = $1 AND r.agent_id = $2 AND r.retired_at IS NOT NULL) AS retired,
           coalesce(array_agg(c.conv_id), '{{}}') AS rooms
      FROM conv_members c LEFT JOIN {_NEWEST} ON true
     WHERE c.realm_id = $1 AND c.agent_id = $2 AND {MEMBER} AND {_AMONG}
"""

JOINED = f"""
    SELECT v.name, c.conv_id
      FROM conversations v
      JOIN conv_members c ON c.realm_id = v.realm_id AND c.agent_id = $2 AND c.conv_id = v.conv_id
     WHERE v.realm_id = $1 AND {MEMBER} AND v.name = ANY ($3::text[])
"""

OPEN_BATCH = """
    SELECT batch_id, lease FROM batches WHERE realm_id = $1 AND agent_id = $2 AND committed_at IS NULL
"""

POLLED_BEFORE = """
    SELECT batch_id, lease FROM (
        SELECT batch_id, lease, poll_key, greatest(handed_at, committed_at) AS at FROM batches
         WHERE realm_id = $1 AND agent_id = $2 AND poll_key IS NOT NULL
         ORDER BY batch_id DESC LIMIT 1) last
     WHERE poll_key = $3 AND at > clock_timestamp() - interval '24 hours'
"""

# Rooms take turns, oldest first in each, until the count or the bytes are used up; the first message always
# comes. A cursor also passes what is not for this reader, or its own words would be read over for ever.
TAKE = f"""
    WITH r AS MATERIALIZED (
        SELECT * FROM agents WHERE realm_id = $1 AND agent_id = $2 AND retired_at IS NULL
    ), moved AS MATERIALIZED (
        SELECT c.realm_id, c.conv_id, c.last_read_id, c.replay_until_id, c.handed_id, c.briefed_since,
               newest.id AS newest_id
          FROM conv_members c CROSS JOIN {_NEWEST}
         WHERE c.realm_id = $1 AND c.agent_id = $2 AND {MEMBER} AND {_AMONG} AND newest.id > c.last_read_id
           AND EXISTS (SELECT FROM r)
    ), unread AS MATERIALIZED (
        SELECT c.conv_id, m.id, m.size, row_number() OVER (PARTITION BY c.conv_id ORDER BY m.id) AS turn
          FROM moved c CROSS JOIN r CROSS JOIN LATERAL (
              SELECT m.id, m.size FROM conv_messages m
               WHERE m.realm_id = c.realm_id AND m.conv_id = c.conv_id AND m.id > c.last_read_id
                 AND m.id <= c.newest_id AND {WAITS}
               ORDER BY m.id LIMIT $4::int + 1) m
    ), queued AS (
        SELECT conv_id, id, row_number() OVER turns AS place, sum(size) OVER turns AS bytes
          FROM unread WINDOW turns AS (ORDER BY turn, conv_id ROWS UNBOUNDED PRECEDING)
    ), taken AS MATERIALIZED (
        SELECT conv_id, id FROM queued WHERE place <= $4 AND (bytes <= $5 OR place = 1)
    ), reached AS MATERIALIZED (
        SELECT moved.conv_id, t.first_id, t.last_id, moved.replay_until_id, moved.handed_id, moved.newest_id,
               CASE WHEN t.taken = u.unread THEN moved.newest_id ELSE t.last_id END AS cursor_id
          FROM moved
          CROSS JOIN LATERAL (SELECT count(*) AS unread FROM unread WHERE unread.conv_id = moved.conv_id) u
          CROSS JOIN LATERAL (SELECT count(*) AS taken, min(id) AS first_id, max(id) AS last_id
                                FROM taken WHERE taken.conv_id = moved.conv_id) t
    ), batch AS (
        INSERT INTO batches (realm_id, agent_id, lease, poll_key, fresh_until, committed_at)
        SELECT $1, $2, $6, $8, clock_timestamp() + $7 * interval '1 second',
               CASE WHEN $6::text IS NULL THEN clock_timestamp() END
         WHERE EXISTS (SELECT FROM taken)
        RETURNING batch_id
    ), kept AS (
        INSERT INTO batch_rooms (realm_id, batch_id, conv_id, first_id, last_id, cursor_id)
        SELECT $1, batch_id, conv_id, first_id, last_id, cursor_id
          FROM batch, reached WHERE first_id IS NOT NULL
    ), advanced AS (
        UPDATE conv_members c
           SET last_read_id = greatest(c.last_read_id, reached.cursor_id),
               read_id = CASE WHEN reached.first_id IS NULL THEN c.read_id ELSE reached.cursor_id END
          FROM reached
         WHERE c.realm_id = $1 AND c.agent_id = $2 AND c.conv_id = reached.conv_id
           AND reached.cursor_id IS NOT NULL AND ($6::text IS NULL OR reached.first_id IS NULL)
    )
    SELECT {MESSAGE}, (m.id <= reached.replay_until_id) AS replayed,
           (m.id <= reached.handed_id) AS redelivered, reached.newest_id,
           {READ_BEFORE.format(replay_until_id="reached.replay_until_id")},
           (SELECT count(*) FROM unread) > (SELECT count(*) FROM taken) AS more
      FROM taken
      JOIN conv_messages m ON m.realm_id = $1 AND m.id = taken.id
      JOIN reached ON reached.conv_id = m.conv_id {FROM_MESSAGE}
     ORDER BY m.conv_id, m.id
"""

AGAIN = f"""
    SELECT {MESSAGE}, (m.id <= c.replay_until_id) AS replayed, true AS redelivered, newest.id AS newest_id,
           {READ_BEFORE.format(replay_until_id="c.replay_until_id")}
      FROM batch_rooms k
      JOIN agents r ON r.realm_id = k.realm_id AND r.agent_id = $2
      JOIN conv_members c
        ON c.realm_id = k.realm_id AND c.agent_id = $2 AND c.conv_id = k.conv_id AND {MEMBER}
      JOIN conv_messages m ON m.realm_id = k.realm_id AND m.conv_id = k.conv_id
                          AND m.id BETWEEN k.first_id AND k.last_id {FROM_MESSAGE}
      CROSS JOIN {_NEWEST}
     WHERE k.realm_id = $1 AND k.batch_id = $3 AND {WAITS}
     ORDER BY m.conv_id, m.id
"""

# What an open batch holds of a room that its reader has left is nobody's to name any more. The cursor stays,
# and what comes again after joining again is marked.
DROP_LEFT_ROOMS = """
    WITH dropped AS (
        DELETE FROM batch_rooms k
         USING conv_members c, batches b
         WHERE k.realm_id = $1 AND k.batch_id = $3
           AND b.realm_id = $1 AND b.agent_id = $2 AND b.batch_id = $3 AND b.committed_at IS NULL
           AND c.realm_id = $1 AND c.agent_id = $2 AND c.conv_id = k.conv_id AND c.left_at IS NOT NULL
        RETURNING k.conv_id, k.last_id
    )
    UPDATE conv_members c SET handed_id = greatest(c.handed_id, dropped.last_id)
      FROM dropped WHERE c.realm_id = $1 AND c.agent_id = $2 AND c.conv_id = dropped.conv_id
"""

# Its row stays, so that naming it late is no error; without its rooms it moves no cursor and nobody read it.
# It was handed over all the same, so whatever of it may come again is marked.
DROP = """
    WITH closed AS (
        UPDATE batches SET committed_at = clock_timestamp()
         WHERE realm_id = $1 AND agent_id = $2 AND batch_id = $3 AND committed_at IS NULL
        RETURNING batch_id
    ), dropped AS (
        DELETE FROM batch_rooms k USING closed WHERE k.realm_id = $1 AND k.batch_id = closed.batch_id
        RETURNING k.conv_id, k.last_id
    )
    UPDATE conv_members c SET handed_id = greatest(c.handed_id, dropped.last_id)
      FROM dropped WHERE c.realm_id = $1 AND c.agent_id = $2 AND c.conv_id = dropped.conv_id
"""

RENEW = """
    UPDATE batches SET fresh_until = clock_timestamp() + $4 * interval '1 second'
     WHERE realm_id = $1 AND agent_id = $2 AND batch_id = $3
"""

KEY = "UPDATE batches SET poll_key = $4 WHERE realm_id = $1 AND agent_id = $2 AND batch_id = $3"

COMMIT = """
    WITH batch AS (
        UPDATE batches SET committed_at = clock_timestamp()
         WHERE realm_id = $1 AND agent_id = $2 AND lease = $3 AND committed_at IS NULL
        RETURNING batch_id
    )
    UPDATE conv_members c
       SET last_read_id = greatest(c.last_read_id, k.cursor_id), read_id = greatest(c.read_id, k.cursor_id)
      FROM batch_rooms k JOIN batch USING (batch_id)
     WHERE k.realm_id = $1 AND c.realm_id = $1 AND c.agent_id = $2 AND c.conv_id = k.conv_id
"""

KNOWN_LEASE = "SELECT FROM batches WHERE realm_id = $1 AND agent_id = $2 AND lease = $3"

ADVANCE = f"""
    UPDATE conv_members c
       SET last_read_id = greatest(c.last_read_id, least(wanted.id, newest.id)),
           read_id = greatest(c.read_id, least(wanted.id, newest.id))
      FROM conversations v, unnest($3::text[], $4::bigint[]) AS wanted (room, id),
           LATERAL (SELECT coalesce(max(x.id), 0) AS id FROM conv_messages x
                     WHERE x.realm_id = v.realm_id AND x.conv_id = v.conv_id) newest
     WHERE v.realm_id = $1 AND v.name = wanted.room
       AND c.realm_id = $1 AND c.agent_id = $2 AND c.conv_id = v.conv_id AND {MEMBER}
    RETURNING v.name
"""

_WAITING = f"""
    LATERAL (SELECT max(k.cursor_id) AS id FROM batches b JOIN batch_rooms k USING (realm_id, batch_id)
              WHERE b.realm_id = c.realm_id AND b.agent_id = c.agent_id AND b.committed_at IS NULL
                AND b.fresh_until > clock_timestamp() AND k.conv_id = c.conv_id) leased,
    LATERAL (SELECT count(*) AS unread, min(m.id) AS oldest_id,
                    count(*) FILTER (WHERE m.selector IS NOT NULL AND m.selector <> 'everyone') AS addressed,
                    count(*) FILTER (WHERE m.urgent) AS urgent,
                    count(*) FILTER (WHERE m.sender_kind IN ('person', 'box')) AS from_people
               FROM conv_messages m
              WHERE m.realm_id = c.realm_id AND m.conv_id = c.conv_id
                AND m.id > greatest(c.last_read_id, leased.id) AND {WAITS}) waiting
"""
"""Counts what waits behind the cursor and behind a fresh open batch; needs `r` and `c`."""

_UNREAD = f"""
    SELECT r.handle, v.name AS room,
           waiting.unread, waiting.oldest_id, waiting.addressed, waiting.urgent, waiting.from_people
      FROM agents r
      JOIN conv_members c ON c.realm_id = r.realm_id AND c.agent_id = r.agent_id
      JOIN conversations v ON v.realm_id = c.realm_id AND v.conv_id = c.conv_id,
           {_WAITING}
     WHERE r.realm_id = $1 AND {{whose}} AND {MEMBER} AND waiting.unread > 0
"""
UNREAD_OF_AGENT = _UNREAD.format(whose="r.agent_id = $2")
UNREAD_OF_BOX = _UNREAD.format(whose="r.box_id = $2 AND r.retired_at IS NULL")

WAITING = _WAITING


async def peek(db: Door, realm_id: int, agent_id: int, rooms: list[int] | None) -> Any:
    """Whether a poll of these rooms would find something: (open_batch, moved, newest_id, retired, rooms).

    Changes nothing. `rooms`: None for all that the agent is in.
    """
    return (await db.fetch(PEEK, realm_id, agent_id, rooms))[0]


async def joined(db: Door, realm_id: int, agent_id: int, names: Collection[str]) -> dict[str, int]:
    """Of the rooms and addresses that are named, those that the agent is in: name -> conv_id."""
    rows = await db.fetch(JOINED, realm_id, agent_id, list(names))
    return {row["name"]: row["conv_id"] for row in rows}


async def open_batch(reader: Reader) -> Any:
    """The reader's open batch: (batch_id, lease); or None."""
    return await reader.row(OPEN_BATCH)


async def polled_before(reader: Reader, poll_key: str) -> Any:
    """The batch that the last poll with a key handed over, if it had this key: (batch_id, lease); or None."""
    return await reader.row(POLLED_BEFORE, poll_key)


async def take(
    reader: Reader,
    *,
    limit: int,
    max_bytes: int,
    lease: str | None,
    lease_seconds: int,
    poll_key: str | None,
    rooms: list[int] | None,
) -> list[Any]:
    """Hand over the next batch of these rooms. Without a lease it is committed with this transaction."""
    return await reader.rows(TAKE, rooms, limit, max_bytes, lease, lease_seconds, poll_key)


async def again(reader: Reader, batch_id: int) -> list[Any]:
    """A batch's messages once more, without what has expired or is no longer the reader's to see."""
    return await reader.rows(AGAIN, batch_id)


async def drop_left_rooms(reader: Reader, batch_id: int) -> None:
    """Take rooms that the reader has left out of an open batch."""
    await reader.rows(DROP_LEFT_ROOMS, batch_id)


async def drop(reader: Reader, batch_id: int) -> None:
    """Close an open batch of which nothing was taken: no cursor moves."""
    await reader.rows(DROP, batch_id)


async def renew(reader: Reader, *, batch_id: int, lease_seconds: int) -> None:
    """Let an open batch's time begin anew."""
    await reader.rows(RENEW, batch_id, lease_seconds)


async def key(reader: Reader, *, batch_id: int, poll_key: str) -> None:
    """Let the reader's newest batch be the one that `polled_before` finds under this key."""
    await reader.rows(KEY, batch_id, poll_key)


async def knows_lease(db: Door, realm_id: int, agent_id: int, lease: str) -> bool:
    """Whether this reader was ever given the lease."""
    return bool(await db.fetch(KNOWN_LEASE, realm_id, agent_id, lease))


async def commit(reader: Reader, lease: str) -> bool:
    """Commit an open batch by name; one that is committed already stays as it is. False: no such lease."""
    if not await reader.rows(KNOWN_LEASE, lease):
        return False
    await reader.rows(COMMIT, lease)
    return True


async def advance(reader: Reader, rooms: dict[str, int]) -> set[str]:
    """Move cursors forward, never back and never past what exists; the rooms that the reader is in."""
    rows = await reader.rows(ADVANCE, list(rooms), list(rooms.values()))
    return {row["name"] for row in rows}


async def unread_behind(reader: Reader) -> list[Any]:
    """The same counts as `unread_of_agent`, as this transaction leaves them."""
    return await reader.rows(UNREAD_OF_AGENT)


async def unread_of_agent(db: Door, realm_id: int, agent_id: int) -> list[Any]:
    """What waits for this agent, a row a room.

    (handle, room, unread, oldest_id, addressed, urgent, from_people)
    """
    return await db.fetch(UNREAD_OF_AGENT, realm_id, agent_id)


async def unread_of_box(db: Door, realm_id: int, box_id: int) -> list[Any]:
    """The same for every agent of a box that is not retired, the bare box included."""
    return await db.fetch(UNREAD_OF_BOX, realm_id, box_id)
