"""The rungs that type: `pty`, into a `readyroom run`; `tmux`, into a pane."""

from __future__ import annotations

from dataclasses import dataclass

from notifier.sessions import Session
from notifier.terminals.base import Hold
from notifier.terminals.door import wake_through
from notifier.terminals.tmux import TmuxTerminal
from notifier.terminals.typist import type_line
from notifier.wakers.base import Wake


@dataclass(frozen=True, slots=True)
class Pty:
    """Types into the pseudo-terminal of a `readyroom run`, which judges the gates itself."""

    rung: str = "pty"

    def fits(self, session: Session) -> bool:
        """Whether the session was started by `readyroom run`."""
        return session.pty_socket is not None

    async def wake(self, session: Session, line: str) -> Wake:
        """Have the line typed there, if every gate is open."""
        if session.pty_socket is None:
            return Wake(sent=False, hold="no way to wake it")
        return _wake(await wake_through(session.pty_socket, line))


@dataclass(frozen=True, slots=True)
class Tmux:
    """Pastes into the session's own pane."""

    rung: str = "tmux"

    def fits(self, session: Session) -> bool:
        """Whether the session's pane is known, and the process that must be in front there."""
        return session.tmux is not None and session.process is not None and session.pty_socket is None

    async def wake(self, session: Session, line: str) -> Wake:
        """Have the line typed there, if every gate is open."""
        if session.tmux is None or session.process is None:
            return Wake(sent=False, hold="no way to wake it")
        terminal = TmuxTerminal(session.tmux, process=session.process, program=session.program)
        return _wake(await type_line(terminal, line))


def _wake(hold: Hold | None) -> Wake:
    return Wake(sent=hold is None, hold=hold)
