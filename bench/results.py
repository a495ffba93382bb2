"""Results as they are kept: a JSON file and a plot a scenario; the last committed ones to compare with."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.load import Contender
from bench.rounds import Measured, Range

FOLDER = Path(__file__).with_name("results")


def document(
    scenario: str, measured: Sequence[Measured], facts: dict[str, str], *, seconds: int
) -> dict[str, Any]:
    """Everything that was measured, as JSON can hold it."""
    return {
        "scenario": scenario,
        "at": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "seconds_a_sample": seconds,
        "surroundings": facts,
        "cases": {one.case.name: _case(one) for one in measured},
    }


def _case(one: Measured) -> dict[str, Any]:
    return {
        "foreign_cores": round(one.foreign_cores(), 3),
        "contenders": {contender.name: _contender(one, contender) for contender in one.case.contenders},
        "ratios": {
            baseline.name: _rounded(one.ratio(one.case.product, baseline)) for baseline in one.case.baselines
        },
    }


def _contender(one: Measured, contender: Contender) -> dict[str, Any]:
    figures = {
        "per_second": one.range(contender, lambda sample: sample.per_second),
        "p50_ms": one.range(contender, lambda sample: sample.load.p50_ms),
        "p99_ms": one.range(contender, lambda sample: sample.load.p99_ms),
        "record_cpu_us": one.range(contender, lambda sample: sample.micros(sample.spent.record)),
        "postgres_cpu_us": one.range(contender, lambda sample: sample.micros(sample.spent.postgres)),
    }
    return {name: _rounded(figure) for name, figure in figures.items()}


def _rounded(figure: Range) -> dict[str, float]:
    return {name: float(f"{number:.4g}") for name, number in dataclasses.asdict(figure).items()}


def committed(scenario: str) -> dict[str, Any] | None:
    """What the repository's last commit has; None when it has none."""
    done = subprocess.run(
        ["git", "show", f"HEAD:./{scenario}.json"], cwd=_made(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        return None
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def keep(scenario: str, result: dict[str, Any], plot: bytes | None = None) -> None:
    """Write the files; what was there before is in the history."""
    folder = _made()
    text = json.dumps(result, indent=2, ensure_ascii=False)
    (folder / f"{scenario}.json").write_text(f"{text}\n", encoding="utf-8")
    if plot is not None:
        (folder / f"{scenario}.svg").write_bytes(plot)


def _made() -> Path:
    """The folder; a fresh clone has none."""
    FOLDER.mkdir(exist_ok=True)
    return FOLDER
