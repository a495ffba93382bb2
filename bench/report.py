"""What the bench prints."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

NOISE_CORES = 0.15
"""From this much foreign work on, figures are only indicative."""


def report(console: Console, result: dict[str, Any], *, title: str, before: dict[str, Any] | None) -> None:
    """Print a result, and how its ratios moved since the one before."""
    console.print(_figures(result, title))
    console.print(surroundings(result))
    for name, case in result["cases"].items():
        if case["foreign_cores"] > NOISE_CORES:
            others = f"{case['foreign_cores']:.2f} processors worked for others: only indicative."
            console.print(f"{name}: {others}", style="yellow")
    if before is None:
        console.print("No committed result to compare with yet.", style="dim")
    else:
        console.print(_movement(result, before))


def _figures(result: dict[str, Any], title: str) -> Table:
    cases = result["cases"]
    baselines = list(next(iter(cases.values()))["ratios"])
    table = Table(title=title, caption="medians of the rounds; in brackets the lowest and the highest")
    table.add_column("")
    for heading in ("per second", "p50 ms", "p99 ms", "CPU µs record", "CPU µs PostgreSQL"):
        table.add_column(heading, justify="right")
    for baseline in baselines:
        table.add_column(f"÷ {baseline}", justify="right")
    for name, case in cases.items():
        table.add_section()
        table.add_row(Text(name, style="bold"))
        for contender, figures in case["contenders"].items():
            product = contender not in case["ratios"]
            ratios = [_range(case["ratios"][baseline], ".2f") if product else "" for baseline in baselines]
            table.add_row(f"  {contender}", *_cells(figures), *ratios, style="green" if product else "")
    return table


def _cells(figures: dict[str, Any]) -> list[str]:
    return [
        _range(figures["per_second"], ",.0f"),
        f"{figures['p50_ms']['median']:.2f}",
        f"{figures['p99_ms']['median']:.2f}",
        f"{figures['record_cpu_us']['median']:.0f}",
        f"{figures['postgres_cpu_us']['median']:.0f}",
    ]


def _range(figure: dict[str, float], form: str) -> str:
    return f"{figure['median']:{form}} ({figure['low']:{form}} to {figure['high']:{form}})"


def surroundings(result: dict[str, Any]) -> Table:
    """What the figures depend on, a line each."""
    table = Table.grid(padding=(0, 2))
    for name, fact in result["surroundings"].items():
        table.add_row(Text(name, style="dim"), fact)
    return table


def _movement(result: dict[str, Any], before: dict[str, Any]) -> Table:
    then = f"{before['at'][:10]} ({before['surroundings']['commit']})"
    table = Table("case", "baseline", then, "now", title="ratios then and now")
    for name, case in result["cases"].items():
        for baseline, now in case["ratios"].items():
            was = before["cases"].get(name, {}).get("ratios", {}).get(baseline)
            table.add_row(name, baseline, _range(was, ".2f") if was else "", _range(now, ".2f"))
    return table
