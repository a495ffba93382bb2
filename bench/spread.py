"""How samples of one duration lie."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """Milliseconds. A percentile is a sample that was taken, none in between: p99 of fifty is their worst."""

    count: int
    p50: float
    p90: float
    p99: float
    worst: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Spread:
        """Of at least one sample, in seconds."""
        ordered = sorted(1000 * sample for sample in seconds)
        p50, p90, p99 = (ordered[math.ceil(share * len(ordered)) - 1] for share in (0.5, 0.9, 0.99))
        return cls(len(ordered), p50, p90, p99, ordered[-1])

    def to_json(self) -> dict[str, float]:
        """For the file of results."""
        figures = {"p50_ms": self.p50, "p90_ms": self.p90, "p99_ms": self.p99, "max_ms": self.worst}
        return {"count": self.count, **{name: round(figure, 2) for name, figure in figures.items()}}
