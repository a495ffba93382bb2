"""What a load brings about: so many operations in so much time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class LoadFailed(Exception):
    """The load did not run as it should; its figures would mean nothing."""


@dataclass(frozen=True)
class Load:
    """One run of a load, as its own program saw it."""

    operations: int
    seconds: float
    p50_ms: float
    p99_ms: float


class Contender(Protocol):
    """One way to do the work."""

    @property
    def name(self) -> str:
        """As tables and results call it."""

    def run(self, seconds: int) -> Load:
        """Do the work for so long.

        Raises:
            LoadFailed: something other than slowness happened.
        """


@dataclass(frozen=True)
class Case:
    """One piece of work, done by the product and by each of its baselines."""

    name: str
    product: Contender
    baselines: tuple[Contender, ...]

    @property
    def contenders(self) -> tuple[Contender, ...]:
        """All who take part, the product first."""
        return (self.product, *self.baselines)
