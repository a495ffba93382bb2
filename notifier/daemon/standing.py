"""What `readyroom status` shows."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from notifier.daemon.registry import Registry
from notifier.inbox import Inbox
from notifier.inbox.seat import Seat


def session_rows(inbox: Inbox, registry: Registry, *, now: float) -> list[dict[str, Any]]:
    """One row a session, by handle; `now` is the inbox's clock."""
    return [_row(inbox.seats[agent], registry, now) for agent in sorted(inbox.seats)]


def _row(seat: Seat, registry: Registry, now: float) -> dict[str, Any]:
    session, rival = seat.session, registry.rival(seat.session.agent)
    return {
        "agent": session.agent,
        "program": session.program,
        "state": seat.state,
        "dialog": seat.state == "waiting",
        "draft": seat.hold == "draft",
        "rung": seat.open_rung(),
        "rungs": list(seat.rungs),
        "unread": seat.counts.unread,
        "addressed": sum(seat.counts.addressed_in.values()),
        "urgent": sum(seat.counts.urgent_in.values()),
        "rooms": seat.counts.rooms,
        "wake_on": session.wake_on,
        "senders": sorted(seat.senders()),
        "hold": seat.hold,
        "last_wake": asdict(seat.last_wake) if seat.last_wake else None,
        "woken_seconds_ago": None if seat.last_sent_at is None else round(now - seat.last_sent_at, 1),
        "wakes": len(seat.wakes),
        "pid": session.process.pid if session.process else None,
        "tty": session.tty,
        "tmux_pane": session.tmux.pane if session.tmux else None,
        "cwd": session.cwd,
        "second_process": rival.pid if rival else None,
    }
