"""How long messages are kept. What is older is deleted in small parts, each a short transaction."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
from dataclasses import dataclass
from typing import Any

import structlog

from api.db import Database
from api.errors import RecordDown
from api.services.names import realm_key
from api.store import retention as store

log = structlog.get_logger()

TURN_SECONDS = 3600.0
MOST = 500
MOST_BYTES = 512 * 1024
"""Of what a part holds: indexing forty times as much may take longer than a statement may."""

PAUSE_SECONDS = 0.02
"""Between two parts, so that those who write and read are not kept waiting."""


@dataclass(slots=True)
class Pruned:
    """What was done in one realm.

    Attributes:
        realm: its name.
        before: what was said before this moment is old.
        deleted: how many messages went.
        expired: how many that nobody had taken expired, so that their senders are told; they go later.
    """

    realm: str
    before: dt.datetime
    deleted: int = 0
    expired: int = 0


class Retention:
    """Deletes old messages by age and realm, and the receipts that only spoke of them.

    Threads are kept whole while they live. Cursors stay where they are. Nothing that nobody has taken goes
    before its sender was told.
    """

    def __init__(self, db: Database, *, keep_days: int | None) -> None:
        """`keep_days`: for realms that do not say themselves; None keeps for ever."""
        self._db = db
        self._keep_days = keep_days

    async def run(self) -> None:
        """Prune now and every hour until cancelled; of several replicas one does it."""
        while True:
            with contextlib.suppress(RecordDown):
                await self.prune()
            await asyncio.sleep(TURN_SECONDS)

    async def prune(self, *, realm: str | None = None, keep_days: int | None = None) -> list[Pruned]:
        """Prune every realm, or only `realm`; `keep_days` goes before every setting.

        Ends early where another replica is at it.

        Raises:
            NoSuchThing: there is no such realm.
            RecordDown: PostgreSQL is away; what was done until then is done.
        """
        async with self._db.transaction() as tx:
            if realm is not None:
                await realm_key(tx, realm)
            wanted = await store.wanted(tx, realm=realm, keep_days=self._keep_days, forced=keep_days)
        return [await self._prune(each) for each in wanted]

    async def _prune(self, realm: Any) -> Pruned:
        done = Pruned(realm.name, realm.before)
        after: int | None = 0
        while after is not None:
            after = await self._part(realm, after, done)
            await asyncio.sleep(PAUSE_SECONDS)
        more = True
        while more:
            more = await self._forget(realm.realm_id) >= MOST
            await asyncio.sleep(PAUSE_SECONDS)
        if done.deleted or done.expired:
            log.info("messages_pruned", realm=done.realm, deleted=done.deleted, expired=done.expired)
        return done

    async def _part(self, realm: Any, after: int, done: Pruned) -> int | None:
        """Prune one part; where the next one begins, or None when there is none that is old."""
        async with self._db.transaction() as tx:
            if not await store.begin(tx):
                return None
            page = await store.page(
                tx,
                realm_id=realm.realm_id,
                before=realm.before,
                after=after,
                most=MOST,
                most_bytes=MOST_BYTES,
            )
            if page.last_id is None:
                return None
            deleted, expired = await store.prune(
                tx, realm_id=realm.realm_id, before=realm.before, after=after, last_id=page.last_id
            )
        done.deleted += deleted
        done.expired += expired
        return int(page.last_id) if page.all_old else None

    async def _forget(self, realm_id: int) -> int:
        async with self._db.transaction() as tx:
            if not await store.begin(tx):
                return 0
            batches = await store.forget_batches(tx, realm_id=realm_id, most=MOST)
            return max(batches, await store.forget_absences(tx, realm_id=realm_id, most=MOST))
