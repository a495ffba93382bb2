"""Bearer tokens: made, shown once, revoked at once."""

from __future__ import annotations

import hashlib
import secrets
from typing import Literal

from api.db import Database, Transaction
from api.errors import NoSuchThing, TooManyTokens
from api.models import NewToken
from api.services.fields import NAME
from api.services.identity import Identity
from api.services.names import realm_key
from api.store import audit
from api.store import tokens as store
from api.store.identity import tell

Kind = Literal["box", "person", "nerve client"]
PREFIX: dict[Kind, str] = {"box": "rrb_", "person": "rrp_", "nerve client": "rrn_"}
TOKEN_BYTES = 32
"""Beyond guessing, so that a plain hash is enough at rest."""


async def add_token(db: Database, *, realm: str, name: str, kind: Kind) -> NewToken:
    """One more token for a box, a person or a nerve client, so that it can change over without a gap.

    Raises:
        NoSuchThing: there is no such realm, or nobody of this kind and name in it.
        TooManyTokens: two are valid already.
    """
    async with db.transaction() as tx:
        realm_id = await realm_key(tx, realm)
        known = NAME.fullmatch(name)
        if not known or not await store.lock_holder(tx, realm_id=realm_id, name=name, kind=kind):
            raise NoSuchThing(f"There is no {kind} {name} in realm {realm}.", name=name, realm=realm)
        made = await make(tx, realm_id=realm_id, name=name, kind=kind)
        await audit.note(tx, act="token_added", target=f"{kind} {name} {made.token_id}", realm=realm)
    return made


async def revoke(db: Database, identity: Identity, token_id: str, realm: str | None = None) -> None:
    """End a token: calls and links that came with it end at once, on every replica.

    Raises:
        NoSuchThing: there never was such a token (in `realm`, where one is given).
    """
    async with db.transaction() as tx:
        realm_id = None if realm is None else await realm_key(tx, realm)
        known = token_id.isascii() and token_id.isprintable()
        revoked = await store.revoke(tx, token_id, realm_id) if known else None
        if revoked is None:
            raise NoSuchThing(f"There is no token with the id {token_id}.", token_id=token_id)
        name, its_realm = revoked
        await audit.note(tx, act="token_revoked", target=f"{name} {token_id}", realm=its_realm)
        await tell(tx, word := f"token {token_id}")
    identity.forget(word)


async def make(tx: Transaction, *, realm_id: int, name: str, kind: Kind) -> NewToken:
    """Draw a token and keep its hash.

    Raises:
        TooManyTokens: two are valid already.
    """
    slot = await store.free_slot(tx, realm_id=realm_id, name=name, kind=kind)
    if slot is None:
        raise TooManyTokens(name)
    token = PREFIX[kind] + secrets.token_urlsafe(TOKEN_BYTES)
    token_id = f"tok_{secrets.token_hex(8)}"
    await store.add(
        tx,
        realm_id=realm_id,
        name=name,
        kind=kind,
        token_id=token_id,
        token_hash=hash_of(token.encode()),
        slot=slot,
    )
    return NewToken(token, token_id)


def hash_of(token: bytes) -> bytes:
    """What is kept of a token."""
    return hashlib.sha256(token).digest()
