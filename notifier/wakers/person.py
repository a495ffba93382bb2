"""The last rung, which types nothing: tells whoever sits there that a session has something to read."""

from __future__ import annotations

import asyncio

from notifier.sessions import Session
from notifier.terminals import desktop
from notifier.terminals.base import Hold
from notifier.terminals.door import ring_through
from notifier.wakers.base import Wake

_TITLE = "Readyroom"


class Person:
    """A bell in the session's terminal where that is ours, and a notification where there is a desktop."""

    rung = "bell"

    def fits(self, session: Session) -> bool:
        """Whether there is a bell or a desktop at all."""
        return session.pty_socket is not None or desktop.command_for(_TITLE, "") is not None

    async def wake(self, session: Session, line: str) -> Wake:
        """Tell them, by all means that there are; one that is known to have worked will do."""
        shown, hold = await asyncio.gather(
            desktop.show(_TITLE, f"{session.agent} has messages to read."), _ring(session)
        )
        return Wake(sent=True) if shown or hold is None else Wake(sent=False, hold=hold)


async def _ring(session: Session) -> Hold | None:
    if session.pty_socket is None:
        return "nobody could be told"
    hold = await ring_through(session.pty_socket)
    return hold if hold in (None, "output still moving") else "nobody could be told"
