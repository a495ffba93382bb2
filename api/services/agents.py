"""Who is in the realm, and what their notifiers say of them."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from api.db import Database
from api.errors import BadField
from api.models import Caller, Report, RosterRow
from api.services.handles import is_handle, own_box
from api.store import agents as store

log = structlog.get_logger()


async def report(db: Database, *, caller: Caller, reports: Sequence[Report], stale_seconds: int) -> None:
    """Keep what a notifier knows of its own box's sessions: all of it, or nothing.

    Raises:
        BoxOnly: the token is no box's.
        BadField: one of them is not a session of this box, or comes twice.
    """
    box, box_id = own_box(caller)
    named = [each.agent for each in reports]
    async with db.transaction() as tx:
        possible = [handle for handle in named if is_handle(handle)]
        own = await store.own(
            tx, realm_id=caller.realm_id, box_id=box_id, handles=possible, stale_seconds=stale_seconds
        )
        for place, handle in enumerate(named):
            if handle not in own:
                raise BadField(f"sessions[{place}].agent", f"{handle} is no session of {box}", agent=handle)
            if handle in named[:place]:
                raise BadField(f"sessions[{place}].agent", f"{handle} comes twice", agent=handle)
        await store.report(tx, realm_id=caller.realm_id, reports=reports)
    for each in reports:
        if each.doubled and not own[each.agent]:
            log.warning("handle_doubled", realm=caller.realm, agent=each.agent, noticed_by="notifier")


async def roster(
    db: Database, *, caller: Caller, after: str, limit: int, stale_seconds: int, retired: bool
) -> list[RosterRow]:
    """Who is in the caller's realm, by handle, beginning after `after`."""
    return await store.roster(
        db,
        realm_id=caller.realm_id,
        you=caller.agent_id,
        after=after,
        limit=limit,
        stale_seconds=stale_seconds,
        retired=retired,
    )
