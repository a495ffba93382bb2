"""What the record itself says: to one agent, as `system`."""

from __future__ import annotations

from api.db import Database
from api.services.announcing import Announcements
from api.services.saying import Draft, Sayings
from api.store import rooms as store


class SystemVoice:
    """Says system messages, into the hidden room of one agent. They cause no reports themselves."""

    def __init__(self, db: Database, sayings: Sayings, announcements: Announcements) -> None:
        self._db = db
        self._sayings = sayings
        self._announcements = announcements

    async def tell(
        self,
        *,
        realm_id: int,
        realm: str,
        agent: str,
        type_: str,
        body: str,
        thread_id: str | None = None,
        in_reply_to: int | None = None,
        payload: str | None = None,
    ) -> int | None:
        """Tell an agent something; the message's id, or None when the agent has no address any more."""
        room = await store.room(self._db, realm_id, f"@{agent}")
        if room is None:
            return None
        size = len(body.encode()) + len(payload or "")
        columns = (
            realm_id, room["conv_id"], None, "system", None, agent, None, None, type_, body, payload, size,
            False, thread_id, in_reply_to, None, 5, False, None, False,
        )  # fmt: skip
        stored = await self._sayings.store(Draft(room["conv_id"], columns))
        if stored is None:
            return None
        self._announcements.said(
            realm_id=realm_id,
            realm=realm,
            sender="system",
            room=f"@{agent}",
            conv_id=room["conv_id"],
            listeners=stored.listeners,
        )
        return stored.id
