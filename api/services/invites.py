"""Invites: a code that makes one box, or one more token of it, and is then worth nothing."""

from __future__ import annotations

import hashlib
import secrets

from api.db import Database
from api.errors import NameTaken, NoSuchInvite, NoSuchThing
from api.models import Invite, NewInvite, Redeemed
from api.services import fields, names, realms, tokens
from api.services.limits import Rate
from api.store import audit
from api.store import invites as store
from api.store import names as names_store
from api.store import tokens as tokens_store

ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
"""Nothing in it is taken for something else when it is read out."""

GROUPS, LETTERS = 4, 4
"""Sixteen of thirty-one letters: 79 bits, so that a plain hash is enough at rest."""


async def add(db: Database, *, realm: str, box: str, ttl_seconds: int) -> NewInvite:
    """An invite for a box, whether or not it exists already.

    Raises:
        BadField: the name breaks the grammar.
        NoSuchThing: there is no such realm.
        NameTaken: the name is in use for something else, or lies in another's namespace.
    """
    fields.name("box", box)
    code = "-".join("".join(secrets.choice(ALPHABET) for _ in range(LETTERS)) for _ in range(GROUPS))
    invite_id = f"inv_{secrets.token_hex(8)}"
    async with db.transaction() as tx:
        realm_id = await names.realm_key(tx, realm)
        rivals = await names_store.in_the_way(tx, realm_id=realm_id, name=box, kind="box")
        if rivals not in ([], [(box, "box")]):
            raise await names.taken(tx, realm_id=realm_id, name=box, kind="box", rivals=rivals)
        expires_at = await store.add(
            tx,
            realm_id=realm_id,
            invite_id=invite_id,
            name=box,
            code_hash=_hash_of(code),
            ttl_seconds=ttl_seconds,
        )
        await audit.note(tx, act="invite_added", target=f"{box} {invite_id}", realm=realm)
    return NewInvite(code, invite_id, expires_at)


async def listed(db: Database, *, realm: str, after: str, limit: int) -> list[Invite]:
    """Invites of a realm that can be redeemed, beginning after the id `after`.

    Raises:
        NoSuchThing: there is no such realm.
    """
    async with db.transaction() as tx:
        realm_id = await names.realm_key(tx, realm)
        return await store.page(tx, realm_id=realm_id, after=after, limit=limit)


async def revoke(db: Database, invite_id: str, realm: str | None = None) -> None:
    """Make an invite worthless.

    Raises:
        NoSuchThing: there is none (in `realm`, where one is given) that could be redeemed.
    """
    async with db.transaction() as tx:
        realm_id = None if realm is None else await names.realm_key(tx, realm)
        known = invite_id.isascii() and invite_id.isprintable()
        revoked = await store.revoke(tx, invite_id, realm_id) if known else None
        if revoked is None:
            raise NoSuchThing(f"There is no open invite with the id {invite_id}.", invite_id=invite_id)
        box, its_realm = revoked
        await audit.note(tx, act="invite_revoked", target=f"{box} {invite_id}", realm=its_realm)


class Redeeming:
    """The one call without a token. How often an address may try is limited."""

    def __init__(self, db: Database, rate: Rate) -> None:
        self._db = db
        self._rate = rate

    async def redeem(self, code: str, *, address: str) -> Redeemed:
        """A token for the box that the code is for; the box is made when it does not exist.

        A refusal leaves the code as it was.

        Raises:
            NoSuchInvite: the code is unknown, used, revoked or expired: the same answer for each.
            TooManyTokens: the box has two.
            NameTaken: the name has been taken meanwhile.
            RateLimited: too many tries.
        """
        self._rate.spend(hash(address))
        async with self._db.transaction() as tx:
            found = await store.redeem(tx, _hash_of(code))
            if found is None:
                raise NoSuchInvite
            realm_id, realm, box, invite_id = found
            try:
                made = await realms.bring_in(tx, realm_id=realm_id, name=box, kind="box")
            except NameTaken:  # perhaps by this very box, which another code may have made just now
                if not await tokens_store.lock_holder(tx, realm_id=realm_id, name=box, kind="box"):
                    raise
                made = await tokens.make(tx, realm_id=realm_id, name=box, kind="box")
            target = f"{box} {invite_id} {made.token_id}"
            await audit.note(tx, act="invite_redeemed", target=target, realm=realm)
        return Redeemed(box, realm, made.token, made.token_id)


def _hash_of(code: str) -> bytes:
    """What is kept of a code. How it is grouped, and in which case, is the reader's affair."""
    letters = "".join(character for character in code.lower() if character not in "- \t\r\n")
    return hashlib.sha256(letters.encode(errors="replace")).digest()
