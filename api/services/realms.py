"""The operator's acts on realms, boxes and people. Each is written down in the audit log."""

from __future__ import annotations

from typing import Literal

from api.db import Database, Transaction
from api.errors import BadField, NameTaken, NoSuchThing
from api.models import Named, NewToken, Realm
from api.services import fields, names, tokens
from api.services.hearing import hear
from api.services.identity import Identity
from api.store import agents as agents_store
from api.store import audit, nerve_queues
from api.store import names as names_store
from api.store import realms as store
from api.store import webhooks as webhooks_store
from api.store.identity import tell

FIRST = "main"

HolderKind = Literal["box", "person"]


async def add_realm(
    db: Database,
    *,
    name: str,
    ttl_seconds: int | None,
    keep_days: int | None = None,
    anonymous_listeners: bool = False,
) -> Realm:
    """A new realm; with `ttl_seconds`, it and everything in it ends then, with `keep_days`, its messages.

    Raises:
        BadField: the name breaks the grammar.
        NameTaken: the realm exists.
    """
    fields.name("name", name)
    async with db.transaction() as tx:
        realm = await store.add(
            tx,
            name=name,
            ttl_seconds=ttl_seconds,
            keep_days=keep_days,
            anonymous_listeners=anonymous_listeners,
        )
        if realm is None:
            raise NameTaken(f"The realm {name} exists. Choose another name.", name=name)
        await audit.note(tx, act="realm_added", target=name, realm=name)
        if anonymous_listeners:
            await audit.note(tx, act="realm_changed", target="anonymous_listeners True", realm=name)
    return realm


async def keep(db: Database, name: str, *, days: int | None) -> Realm:
    """Keep the realm's messages for so many days; None: as the service's setting says.

    Raises:
        NoSuchThing: there is none.
    """
    async with db.transaction() as tx:
        realm = await store.keep(tx, name, days=days) if fields.NAME.fullmatch(name) else None
        if realm is None:
            raise NoSuchThing(f"There is no realm {name}.", realm=name)
        await audit.note(tx, act="realm_changed", target=f"keep_days {days}", realm=name)
    return realm


async def let_in(db: Database, identity: Identity, name: str, *, anonymous: bool) -> Realm:
    """Say whether a realm lets anonymous listeners onto the nerve; those that are there leave at once.

    Raises:
        NoSuchThing: there is none.
    """
    async with db.transaction() as tx:
        changed = await store.let_in(tx, name, anonymous=anonymous) if fields.NAME.fullmatch(name) else None
        if changed is None:
            raise NoSuchThing(f"There is no realm {name}.", realm=name)
        realm_id, realm = changed
        await audit.note(tx, act="realm_changed", target=f"anonymous_listeners {anonymous}", realm=name)
        if not anonymous:
            await tell(tx, word := f"token anonymous_{realm_id}")
    if not anonymous:
        identity.forget(word)
    return realm


async def remove_realm(db: Database, identity: Identity, name: str) -> None:
    """Delete a realm with everything in it.

    Raises:
        BadField: the first realm stays.
        NoSuchThing: there is none.
    """
    if name == FIRST:
        raise BadField("name", f"the realm {FIRST} is the first one and stays")
    async with db.transaction() as tx:
        if not fields.NAME.fullmatch(name) or await store.remove(tx, name) is None:
            raise NoSuchThing(f"There is no realm {name}.", realm=name)
        await audit.note(tx, act="realm_removed", target=name, realm=name)
        await tell(tx, word := f"realm {name}")
    identity.forget(word)


async def realms(db: Database, *, after: str, limit: int) -> list[Realm]:
    """Realms by name, beginning after `after`."""
    async with db.transaction() as tx:
        return await store.page(tx, after=after, limit=limit)


async def add_holder(db: Database, *, realm: str, name: str, kind: HolderKind) -> NewToken:
    """A new box or person, and its first token.

    Raises:
        BadField: the name breaks the grammar.
        NoSuchThing: there is no such realm.
        NameTaken: the name is in use, or lies in another's namespace.
    """
    fields.name("name", name)
    async with db.transaction() as tx:
        realm_id = await names.realm_key(tx, realm)
        made = await bring_in(tx, realm_id=realm_id, name=name, kind=kind)
        await audit.note(tx, act=f"{kind}_added", target=f"{name} {made.token_id}", realm=realm)
    return made


async def bring_in(tx: Transaction, *, realm_id: int, name: str, kind: HolderKind) -> NewToken:
    """Make a box or person with its first token; whoever calls writes it down.

    Raises:
        NameTaken: as for `add_holder`.
    """
    await names.claim(tx, realm_id=realm_id, name=name, kind=kind)
    agent_id = await agents_store.add_holder(tx, realm_id=realm_id, name=name, kind=kind)
    await hear(tx, realm_id=realm_id, agent_id=agent_id, addresses=(name, "everyone"), briefed=frozenset())
    return await tokens.make(tx, realm_id=realm_id, name=name, kind=kind)


async def remove_holder(db: Database, identity: Identity, *, realm: str, name: str, kind: HolderKind) -> None:
    """Take a box (with its sessions) or a person away; what they said stays.

    Raises:
        NoSuchThing: there is no such realm, or nobody of this kind and name in it.
    """
    async with db.transaction() as tx:
        realm_id = await names.realm_key(tx, realm)
        known = fields.NAME.fullmatch(name)
        if known:
            await agents_store.lock_holder(tx, realm_id=realm_id, name=name)
        if not known or not await names_store.free(tx, realm_id=realm_id, name=name, kind=kind):
            raise NoSuchThing(f"There is no {kind} {name} in realm {realm}.", name=name, realm=realm)
        await agents_store.retire_holder(tx, realm_id=realm_id, name=name)
        await webhooks_store.remove_all(tx, realm_id=realm_id, name=name)
        await nerve_queues.forget_holder(tx, realm_id=realm_id, holder=name)
        await audit.note(tx, act=f"{kind}_removed", target=name, realm=realm)
        await tell(tx, word := f"holder {realm} {name}")
    identity.forget(word)


async def holders(db: Database, *, realm: str, kind: HolderKind, after: str, limit: int) -> list[Named]:
    """Boxes or people of a realm by name, beginning after `after`.

    Raises:
        NoSuchThing: there is no such realm.
    """
    async with db.transaction() as tx:
        await names.realm_key(tx, realm)
        return await store.holders(tx, realm=realm, kind=kind, after=after, limit=limit)
