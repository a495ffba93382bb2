"""Who hears what, once. Every statement that reads messages is composed of these.

In each, `r` is the reader's row of `agents` and `m` the message's row of `conv_messages`.
"""

from __future__ import annotations

HEARS = """(
    m.sender_id IS DISTINCT FROM r.agent_id
    AND NOT COALESCE(
        m.box_id = r.box_id AND (r.kind = 'box' OR (r.kind = 'session' AND m.sender_kind = 'box')), false
    )
)"""
"""The echo rule: nobody hears himself, a bare box none of its sessions, a session not its own bare box."""

ADDRESSED = """(
    m.selector IS NULL
    OR (m.selector = ANY (r.addresses) AND (m.id > r.floor_id OR m.selector IN ('everyone', r.role)))
)"""
"""The selector picks the reader, and did not mean an earlier one of the name; without one, every member.

A role and `everyone` are nobody's name.
"""

UNEXPIRED = "(m.expires_at IS NULL OR m.expires_at > clock_timestamp())"

DELIVERABLE = f"({HEARS} AND {ADDRESSED} AND {UNEXPIRED})"
"""What the feed shows, of the rooms that the reader is in."""

MEMBER = "(c.left_at IS NULL)"
"""`c` is the reader's row of `conv_members`."""

THERE = """
    SELECT (m.created_at BETWEEN c.joined_at AND coalesce(c.left_at, 'infinity')
            OR EXISTS (SELECT FROM past_members p
                        WHERE p.realm_id = c.realm_id AND p.agent_id = c.agent_id AND p.conv_id = c.conv_id
                          AND m.created_at BETWEEN p.joined_at AND p.left_at))
           AND (r.retired_at IS NULL OR r.retired_at > m.created_at)
           AND NOT EXISTS (SELECT FROM past_retirements p
                            WHERE p.realm_id = r.realm_id AND p.agent_id = r.agent_id
                              AND m.created_at BETWEEN p.retired_at AND p.ended_at) AS then
"""
"""Whether the reader was in the room, and not retired, when the message was said."""

BRIEFED = "(m.expires_at IS NOT NULL OR COALESCE(m.created_at > c.briefed_since, true))"
"""Said after the time that the reader's briefing reaches back to, or with an expiry of its own."""

OFFERED = f"""(
    m.id > c.since_id AND {BRIEFED}
    AND (m.expires_at > greatest(c.joined_at, (
            SELECT max(p.ended_at) FROM past_retirements p
             WHERE p.realm_id = r.realm_id AND p.agent_id = r.agent_id))) IS NOT FALSE
)"""
"""Of what was said before the member came, or came again to life: it waited for them when they did."""

WAITS = f"({DELIVERABLE} AND {BRIEFED})"
"""What poll hands over and unread counts, behind the reader's cursor."""

HANDED = f"""(
    m.id BETWEEN k.first_id AND k.last_id AND {HEARS} AND {ADDRESSED} AND {BRIEFED}
    AND (m.expires_at > b.committed_at) IS NOT FALSE
)"""
"""The batch `b` held the message in its room `k`, and not merely what lies on either side of it.

Until it is committed it is handed over again without what has expired: its last answer is what counts.
"""


def taken(by: str) -> str:
    """Some reader that fulfils `by`, a condition on `b`, has committed a batch that held the message."""
    return f"""
        EXISTS (SELECT FROM batch_rooms k
                  JOIN batches b ON b.realm_id = k.realm_id AND b.batch_id = k.batch_id
                  JOIN agents r ON r.realm_id = b.realm_id AND r.agent_id = b.agent_id
                  JOIN conv_members c ON c.realm_id = b.realm_id AND c.agent_id = b.agent_id
                                     AND c.conv_id = k.conv_id
                 WHERE k.realm_id = m.realm_id AND k.conv_id = m.conv_id AND b.committed_at IS NOT NULL
                   AND {by} AND {HANDED})
    """


def state(stale_seconds: str) -> str:
    """The agent's state as far as anyone knows: what a silent notifier said once ages out."""
    fresh = f"r.state = 'offline' OR r.state_at > clock_timestamp() - {stale_seconds} * interval '1 second'"
    return f"CASE WHEN {fresh} THEN r.state ELSE 'unknown' END"


def doubled(stale_seconds: str) -> str:
    """Whether two live processes were noticed on the agent's handle; it ages out as states do."""
    return f"coalesce(r.doubled_at > clock_timestamp() - {stale_seconds} * interval '1 second', false)"
