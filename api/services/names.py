"""Names of boxes, people and roles: one namespace in a realm, and nobody takes another's."""

from __future__ import annotations

from typing import Literal

from api.db import Transaction
from api.errors import NameTaken, NoSuchThing
from api.services.fields import NAME
from api.store import names as store
from api.store import realms


async def claim(tx: Transaction, *, realm_id: int, name: str, kind: Literal["box", "person", "role"]) -> None:
    """Take a name; a role that is there already is simply shared.

    Raises:
        NameTaken: it is in use, or lies in another's namespace.
    """
    if await store.claim(tx, realm_id=realm_id, name=name, kind=kind):
        return
    rivals = await store.in_the_way(tx, realm_id=realm_id, name=name, kind=kind)
    if kind == "role" and (name, "role") in rivals:
        return
    listed = ", ".join(f"the {kind_} {name_}" for name_, kind_ in rivals) or "a name just taken"
    raise NameTaken(
        f"{name} cannot be a {kind}: {listed} is in the way. A box or person owns its name and everything "
        "that begins with it and a dash. Choose another name.",
        name=name,
        in_the_way=[name_ for name_, _ in rivals],
    )


async def realm_key(tx: Transaction, realm: str) -> int:
    """The key of a realm.

    Raises:
        NoSuchThing: there is none, or it has expired.
    """
    found = await realms.realm_id(tx, realm) if NAME.fullmatch(realm) else None
    if found is None:
        raise NoSuchThing(f"There is no realm {realm}. Add it with POST /v1/admin/realms.", realm=realm)
    return found
