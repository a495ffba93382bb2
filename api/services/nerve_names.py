"""Knows which nerve token goes by which producer's name, for all records on one database."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import astuple

from api.db import Database, Transaction
from api.services.nerve_queues import asked
from api.store import nerve_names as store
from broker_bridge.names import LEASE_SECONDS, Name
from broker_bridge.nerve import Admission

GONE_SECONDS = 120.0
"""How long a removed nerve token's name is nobody's: twice what a link of its may outlive it."""


class NerveNames:
    """`Names` in PostgreSQL."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def claim(self, name: Name) -> bool:
        """See `Names.claim`."""
        async with asked():
            return await store.claim(self._db, *astuple(name), seconds=LEASE_SECONDS)

    async def renew(self, names: Collection[Name]) -> Collection[Name]:
        """See `Names.renew`."""
        wanted = list(names)
        if not wanted:
            return []
        async with asked():
            still = await store.renew(self._db, [astuple(each) for each in wanted], seconds=LEASE_SECONDS)
        return [wanted[place] for place in still]

    async def release(self, names: Collection[Name]) -> None:
        """See `Names.release`."""
        async with asked():
            for name in names:
                await store.release(self._db, *astuple(name))


async def reserve(tx: Transaction, *, realm_id: int, name: str, seconds: float = LEASE_SECONDS) -> bool:
    """Make the name of a nerve token its own as a producer's; False while another goes by it."""
    own = Admission("", name, "both", "", kind="client")
    return await store.reserve(tx, realm_id=realm_id, name=name, holder=own.holder, seconds=seconds)
