"""The seam between the replicas of one nerve: what carries short texts from each of them to all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol


class ChannelLost(Exception):
    """Nothing is carried any more, or never was; says why."""


class Seat(Protocol):
    """A place at the channel, for as long as it holds."""

    @property
    def lost(self) -> asyncio.Future[None]:
        """Done, or failed, when no more is heard."""

    async def say(self, text: str) -> None:
        """Say a text of at most `parcels.LONGEST` bytes to every replica. One at a time.

        Raises:
            ChannelLost: whether it was heard is not known.
        """


class Channel(Protocol):
    """Carries texts at most once, those of one replica in their order."""

    def joined(self, heard: Callable[[str], None]) -> AbstractAsyncContextManager[Seat]:
        """Hear what every replica says, this one too, while the block lasts. `heard` must not block.

        Raises:
            ChannelLost: it cannot be joined, or is lost within the block.
        """
