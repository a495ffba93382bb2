"""The seam between the notifier's decisions and whatever can wake a session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from notifier.sessions import Session
from notifier.terminals.base import Hold

__all__ = ["Hold", "Wake", "Waker"]


@dataclass(frozen=True, slots=True)
class Wake:
    """What became of one attempt.

    Attributes:
        sent: the whole wake left our hands; no promise that the program took it.
        hold: the closed gate where nothing was sent, or where only a part was ("echo not seen").
    """

    sent: bool
    hold: Hold | None = None


class Waker(Protocol):
    """One rung of the ladder."""

    @property
    def rung(self) -> str:
        """Its place in the ladder, such as `tmux`, `pty`, `bell`."""

    def fits(self, session: Session) -> bool:
        """Whether this rung can reach `session` at all. Asks nobody, blocks never."""

    async def wake(self, session: Session, line: str) -> Wake:
        """Hand `line` to the session's program and submit it, if every gate is open.

        Types nothing at all while a gate is closed. Never raises for a terminal's fault: that is a hold.
        """
