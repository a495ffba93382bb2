"""What closes with somebody, and opens again, is found among what was for them alone."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from api.db import Database
from api.store import closing, sessions
from tests.conftest import run_sql

OTHERS, THEIRS = 20_000, 20

SCENE = (
    "INSERT INTO realms (name) SELECT 'busy'",
    """INSERT INTO agents (realm_id, handle, kind, addresses, retired_at)
       SELECT realm_id, who.name, 'person', ARRAY[who.name, 'everyone'], gone
         FROM realms, (VALUES ('gone', clock_timestamp()), ('speaker', NULL)) AS who (name, gone)
        WHERE realms.name = 'busy'""",
    "INSERT INTO conversations (realm_id, name) SELECT realm_id, 'api' FROM realms WHERE name = 'busy'",
    """INSERT INTO conv_members (realm_id, agent_id, conv_id, joined_at)
       SELECT realm_id, agent_id, conv_id, clock_timestamp()
         FROM agents JOIN conversations v USING (realm_id) WHERE handle = 'gone' AND v.name = 'api'""",
    f"""INSERT INTO conv_messages (realm_id, conv_id, sender_id, sender_kind, body, size, selector)
        SELECT realm_id, conv_id, agent_id, 'person', 'x', 1,
               CASE WHEN n <= {THEIRS} THEN 'gone' WHEN n % 2 = 0 THEN 'other' || n % 500 END
          FROM agents JOIN conversations v USING (realm_id), generate_series(1, {OTHERS}) AS n
         WHERE handle = 'speaker' AND v.name = 'api'""",
    """INSERT INTO undelivered (realm_id, id, reason)
        SELECT realm_id, id, 'retired' FROM conv_messages WHERE selector <> 'gone'""",
    "ANALYZE",
)


def read(plan: dict[str, Any]) -> Iterator[int]:
    """How many rows each step of a plan got of tables that grow with what is said."""
    if plan.get("Relation Name") in ("conv_messages", "undelivered") and plan["Node Type"] != "ModifyTable":
        yield (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
    for part in plan.get("Plans", ()):
        yield from read(part)


@pytest.mark.parametrize("what", ["retired", "reopened"])
async def test_of_a_busy_room_only_what_was_for_them_is_read(what: str, database_url: str) -> None:
    await run_sql(database_url, *SCENE)
    db = Database(database_url)
    try:
        async with db.transaction() as tx:
            who = await tx.execute(sa.text("SELECT * FROM agents WHERE handle = 'gone'"))
            gone = who.one()
            now = gone.retired_at + dt.timedelta(seconds=1.5)
            statement = closing.KINDS["retired"] if what == "retired" else sessions.REOPEN
            values = {
                "realm_id": gone.realm_id,
                "agent_id": gone.agent_id,
                "since": now,
                "now": now,
                "most": 500,
            }
            explained = await tx.scalar(sa.text(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}"), values)
    finally:
        await db.close()
    rows = list(read(explained[0]["Plan"]))
    assert THEIRS <= sum(rows) <= 5 * THEIRS
