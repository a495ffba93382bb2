"""Where a message stands: never more than is known."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Accepted:
    """Whom the message was for when it was said, with the state of now."""

    agent: str
    state: str


@dataclass(frozen=True, slots=True)
class ReadBy:
    """Who has taken it, and when the batch that held it was committed."""

    agent: str
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class UnreadBy:
    """Who has not, and why, as far as anyone knows."""

    agent: str
    state: str
    why: str


@dataclass(frozen=True, slots=True)
class FullReceipt:
    """A receipt as it stands now."""

    accepted: list[Accepted]
    read_by: list[ReadBy]
    unread_by: list[UnreadBy]


def from_rows(rows: list[Any]) -> FullReceipt:
    """Sort the readers into those who have taken the message and those who have not."""
    return FullReceipt(
        accepted=[Accepted(row["agent"], row["state"]) for row in rows if row["accepted"]],
        read_by=[ReadBy(row["agent"], row["read_at"]) for row in rows if row["read_at"] is not None],
        unread_by=[UnreadBy(row["agent"], row["state"], why(row)) for row in rows if row["read_at"] is None],
    )


DIALOG, TYPING, BUSY, NO_WAY = (
    "held: permission dialog open",
    "held: someone is typing",
    "busy",
    "no way to wake it",
)

_HOLDS = {
    "dialog open": DIALOG,
    "draft": TYPING,
    "recent key": TYPING,
    "busy": BUSY,
    "output still moving": BUSY,
    "offline": "offline",
    "pane gone": NO_WAY,
    "process gone": NO_WAY,
    "no answer": NO_WAY,
    "not taken up": NO_WAY,
    "no way to wake it": NO_WAY,
}
"""A notifier's reasons in the words of receipts; what is not here is told as it is, behind `held: `."""

_STATES = {"busy": BUSY, "waiting": DIALOG, "suspended": "held: suspended"}


def why(row: Any) -> str:
    """The strongest thing that is known of why a reader has not taken the message."""
    if row["expired"]:
        return "expired"
    if row["retired"]:
        return "retired"
    if row["has_left"]:
        return "left"
    if row["leased"]:
        return "leased"
    if row["passed"]:
        return "skipped"
    if row["state"] == "offline":
        since = row["offline_since"]
        return f"offline since {since:%Y-%m-%dT%H:%M:%SZ}" if since is not None else "offline"
    if row["wake_outcome"] == "held" and row["wake_reason"] and row["state"] != "unknown":
        reason = row["wake_reason"]
        return _HOLDS.get(reason, f"held: {reason}")
    if row["wake_outcome"] in ("sent", "started") and row["woken_seconds"] is not None:
        how = "a person was told" if row["wake_rung"] == "bell" else "woken"
        return f"{how} {max(0, round(row['woken_seconds']))} s ago"
    if row["state"] in _STATES:
        return _STATES[row["state"]]
    return NO_WAY if row["wake_outcome"] is None and row["state"] == "unknown" else "not read yet"
