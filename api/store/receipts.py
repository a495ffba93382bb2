"""Receipts: whom a message was for, who has taken it, and what is known of those who have not."""

from __future__ import annotations

from typing import Any

from api.store.door import Door
from api.store.predicates import ADDRESSED, HANDED, HEARS, MEMBER, OFFERED, THERE, state

# Reading is a committed batch that held the message, not a cursor that went past it. Whoever the message was
# for, or has read it, stays in its receipt when they go; who came later is in it when it was theirs to read.
RECEIPT = f"""
    SELECT r.handle AS agent, {state("$3")} AS state, r.offline_since,
           there.then AS accepted,
           c.last_read_id >= m.id AS passed,
           read.at AS read_at, r.retired_at IS NOT NULL AS retired, c.left_at IS NOT NULL AS has_left,
           EXISTS (SELECT FROM batch_rooms k JOIN batches b USING (realm_id, batch_id)
                    WHERE k.realm_id = m.realm_id AND k.conv_id = m.conv_id AND b.agent_id = r.agent_id
                      AND {HANDED} AND b.committed_at IS NULL
                      AND b.fresh_until > clock_timestamp()) AS leased,
           m.expires_at <= clock_timestamp() AS expired,
           r.wake_rung, r.wake_outcome, r.wake_reason,
           EXTRACT(epoch FROM clock_timestamp() - r.wake_at)::float8 AS woken_seconds
      FROM conv_messages m
      JOIN conv_members c ON c.realm_id = m.realm_id AND c.conv_id = m.conv_id
      JOIN agents r ON r.realm_id = c.realm_id AND r.agent_id = c.agent_id
     CROSS JOIN LATERAL (
           SELECT min(b.committed_at) AS at FROM batch_rooms k JOIN batches b USING (realm_id, batch_id)
            WHERE k.realm_id = m.realm_id AND k.conv_id = m.conv_id AND b.agent_id = r.agent_id
              AND {HANDED}) read
     CROSS JOIN LATERAL ({THERE}) there
     WHERE m.realm_id = $1 AND m.id = $2 AND {HEARS} AND {ADDRESSED}
       AND (r.retired_at IS NULL OR r.retired_at > m.created_at)
       AND (({MEMBER} AND {OFFERED}) OR read.at IS NOT NULL OR there.then)
     ORDER BY r.handle
"""


async def receipt(db: Door, *, realm_id: int, message_id: int, stale_seconds: int) -> list[Any]:
    """One row a reader whom the message is for: what is known of it and of them."""
    return await db.fetch(RECEIPT, realm_id, message_id, stale_seconds)
