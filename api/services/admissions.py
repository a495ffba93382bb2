"""Who may be on the nerve. Looked up afresh each time: here nothing is remembered."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from typing import Literal

from api.db import Database
from api.models import Admitted, Caller, Ticket
from api.services.fields import NAME
from api.services.tokens import TOKEN_BYTES, hash_of
from api.store import nerve as store
from broker_bridge.nerve import Admission, Credential

TICKET_SECONDS = 30

By = Literal["token", "ticket", "realm"]


class Admissions:
    """The embedded nerve's doorkeeper, and what `readyroom broker` asks over HTTP."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def admit(self, credential: Credential) -> Admission | None:
        """See `Doorkeeper.admit`.

        Raises:
            RecordDown: PostgreSQL is away.
        """
        secret = credential.value.encode()
        key = credential.value if credential.by == "realm" else hash_of(secret).hex()
        who = await self.admitted(credential.by, key)
        return Admission(who.realm, who.name, who.role, who.token_id, who.kind) if who else None

    async def admitted(self, by: By, key: str) -> Admitted | None:
        """Whom to admit; None when nobody.

        Args:
            by: what somebody logs in with.
            key: the hash, in hexadecimal, of the token or ticket; or the realm's name.

        Raises:
            RecordDown: PostgreSQL is away.
        """
        if by == "realm":
            who = await store.admitted_by_realm(self._db, key) if NAME.fullmatch(key) else None
            return Admitted(who.realm, _stranger(), who.role, who.token_id, who.kind) if who else None
        look_up = store.admitted_by_token if by == "token" else store.admitted_by_ticket
        return await look_up(self._db, bytes.fromhex(key))

    async def valid(self, token_ids: Collection[str]) -> set[str]:
        """See `Doorkeeper.valid`.

        Raises:
            RecordDown: PostgreSQL is away.
        """
        return await store.valid(self._db, token_ids)

    async def is_taken(self, realm: str, name: str) -> bool:
        """See `Doorkeeper.is_taken`.

        Raises:
            RecordDown: PostgreSQL is away.
        """
        return bool(NAME.fullmatch(name)) and await store.is_taken(self._db, realm, name)

    async def ticket(self, caller: Caller) -> Ticket:
        """A ticket that admits the caller's box or person once. It ends with the caller's token.

        Raises:
            RecordDown: PostgreSQL is away.
        """
        ticket = f"rrt_{secrets.token_urlsafe(TOKEN_BYTES)}"
        async with self._db.transaction() as tx:
            await store.add_ticket(
                tx,
                realm_id=caller.realm_id,
                token_id=caller.token_id,
                ticket_hash=hash_of(ticket.encode()),
                seconds=TICKET_SECONDS,
            )
        return Ticket(ticket, TICKET_SECONDS)


def _stranger() -> str:
    """A name that nothing else has: no other name holds a capital letter."""
    return f"ANONYMOUS-{secrets.token_hex(8)}"
