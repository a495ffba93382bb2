"""Who holds a producer's name, at whichever replica, and the seam to whatever knows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

LEASE_SECONDS = 45.0
"""How long a name stays its holder's after it was last claimed or renewed, wherever that was."""
TRUSTED_SECONDS = 30.0
"""How long a replica goes by an answer, from when it asked. What it began to keep by then, with two questions
to the store, is kept before the lease is over."""
RENEW_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Name:
    """A producer's name as one connection goes by it.

    Attributes:
        name: in lower case.
        holder: the holder of the token, whose name it is.
        link: the id of the connection, which never comes again.
    """

    realm: str
    name: str
    holder: str
    link: str


class Names(Protocol):
    """Knows each name's one holder, who may go by it over any number of links, at any replica.

    Every method may raise `Unkept`.
    """

    async def claim(self, name: Name) -> bool:
        """Whether the name is this holder's, from now on until the lease is over."""

    async def renew(self, names: Collection[Name]) -> Collection[Name]:
        """Those that are still their holders' over these links; their leases begin anew."""

    async def release(self, names: Collection[Name]) -> None:
        """Their links are gone. A name is anybody's when its last link is."""
