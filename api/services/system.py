"""What the record itself says: to one agent, as `system`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from api.db import Database, Transaction
from api.services.announcing import Announcements
from api.store import system as store


@dataclass(frozen=True, slots=True)
class SystemMessage:
    """A message of the record's own to one agent."""

    realm_id: int
    realm: str
    agent: str
    type: str
    body: str
    payload: dict[str, Any] | None = None
    thread_id: str | None = None
    in_reply_to: int | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """A system message that was stored; announce it after the commit."""

    message: SystemMessage
    conv_id: int
    listener: int


class SystemVoice:
    """Stores system messages, and tells of them. They cause no reports themselves."""

    def __init__(self, db: Database, announcements: Announcements) -> None:
        self._db = db
        self._announcements = announcements

    async def tell(self, message: SystemMessage) -> None:
        """Store one and tell of it."""
        async with self._db.transaction() as tx:
            told = await self.store(tx, message)
        self.announce([told] if told else [])

    async def store(self, tx: Transaction, message: SystemMessage) -> Told | None:
        """Store one within a transaction; None when the agent has no address."""
        address = await store.address(tx, realm_id=message.realm_id, agent=message.agent)
        if address is None:
            return None
        size = len(message.body.encode()) + (len(json.dumps(message.payload)) if message.payload else 0)
        await store.add(
            tx,
            conv_id=address.conv_id,
            realm_id=message.realm_id,
            selector=message.agent,
            type=message.type,
            body=message.body,
            payload=message.payload,
            size=size,
            thread_id=message.thread_id,
            in_reply_to=message.in_reply_to,
        )
        return Told(message, address.conv_id, address.listener)

    def announce(self, told: list[Told]) -> None:
        """Tell of messages whose transaction has been committed."""
        for each in told:
            self._announcements.said(
                realm_id=each.message.realm_id,
                realm=each.message.realm,
                sender="system",
                room=f"@{each.message.agent}",
                conv_id=each.conv_id,
                listeners=[each.listener],
            )
