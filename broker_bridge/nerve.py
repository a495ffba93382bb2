"""The seam between the record and whatever carries its nudges."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal, Protocol

from broker_bridge.nudge import Nudge

Role = Literal["consumer", "producer", "both"]
Kind = Literal["holder", "client", "anonymous", "record"]

ANY_REALM = "*"
"""The realm of the record's own admission, where it names each nudge's realm itself."""


@dataclass(frozen=True, slots=True)
class Credential:
    """What somebody logs in with: a token, a one-use ticket, or only a realm, which may let strangers in.

    Attributes:
        by: which of them.
        value: the token, the ticket, or the realm's name.
    """

    by: Literal["token", "ticket", "realm"]
    value: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Admission:
    """What somebody may do on the nerve.

    Attributes:
        realm: the realm that the token decides; nothing crosses realms.
        name: the box or person, the nerve token's name, or a name of its own for each anonymous listener.
        role: boxes, people and anonymous listeners only listen (`consumer`).
        token_id: names what it was admitted by, so that it can be hung up on when that is valid no longer.
        kind: only a `holder`, a box or person, hears nudges; only the `record` sends them.
    """

    realm: str
    name: str
    role: Role
    token_id: str
    kind: Kind = "holder"

    @property
    def owner(self) -> tuple[str, Kind, str]:
        """Whose names and connections these are: a box and a nerve token of one name are two."""
        return self.realm, self.kind, self.name

    @property
    def holder(self) -> str:
        """The owner as one text within the realm; no box or person has one with a blank."""
        return self.name if self.kind == "holder" else f"{self.kind} {self.name}"


class Doorkeeper(Protocol):
    """Knows who may be on the nerve."""

    async def admit(self, credential: Credential) -> Admission | None:
        """Whom to admit; None when nobody. A ticket is used up by it. Raises when it cannot be found out."""

    async def valid(self, token_ids: Collection[str]) -> Collection[str]:
        """Those of `token_ids` that are valid now. Raises when it cannot be found out."""

    async def is_taken(self, realm: str, name: str) -> bool:
        """Whether a nerve token of the realm bears this name. Raises when it cannot be found out."""


class Nerve(Protocol):
    """Carries nudges out of the record. A lost nudge costs time, never a message."""

    def nudge(self, nudge: Nudge, *, realm: str, names: Collection[str]) -> None:
        """Tell the listeners of `realm` whose box or person is among `names`.

        Returns at once and never raises, whatever state the broker is in. Nudges of one room that come in a
        burst are coalesced; the last of a burst is never dropped for an earlier one.
        """

    @property
    def state(self) -> Literal["ok", "degraded"]:
        """`degraded` while nudges cannot leave."""

    @property
    def dropped(self) -> int:
        """How many nudges were dropped because too many rooms waited at once."""

    async def start(self) -> None:
        """Begin to carry. Returns without waiting for a broker to be reachable."""

    async def close(self) -> None:
        """Stop within a second. Twice is fine, and so is before `start`."""
