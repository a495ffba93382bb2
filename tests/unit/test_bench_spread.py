"""Percentiles are samples that were taken."""

from __future__ import annotations

import random

from bench.spread import Spread


def test_percentiles_are_nearest_ranks_in_milliseconds() -> None:
    samples = [number / 1000 for number in range(1, 101)]
    random.shuffle(samples)
    spread = Spread.of(samples)
    assert [round(figure, 9) for figure in (spread.p50, spread.p90, spread.p99, spread.worst)] == [
        50,
        90,
        99,
        100,
    ]


def test_the_p99_of_fifty_is_their_worst() -> None:
    spread = Spread.of([0.001] * 49 + [1.0])
    assert (spread.count, spread.p90, spread.p99, spread.worst) == (50, 1.0, 1000.0, 1000.0)


def test_one_sample_is_every_percentile() -> None:
    assert Spread.of([0.25]).to_json() == {
        "count": 1,
        "p50_ms": 250.0,
        "p90_ms": 250.0,
        "p99_ms": 250.0,
        "max_ms": 250.0,
    }
