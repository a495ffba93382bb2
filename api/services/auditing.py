"""The audit log, as the operator reads it."""

from __future__ import annotations

from api.db import Database
from api.models import Act
from api.services.fields import NAME
from api.services.names import realm_key
from api.store import audit


async def acts(db: Database, *, realm: str | None, before: int, limit: int) -> list[Act]:
    """What was done, newest first, beginning before an id; the acts of a realm that is gone stay.

    Raises:
        NoSuchThing: there never was such a realm.
    """
    async with db.transaction() as tx:
        if realm is not None and not (NAME.fullmatch(realm) and await audit.knows(tx, realm)):
            await realm_key(tx, realm)
        return await audit.page(tx, realm=realm, before=min(before, 2**63 - 1), limit=limit)
