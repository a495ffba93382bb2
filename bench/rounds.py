"""Rounds: every contender of every case in turn, again and again, so that all meet the same weather."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from bench.load import Case, Contender, Load
from bench.meter import Meter, Spent


@dataclass(frozen=True)
class Sample:
    """One contender in one round."""

    load: Load
    spent: Spent

    @property
    def per_second(self) -> float:
        """Operations a second."""
        return self.load.operations / self.load.seconds

    def micros(self, seconds: float) -> float:
        """So many seconds shared out among the operations, in microseconds each."""
        return 1e6 * seconds / self.load.operations


@dataclass(frozen=True)
class Range:
    """The median of the rounds, the lowest and the highest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Range:
        """Of at least one value."""
        return cls(statistics.median(values), min(values), max(values))


@dataclass
class Measured:
    """A case with all its samples, by contender, a sample a round."""

    case: Case
    samples: dict[str, list[Sample]] = field(default_factory=dict)

    def range(self, contender: Contender, figure: Callable[[Sample], float]) -> Range:
        """One figure of one contender over the rounds."""
        return Range.of([figure(sample) for sample in self.samples[contender.name]])

    def ratio(self, contender: Contender, baseline: Contender) -> Range:
        """How many times the baseline's operations a second, compared within each round."""
        pairs = zip(self.samples[contender.name], self.samples[baseline.name], strict=True)
        return Range.of([mine.per_second / theirs.per_second for mine, theirs in pairs])

    def foreign_cores(self) -> float:
        """How many processors somebody else used meanwhile, at worst."""
        return max(
            sample.spent.foreign / sample.load.seconds
            for samples in self.samples.values()
            for sample in samples
        )


def measure(
    cases: Sequence[Case],
    meter: Meter,
    *,
    rounds: int,
    seconds: int,
    between: Callable[[], None],
    progress: Callable[[str], None],
) -> list[Measured]:
    """Warm everybody up, then take the rounds.

    Args:
        cases: what to measure.
        meter: reads the processor times.
        rounds: how many samples each contender gives.
        seconds: how long each sample takes.
        between: done before each round.
        progress: told what runs now.

    Raises:
        LoadFailed: a load did not run as it should.
    """
    measured = [Measured(case) for case in cases]
    for one, contender in _turns(measured, 0):
        progress(f"warm-up: {one.case.name}, {contender.name}")
        contender.run(1)
    for number in range(rounds):
        between()
        for one, contender in _turns(measured, number):
            progress(f"round {number + 1} of {rounds}: {one.case.name}, {contender.name}")
            before = meter.read()
            load = contender.run(seconds)
            one.samples.setdefault(contender.name, []).append(Sample(load, meter.read() - before))
    return measured


def _turns(measured: Sequence[Measured], number: int) -> Iterator[tuple[Measured, Contender]]:
    """Who runs when; another contender begins in each round."""
    for one in measured:
        contenders = one.case.contenders
        first = number % len(contenders)
        for contender in (*contenders[first:], *contenders[:first]):
            yield one, contender
