"""Sessions: minting, taking up again, retiring."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from api.models import Details, Key, Kind, Session
from api.store.agents import retiring
from api.store.door import Door
from api.store.predicates import ADDRESSED, HEARS, MEMBER, UNEXPIRED, WAITS, doubled, state
from api.store.tables import agents, handle_counters

_NOW = sa.func.clock_timestamp()
_SESSION = (
    agents.c.agent_id,
    agents.c.handle,
    agents.c.box_id,
    agents.c.role,
    agents.c.addresses,
    agents.c.retired_at.is_not(None).label("retired"),
)


LIVES = ("idle", "busy", "waiting", "suspended")
"""What only a notifier says, of a process that it sees."""

DOUBLE = f"""
    UPDATE agents r SET doubled_at = clock_timestamp()
     WHERE r.realm_id = :realm_id AND r.agent_id = :agent_id AND r.retired_at IS NULL
       AND ({state(":stale")}) IN {LIVES}
"""

RETIRED_AT = """
    SELECT retired_at FROM agents WHERE realm_id = :realm_id AND agent_id = :agent_id FOR NO KEY UPDATE
"""

# Behind turns of the sweep that are reporting what was for this session, and before the next ones.
BETWEEN_SWEEPS = """
    SELECT FROM sweeps WHERE name IN ('abandoned', 'retired', 'unheard') ORDER BY name FOR UPDATE
"""

# What closed because the session had gone is open again: what was for it alone, unless it moved its cursor
# past by hand, and what waits for it. conv_messages_selector_idx.
REOPEN = f"""
    WITH ended AS (
        INSERT INTO past_retirements (realm_id, agent_id, retired_at)
        SELECT realm_id, agent_id, retired_at FROM agents WHERE realm_id = :realm_id AND agent_id = :agent_id
    )
    DELETE FROM undelivered u
     USING (SELECT m.realm_id, m.id
              FROM agents r
              JOIN conv_messages m ON m.realm_id = r.realm_id AND m.selector = r.addresses[1]
              LEFT JOIN conv_members c
                ON c.realm_id = m.realm_id AND c.agent_id = r.agent_id AND c.conv_id = m.conv_id
             WHERE r.realm_id = :realm_id AND r.agent_id = :agent_id
               AND (c.read_id >= m.id) IS NOT TRUE AND {HEARS} AND {ADDRESSED} AND {UNEXPIRED}
             UNION
            SELECT m.realm_id, m.id
              FROM agents r
              JOIN conv_members c ON c.realm_id = r.realm_id AND c.agent_id = r.agent_id
              JOIN conv_messages m ON m.realm_id = c.realm_id AND m.conv_id = c.conv_id
                                  AND m.selector = ANY (r.addresses) AND m.id > c.last_read_id
             WHERE r.realm_id = :realm_id AND r.agent_id = :agent_id AND {MEMBER} AND {WAITS}) m
     WHERE u.realm_id = m.realm_id AND u.id = m.id AND u.reason = 'retired'
"""

IS_DOUBLED = f"""
    SELECT {doubled("$3")} AS doubled FROM agents r WHERE r.realm_id = $1 AND r.agent_id = $2
"""


async def lock_box(connection: AsyncConnection, *, realm_id: int, box_id: int) -> bool:
    """Let one transaction at a time make sessions of a box; False when the box is gone."""
    box = sa.select(agents.c.agent_id).where(
        agents.c.realm_id == realm_id, agents.c.agent_id == box_id, agents.c.retired_at.is_(None)
    )
    return await connection.scalar(box.with_for_update(key_share=True)) is not None


async def by_key(
    connection: AsyncConnection, *, realm_id: int, box_id: int, key: str
) -> tuple[Session, bytes | None] | None:
    """The session that an earlier check-in with this key made or took up, and the hash of what came with it.

    Keys of before hashes were kept have none. agents_checkin_key, agents_resume_key.
    """
    minted = agents.c.checkin_key == key
    content_hash = sa.case((minted, agents.c.checkin_hash), else_=agents.c.resume_hash)
    found = sa.select(*_SESSION, content_hash.label("content_hash")).where(
        agents.c.realm_id == realm_id,
        agents.c.box_id == box_id,
        minted | (agents.c.resume_key == key),
    )
    row = (await connection.execute(found)).one_or_none()
    return (_as_session(row), row.content_hash) if row else None


async def by_handle(
    connection: AsyncConnection, *, realm_id: int, handle: str
) -> tuple[Kind, Session] | None:
    """Whoever has this handle, with its kind."""
    found = sa.select(agents.c.kind, *_SESSION).where(
        agents.c.realm_id == realm_id, agents.c.handle == handle
    )
    row = (await connection.execute(found)).one_or_none()
    return (row.kind, _as_session(row)) if row else None


async def next_number(connection: AsyncConnection, *, realm_id: int, label: str) -> int:
    """Count a label's handles on; no number ever comes twice."""
    new = insert(handle_counters).values(realm_id=realm_id, label=label, last_n=1)
    counted = new.on_conflict_do_update(
        index_elements=["realm_id", "label"], set_={"last_n": handle_counters.c.last_n + 1}
    )
    number: int = (await connection.execute(counted.returning(handle_counters.c.last_n))).scalar_one()
    return number


