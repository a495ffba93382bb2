"""Names of boxes, people and roles: one namespace in a realm, and nobody takes another's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from api.db import Transaction
from api.errors import NameTaken, NoSuchThing
from api.services.fields import NAME
from api.store import names as store
from api.store import realms

TRIED = 10
"""Names of each kind that are tried for a free one."""


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
    raise await taken(tx, realm_id=realm_id, name=name, kind=kind, rivals=rivals)


async def taken(
    tx: Transaction,
    *,
    realm_id: int,
    name: str,
    kind: Literal["box", "person", "role"],
    rivals: Sequence[tuple[str, str]],
) -> NameTaken:
    """The refusal of a name, with who is in the way and, where one like it is free, which."""
    listed = ", ".join(f"the {kind_} {name_}" for name_, kind_ in rivals) or "a name just taken"
    free = await _like(tx, realm_id=realm_id, name=name, kind=kind)
    return NameTaken(
        f"{name} cannot be a {kind}: {listed} is in the way. A box or person owns its name and everything "
        f"that begins with it and a dash. Choose another name{f', such as {free}' if free else ''}.",
        name=name,
        in_the_way=[name_ for name_, _ in rivals],
        free=free,
    )


async def _like(
    tx: Transaction, *, realm_id: int, name: str, kind: Literal["box", "person", "role"]
) -> str | None:
    """A free name that is much like a taken one; it may be taken before it is asked for."""
    stems = (name.rstrip("0123456789"), name.replace("-", ""))
    tried = (f"{stem}{number}" for stem in stems for number in range(2, 2 + TRIED))
    for like in tried:
        fits = like != name and NAME.fullmatch(like) is not None
        if fits and not await store.in_the_way(tx, realm_id=realm_id, name=like, kind=kind):
            return like
    return None


async def realm_key(tx: Transaction, realm: str) -> int:
    """The key of a realm.

    Raises:
        NoSuchThing: there is none, or it has expired.
    """
    found = await realms.realm_id(tx, realm) if NAME.fullmatch(realm) else None
    if found is None:
        raise NoSuchThing(f"There is no realm {realm}. Add it with POST /v1/admin/realms.", realm=realm)
    return found
