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

ADDRESSED = "(m.selector IS NULL OR m.selector = ANY (r.addresses))"
"""The selector picks the reader; a message without one is for every member."""

UNEXPIRED = "(m.expires_at IS NULL OR m.expires_at > clock_timestamp())"

DELIVERABLE = f"({HEARS} AND {ADDRESSED} AND {UNEXPIRED})"
"""What poll hands over and unread counts, of the rooms that the reader is in."""

MEMBER = "(c.left_at IS NULL)"
"""`c` is the reader's row of `conv_members`."""


def state(stale_seconds: str) -> str:
    """The agent's state as far as anyone knows: what a silent notifier said once ages out."""
    fresh = f"r.state = 'offline' OR r.state_at > clock_timestamp() - {stale_seconds} * interval '1 second'"
    return f"CASE WHEN {fresh} THEN r.state ELSE 'unknown' END"
