"""Who is in the realm, and what the notifiers say of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from api.auth import CallerDep, RecordDep
from api.models import Outcome, Report, RosterRow, State, Wake
from api.routes.paging import Cursor, Limit
from api.routes.wire import Body, Nothing
from api.services import agents, fields
from api.services.cursors import next_cursor

router = APIRouter(prefix="/v1", tags=["agents"])

MOST_SESSIONS = 1000


class Roster(BaseModel):
    """A page of agents."""

    agents: Sequence[RosterRow]
    next_cursor: str | None


class WakeIn(Body):
    """What became of one attempt to wake a session."""

    rung: str
    outcome: Outcome
    reason: str | None = None


class SessionIn(Body):
    """What the notifier knows of one session; `doubled`: a second live process goes by its handle."""

    agent: str
    state: State
    wake: WakeIn | None = None
    doubled: bool = False


class Presence(Body):
    """Several sessions of one box at a time."""

    sessions: list[SessionIn] = Field(max_length=MOST_SESSIONS)


@router.get("/agents")
async def roster(
    record: RecordDep,
    limit: Limit,
    caller: CallerDep,
    retired: Annotated[bool, Query(description="Show those that have retired, too.")] = False,
    cursor: Cursor = "",
) -> Roster:
    """List the agents of the realm by handle."""
    rows = await agents.roster(
        record.db,
        caller=caller,
        after=cursor,
        limit=limit,
        stale_seconds=record.settings.presence_stale_seconds,
        retired=retired,
    )
    return Roster(agents=rows, next_cursor=next_cursor(rows, limit, lambda row: row.agent))


@router.put("/presence")
async def report(record: RecordDep, caller: CallerDep, presence: Presence) -> Nothing:
    """Report states and wakes of the caller's box's sessions: all of them, or nothing."""
    reports = [_report(place, session) for place, session in enumerate(presence.sessions)]
    await agents.report(
        record.db,
        caller=caller,
        reports=reports,
        stale_seconds=record.settings.presence_stale_seconds,
    )
    return Nothing()


def _report(place: int, session: SessionIn) -> Report:
    wake = None
    if session.wake is not None:
        at = f"sessions[{place}].wake"
        fields.line(f"{at}.rung", session.wake.rung)
        fields.line(f"{at}.reason", session.wake.reason)
        wake = Wake(session.wake.rung, session.wake.outcome, session.wake.reason)
    return Report(session.agent, session.state, wake, session.doubled)
