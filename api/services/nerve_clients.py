"""The operator's acts on nerve clients: programs that are no agents, and are on the nerve alone."""

from __future__ import annotations

from api.db import Database
from api.errors import NameTaken, NoSuchThing
from api.models import NerveClient, NerveRole, NewToken
from api.services import fields, names, nerve_names, tokens
from api.services.identity import Identity
from api.store import audit, nerve_queues
from api.store import nerve as store
from api.store.identity import tell
from broker_bridge.nerve import Admission


async def add(db: Database, *, realm: str, name: str, role: NerveRole) -> NewToken:
    """A new nerve client, and its first token.

    Raises:
        BadField: the name breaks the grammar.
        NoSuchThing: there is no such realm.
        NameTaken: the realm has a nerve client of this name, or another goes by it as a producer.
    """
    fields.name("name", name)
    async with db.transaction() as tx:
        realm_id = await names.realm_key(tx, realm)
        if not await store.add_client(tx, realm_id=realm_id, name=name, role=role):
            raise NameTaken(
                f"There is a nerve client {name} in realm {realm}. Choose another name, or give it a second "
                "token with `readyroom admin nerve-token rotate`.",
                name=name,
            )
        if not await nerve_names.reserve(tx, realm_id=realm_id, name=name):
            raise NameTaken(
                f"Another nerve client of realm {realm} produces as {name} now. Choose another name, or have "
                "it stop first.",
                name=name,
            )
        made = await tokens.make(tx, realm_id=realm_id, name=name, kind="nerve client")
        target = f"{name} {role} {made.token_id}"
        await audit.note(tx, act="nerve_client_added", target=target, realm=realm)
    return made


async def listed(db: Database, *, realm: str, after: str, limit: int) -> list[NerveClient]:
    """Nerve clients of a realm by name, beginning after `after`.

    Raises:
        NoSuchThing: there is no such realm.
    """
    async with db.transaction() as tx:
        realm_id = await names.realm_key(tx, realm)
        return await store.clients(tx, realm_id=realm_id, after=after, limit=limit)


async def remove(db: Database, identity: Identity, *, realm: str, name: str) -> None:
    """Take a nerve client and its tokens away; its links end at once.

    Raises:
        NoSuchThing: there is no such realm, or no nerve client of this name in it.
    """
    async with db.transaction() as tx:
        realm_id = await names.realm_key(tx, realm)
        known = fields.NAME.fullmatch(name)
        token_ids = await store.remove_client(tx, realm_id=realm_id, name=name) if known else None
        if token_ids is None:
            raise NoSuchThing(f"There is no nerve client {name} in realm {realm}.", name=name, realm=realm)
        gone = Admission(realm, name, "both", "", kind="client")
        await nerve_queues.forget_holder(tx, realm_id=realm_id, holder=gone.holder)
        await nerve_names.reserve(tx, realm_id=realm_id, name=name, seconds=nerve_names.GONE_SECONDS)
        await audit.note(tx, act="nerve_client_removed", target=name, realm=realm)
        words = [f"token {token_id}" for token_id in token_ids]
        for word in words:
            await tell(tx, word)
    for word in words:
        identity.forget(word)
