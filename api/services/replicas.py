"""NOTIFY as the channel between the replicas of the embedded nerve, where no Redis is named."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable

from api.db import Database, Notices
from api.errors import RecordDown
from api.store.announcing import NERVE
from broker_bridge.channel import ChannelLost


class NotifyChannel:
    """The record's own database."""

    def __init__(self, db: Database) -> None:
        self._db = db

    @contextlib.asynccontextmanager
    async def joined(self, heard: Callable[[str], None]) -> AsyncIterator[Notices]:
        """See `Channel.joined`."""
        try:
            async with self._db.joined(NERVE, heard) as notices:
                yield notices
        except RecordDown as error:
            raise ChannelLost("PostgreSQL is away") from error
