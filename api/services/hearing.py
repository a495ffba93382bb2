"""Who hears what is sent to an address: a hidden room stands behind each, and its members hear it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from api.db import Transaction
from api.store import rooms

BRIEFED = 20
BRIEFED_WITHIN = dt.timedelta(hours=24)
"""How many messages of before its start a session still hears, of its label, its role and everyone, and how
long ago they may have been said; those with `ttl_seconds` are heard for as long as that says."""


async def hear(
    tx: Transaction, *, realm_id: int, agent_id: int, addresses: Sequence[str], briefed: frozenset[str]
) -> None:
    """Make an agent hear its addresses; those that are `briefed` with the newest messages of before."""
    for address in sorted(addresses):
        conv_id, _ = await rooms.create(tx, realm_id=realm_id, name=f"@{address}")
        await rooms.join(
            tx,
            realm_id=realm_id,
            agent_id=agent_id,
            conv_id=conv_id,
            backfill=BRIEFED if address in briefed else 0,
            within=BRIEFED_WITHIN if address in briefed else None,
        )
