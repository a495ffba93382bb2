"""The rung that types nothing: the program itself begins a turn when the session's flag changes."""

from __future__ import annotations

from notifier.sessions import Session
from notifier.terminals.base import Hold
from notifier.terminals.process import life_hold_of
from notifier.wakers.base import Wake
from notifier.wakers.flags import Flags


class Native:
    """Shows the session's flag. A draft stays where it is, and no dialog can be answered by it."""

    rung = "native"

    def __init__(self, folder: str, flags: Flags) -> None:
        self._folder = folder
        self._flags = flags

    def fits(self, session: Session) -> bool:
        """Whether the session's program watches its flag."""
        return session.watches and session.process is not None

    async def wake(self, session: Session, line: str) -> Wake:
        """Have the program begin a turn; its own hook says what is to be read, in place of `line`."""
        hold = await self._hold(session)
        return Wake(sent=hold is None, hold=hold)

    async def _hold(self, session: Session) -> Hold | None:
        if session.process is None:
            return "no way to wake it"
        if (hold := life_hold_of(session.process)) is not None:
            return hold
        try:
            wakes = await self._flags.show(self._folder, session.process)
        except OSError:
            return "no way to wake it"
        if wakes is None:
            return "not taken up"
        return None if wakes else "busy"