async def count_of_box(connection: AsyncConnection, *, realm_id: int, box_id: int) -> int:
    """How many sessions of a box are not retired. agents_box_idx."""
    live = sa.select(sa.func.count()).where(
        agents.c.realm_id == realm_id,
        agents.c.box_id == box_id,
        agents.c.kind == "session",
        agents.c.retired_at.is_(None),
    )
    return (await connection.execute(live)).scalar_one()


async def move_past(connection: AsyncConnection, *, realm_id: int, label: str, number: int) -> None:
    """See that the label's next number is greater than this one."""
    new = insert(handle_counters).values(realm_id=realm_id, label=label, last_n=number)
    await connection.execute(
        new.on_conflict_do_update(
            index_elements=["realm_id", "label"],
            set_={"last_n": sa.func.greatest(handle_counters.c.last_n, new.excluded.last_n)},
        )
    )


async def add_session(
    connection: AsyncConnection,
    *,
    realm_id: int,
    box_id: int,
    handle: str,
    label: str,
    role: str | None,
    addresses: Sequence[str],
    details: Details,
    state: str,
    key: Key | None = None,
) -> Session:
    """A new session's row."""
    new = sa.insert(agents).values(
        realm_id=realm_id,
        box_id=box_id,
        handle=handle,
        kind="session",
        label=label,
        role=role,
        addresses=list(addresses),
        harness=details.harness,
        cwd=details.cwd,
        title=details.title,
        state=state,
        floor_id=_floor_of(realm_id, box_id),
        checkin_key=key.text if key else None,
        checkin_hash=key.content_hash if key else None,
    )
    return _as_session((await connection.execute(new.returning(*_SESSION))).one())


async def take_up(
    connection: AsyncConnection,
    *,
    realm_id: int,
    agent_id: int,
    details: Details,
    state: str,
    key: Key | None = None,
) -> None:
    """Bring an earlier session to life; what is None stays as it was."""
    who = {"realm_id": realm_id, "agent_id": agent_id}
    if await connection.scalar(sa.text(RETIRED_AT), who) is not None:
        await connection.execute(sa.text(BETWEEN_SWEEPS))
        await connection.execute(sa.text(REOPEN), who)
    told = {
        "harness": details.harness,
        "cwd": details.cwd,
        "title": details.title,
        "resume_key": key.text if key else None,
        "resume_hash": key.content_hash if key else None,
    }
    await connection.execute(
        sa.update(agents)
        .where(agents.c.realm_id == realm_id, agents.c.agent_id == agent_id)
        .values(
            retired_at=None,
            offline_since=None,
            state=state,
            state_at=_NOW,
            last_seen=_NOW,
            **{name: value for name, value in told.items() if value is not None},
        )
    )


async def double(connection: AsyncConnection, *, realm_id: int, agent_id: int, stale_seconds: int) -> bool:
    """Note that somebody takes a session up; True when its notifier says that it lives.

    A session that only just checked in is no sign of that: it may be the same one, asking once more.
    """
    values = {"realm_id": realm_id, "agent_id": agent_id, "stale": stale_seconds}
    return (await connection.execute(sa.text(DOUBLE), values)).rowcount > 0


async def is_doubled(db: Door, *, realm_id: int, agent_id: int, stale_seconds: int) -> bool:
    """Whether two live processes were noticed on a session's handle."""
    rows = await db.fetch(IS_DOUBLED, realm_id, agent_id, float(stale_seconds))
    return bool(rows[0]["doubled"])


async def retire(connection: AsyncConnection, *, realm_id: int, agent_id: int) -> None:
    """End one session; twice is once."""
    await connection.execute(retiring().where(agents.c.realm_id == realm_id, agents.c.agent_id == agent_id))


def _floor_of(realm_id: int, box_id: int) -> sa.ScalarSelect[int]:
    """What was for an earlier box of the name is not for the sessions of this one either."""
    box = sa.select(agents.c.floor_id).where(agents.c.realm_id == realm_id, agents.c.agent_id == box_id)
    return box.scalar_subquery()


def _as_session(row: Any) -> Session:
    return Session(
        agent_id=row.agent_id,
        handle=row.handle,
        box_id=row.box_id,
        role=row.role,
        addresses=tuple(row.addresses),
        retired=row.retired,
    )
