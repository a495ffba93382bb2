"""Agents: boxes and people come and go; what is known of everybody's state."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from api.models import Kind, Report, RosterRow
from api.store.door import Door
from api.store.predicates import doubled, state
from api.store.tables import agents, conv_members

_NOW = sa.func.clock_timestamp()

# agents_realm_id_handle_key
ROSTER = f"""
    SELECT r.handle AS agent, r.kind, b.handle AS box, r.role, r.harness, r.cwd, r.title,
           {state("$4")} AS state, {doubled("$4")} AS doubled, r.last_seen, r.offline_since,
           r.retired_at IS NOT NULL AS retired, r.agent_id = $6 AS you
      FROM agents r LEFT JOIN agents b ON b.realm_id = r.realm_id AND b.agent_id = r.box_id
     WHERE r.realm_id = $1 AND r.handle > $2 AND ($5 OR r.retired_at IS NULL)
     ORDER BY r.handle LIMIT $3
"""

OWN = f"""
    SELECT r.handle, {doubled(":stale")} AS doubled FROM agents r
     WHERE r.realm_id = :realm_id AND r.box_id = :box_id AND r.kind = 'session' AND r.handle = ANY (:handles)
"""

# A row that somebody else holds is left for the next time, so that this never waits.
SEEN = """
    UPDATE agents SET last_seen = clock_timestamp()
      FROM (SELECT a.realm_id, a.agent_id
              FROM unnest($1::int[], $2::bigint[]) AS s (realm_id, agent_id)
              JOIN agents a USING (realm_id, agent_id)
               FOR NO KEY UPDATE OF a SKIP LOCKED) AS s
     WHERE agents.realm_id = s.realm_id AND agents.agent_id = s.agent_id
"""

# No name holds a "~", so that nobody can ever be called what an earlier holder of a name is called then.
RENAME_EARLIER = """
    UPDATE agents SET handle = handle || '~' || agent_id WHERE realm_id = :realm_id AND handle = :name
"""

ADD_HOLDER = """
    WITH drawn AS (SELECT nextval(pg_get_serial_sequence('agents', 'agent_id')) AS id)
    INSERT INTO agents (realm_id, agent_id, box_id, handle, kind, addresses, floor_id) OVERRIDING SYSTEM VALUE
    SELECT :realm_id, id, CASE WHEN :kind = 'box' THEN id END, :name, :kind, ARRAY[:name, 'everyone'],
           CASE WHEN :again THEN (SELECT coalesce(max(m.id), 0) FROM conv_messages m
                                   WHERE m.realm_id = :realm_id) ELSE 0 END
      FROM drawn
    RETURNING agent_id
"""


async def lock_holder(connection: AsyncConnection, *, realm_id: int, name: str) -> None:
    """Wait until nobody makes sessions of a box that is about to go."""
    holder = sa.select(agents.c.agent_id).where(agents.c.realm_id == realm_id, agents.c.handle == name)
    await connection.execute(holder.with_for_update(key_share=True))


async def add_holder(connection: AsyncConnection, *, realm_id: int, name: str, kind: Kind) -> int:
    """A new box or person, whose name nobody holds.

    Who had the name before is another agent, which keeps what it said under `<name>~<its agent_id>`. What was
    addressed to the name or its labels until now is not for the new one.
    """
    values = {"realm_id": realm_id, "name": name}
    again = (await connection.execute(sa.text(RENAME_EARLIER), values)).rowcount > 0
    added = await connection.execute(sa.text(ADD_HOLDER), {**values, "kind": kind, "again": again})
    agent_id: int = added.scalar_one()
    return agent_id


async def retire_holder(connection: AsyncConnection, *, realm_id: int, name: str) -> None:
    """End a box with all its sessions, or a person, and their memberships."""
    own = sa.select(agents.c.agent_id).where(agents.c.realm_id == realm_id, agents.c.handle == name)
    holder = own.scalar_subquery()
    its = (agents.c.agent_id == holder) | (agents.c.box_id == holder)
    gone = retiring().where(agents.c.realm_id == realm_id, its).returning(agents.c.agent_id)
    ended = list(await connection.scalars(gone))
    left = sa.update(conv_members).where(
        conv_members.c.realm_id == realm_id,
        conv_members.c.agent_id.in_(ended),
        conv_members.c.left_at.is_(None),
    )
    await connection.execute(left.values(left_at=_NOW))


async def own(
    connection: AsyncConnection, *, realm_id: int, box_id: int, handles: Collection[str], stale_seconds: int
) -> dict[str, bool]:
    """Those of the handles that are sessions of this box, and whether each is known to be doubled."""
    values = {"realm_id": realm_id, "box_id": box_id, "handles": list(handles), "stale": stale_seconds}
    return {row.handle: row.doubled for row in await connection.execute(sa.text(OWN), values)}


async def report(connection: AsyncConnection, *, realm_id: int, reports: Sequence[Report]) -> None:
    """Keep what a notifier reports; rows are taken in one order, so that reports never block each other."""
    for each in sorted(reports, key=lambda each: each.agent):
        values: dict[str, Any] = {"state": each.state, "state_at": _NOW, "offline_since": None}
        if each.state == "offline":
            values |= {"offline_since": sa.func.coalesce(agents.c.offline_since, _NOW), "doubled_at": None}
        if each.doubled:
            values["doubled_at"] = _NOW
        if each.wake is not None:
            values |= {
                "wake_rung": each.wake.rung,
                "wake_outcome": each.wake.outcome,
                "wake_reason": each.wake.reason,
                "wake_at": _NOW,
            }
        await connection.execute(
            sa.update(agents)
            .where(agents.c.realm_id == realm_id, agents.c.handle == each.agent)
            .values(values)
        )


async def roster(
    db: Door, *, realm_id: int, you: int, after: str, limit: int, stale_seconds: int, retired: bool
) -> list[RosterRow]:
    """Agents by handle, beginning after `after`; with `retired`, those too."""
    rows = await db.fetch(ROSTER, realm_id, after, limit, float(stale_seconds), retired, you)
    return [RosterRow(**row) for row in rows]


async def seen(db: Door, who: Collection[tuple[int, int]]) -> None:
    """Note that these (realm_id, agent_id) have just made a call."""
    await db.fetch(SEEN, [realm_id for realm_id, _ in who], [agent_id for _, agent_id in who])


def retiring() -> sa.Update:
    """The end of whoever a condition is added for; twice is once."""
    return sa.update(agents).values(
        state="offline",
        state_at=_NOW,
        offline_since=sa.func.coalesce(agents.c.offline_since, _NOW),
        retired_at=sa.func.coalesce(agents.c.retired_at, _NOW),
    )
