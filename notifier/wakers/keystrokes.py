"""The rungs that type: `pty`, into a `readyroom run`; `tmux`, into a pane."""

from __future__ import annotations

from notifier.sessions import Process, Session, TmuxPane
from notifier.terminals.base import Hold
from notifier.terminals.door import wake_through
from notifier.terminals.tmux import TmuxTerminal
from notifier.terminals.typist import type_line
from notifier.wakers.base import Wake


class Pty:
    """Types into the pseudo-terminal of a `readyroom run`, which judges the gates itself."""

    rung = "pty"

    def fits(self, session: Session) -> bool:
        """Whether the session was started by `readyroom run`, and the process that must be in front there."""
        return session.pty_socket is not None and session.process is not None

    async def wake(self, session: Session, line: str) -> Wake:
        """Have the line typed there, if every gate is open."""
        if session.pty_socket is None or session.process is None:
            return Wake(sent=False, hold="no way to wake it")
        return _wake(await wake_through(session.pty_socket, line, session.process))


class Tmux:
    """Pastes into the session's own pane."""

    rung = "tmux"

    def __init__(self) -> None:
        self._terminals: dict[TmuxPane, tuple[Process, TmuxTerminal]] = {}

    def fits(self, session: Session) -> bool:
        """Whether the session's pane is known, and the process that must be in front there.

        A `readyroom run` inside a pane is typed to by `Pty` alone, which knows it better.
        """
        return session.tmux is not None and session.process is not None and session.pty_socket is None

    async def wake(self, session: Session, line: str) -> Wake:
        """Have the line typed there, if every gate is open."""
        terminal = self._terminal(session)
        if terminal is None:
            return Wake(sent=False, hold="no way to wake it")
        return _wake(await type_line(terminal, line))

    def _terminal(self, session: Session) -> TmuxTerminal | None:
        """The session's terminal, kept from one wake to the next: it remembers what it has left behind."""
        if session.tmux is None or session.process is None:
            return None
        process, terminal = self._terminals.get(session.tmux, (None, None))
        if terminal is None or process != session.process:
            terminal = TmuxTerminal(session.tmux, process=session.process, program=session.program)
            self._terminals[session.tmux] = (session.process, terminal)
        return terminal


def _wake(hold: Hold | None) -> Wake:
    return Wake(sent=hold is None, hold=hold)
