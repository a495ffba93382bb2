"""The seam between the record and whatever carries its nudges."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Literal, Protocol

from broker_bridge.nudge import Nudge

Role = Literal["consumer", "producer", "both"]

ANY_REALM = "*"
"""The realm of the record's own admission, where it names each nudge's realm itself."""


@dataclass(frozen=True, slots=True)
class Admission:
    """What a token lets its bearer do on the nerve.

    Attributes:
        realm: the realm that the token decides; nothing crosses realms.
        name: the box or person that holds it, or the nerve token's own name.
        role: boxes and people only listen (`consumer`).
        token_id: names the token, so that a revoked one can be hung up on.
    """

    realm: str
    name: str
    role: Role
    token_id: str


Admit = Callable[[str], Awaitable[Admission | None]]
"""Looks a token up; None for an unknown, revoked or expired one."""


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
