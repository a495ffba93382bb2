"""Who has made a call lately: noted in memory, written down every few seconds."""

from __future__ import annotations

from api.db import Database
from api.errors import RecordDown
from api.models import Caller
from api.store import agents as store


class Seen:
    """One process's notes. What was not written when it dies is lost, and only a time."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._noted: set[tuple[int, int]] = set()

    def note(self, caller: Caller) -> None:
        """The caller is alive."""
        self._noted.add((caller.realm_id, caller.agent_id))

    async def write(self) -> None:
        """Write the notes down, and begin anew.

        Raises:
            RecordDown: they are kept for the next time.
        """
        noted, self._noted = self._noted, set()
        if not noted:
            return
        try:
            await store.seen(self._db, noted)
        except RecordDown:
            self._noted |= noted
            raise
