"""What the bench makes of what its loads say, and that a load's failure is never taken for a figure."""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bench import pgbench, wrk
from bench.load import Case, Load, LoadFailed
from bench.meter import Meter, Spent
from bench.plot import plot
from bench.results import document
from bench.rounds import Measured, Range, Sample, measure


@dataclass(frozen=True)
class Scripted:
    """Takes no time and tells what it was told to tell."""

    name: str
    loads: list[Load]
    ran: list[str] = field(default_factory=list)

    def run(self, seconds: int) -> Load:
        self.ran.append(self.name)
        return self.loads[(len(self.loads) + self.ran.count(self.name) - 2) % len(self.loads)]


def load(operations: int) -> Load:
    return Load(operations, 2.0, 1.0, 5.0)


def test_wrks_last_line_is_the_load() -> None:
    said = {"operations": 6, "seconds": 2.0, "p50_ms": 0.5, "p99_ms": 4.0, "failures": {"status": 0}}
    assert wrk.parsed(f"Running 2s test\n{json.dumps(said)}\n") == Load(6, 2.0, 0.5, 4.0)


@pytest.mark.parametrize(
    "change", [{"failures": {"status": 1}}, {"failures": {"read": 3}}, {"operations": 0}]
)
def test_an_answer_that_is_no_success_ends_the_bench(change: dict[str, object]) -> None:
    said = {"operations": 6, "seconds": 2.0, "p50_ms": 0.5, "p99_ms": 4.0, "failures": {}} | change
    with pytest.raises(LoadFailed):
        wrk.parsed(json.dumps(said))


def test_the_file_of_requests_is_private(tmp_path: Path) -> None:
    wrk.write_requests(tmp_path / "requests", [("token", "work3-agent#1", "api")], body="{}")
    assert (tmp_path / "requests").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "requests").read_text() == "{}\ntoken\twork3-agent#1\tapi\n"


SUMMARY = """
number of transactions actually processed: 300
number of failed transactions: 0 (0.000%)
tps = 150.000000 (without initial connection time)
"""


def test_pgbenchs_summary_and_logs_are_the_load(tmp_path: Path) -> None:
    for client in (0, 1):
        lines = (f"{client} {n} {1000 * n} 0 1764520000 {n}" for n in range(client + 1, 101, 2))
        (tmp_path / f"times.7.{client}").write_text("\n".join(lines) + "\n")
    milliseconds = pgbench.latencies(tmp_path)
    assert milliseconds == [float(n) for n in range(1, 101)]
    assert pgbench.parsed(SUMMARY, milliseconds) == Load(300, 2.0, 50.0, 99.0)


def test_a_pgbench_without_a_summary_ends_the_bench() -> None:
    with pytest.raises(LoadFailed, match="pgbench did not say"):
        pgbench.parsed("Segmentation fault", [1.0])


def test_every_contender_is_warmed_up_then_takes_each_round_in_turn() -> None:
    ran: list[str] = []
    product, one, two = (Scripted(name, [load(10)], ran) for name in ("say", "one", "two"))
    pauses: list[int] = []
    [measured] = measure(
        [Case("case", product, (one, two))],
        Meter(os.getpid()),
        rounds=2,
        seconds=1,
        between=lambda: pauses.append(len(ran)),
        progress=lambda _: None,
    )
    assert ran == ["say", "one", "two", "say", "one", "two", "one", "two", "say"]
    assert pauses == [3, 6]
    assert {name: len(samples) for name, samples in measured.samples.items()} == {
        "say": 2,
        "one": 2,
        "two": 2,
    }


def measured_case() -> Measured:
    product, baseline = Scripted("say", []), Scripted("pgbench", [])
    measured = Measured(Case("case", product, (baseline,)))
    spent = Spent(record=0.4, postgres=0.2, client=0.1, machine=1.7)
    measured.samples["say"] = [Sample(load(count), spent) for count in (1000, 2000, 4000)]
    measured.samples["pgbench"] = [Sample(load(count), spent) for count in (1000, 4000, 4000)]
    return measured


def test_ratios_are_taken_within_each_round() -> None:
    measured = measured_case()
    product, baseline = measured.case.contenders
    assert measured.ratio(product, baseline) == Range(median=1.0, low=0.5, high=1.0)
    assert measured.range(product, lambda sample: sample.micros(sample.spent.record)).median == 200
    assert measured.foreign_cores() == pytest.approx(0.5)


def test_a_result_can_be_kept_and_drawn() -> None:
    result = json.loads(json.dumps(document("say", [measured_case()], {"commit": "c"}, seconds=2)))
    assert result["cases"]["case"]["contenders"]["say"]["per_second"] == {
        "median": 1000,
        "low": 500,
        "high": 2000,
    }
    image = plot(result)
    assert xml.etree.ElementTree.fromstring(image).tag.endswith("svg")
    assert b"<script" not in image
