"""What the bench prints of wakes, nudges and starts: tables of delays."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bench import nerve, starts
from bench.nudges import Fanout
from bench.report import surroundings
from bench.spread import Spread
from bench.wakes import TITLE, Series, Wakes, document


def report(console: Console, measured: Wakes) -> None:
    """Print what was measured."""
    console.print(_table(TITLE, {_heading(one): one.steps() for one in measured.series}))
    console.print(_fanouts(measured.fanouts))
    console.print(surroundings(document(measured)))
    for one in measured.series:
        if one.held:
            reasons = ", ".join(f"{reason} ({count})" for reason, count in one.held.most_common())
            console.print(f"{one.rung}: wakes were put off: {reasons}", style="yellow", markup=False)
    if len(measured.series) == 1:
        console.print("There is no tmux here, so that rung is not measured.", style="yellow")


def report_nerve(console: Console, measured: nerve.Measured) -> None:
    """Print what was measured of the nerve."""
    console.print(_fanouts(measured.fanouts))
    console.print(_idle(measured.idle))
    console.print(surroundings(nerve.document(measured)))


def report_starts(console: Console, measured: starts.Starts) -> None:
    """Print what was measured of small programs."""
    ratios = measured.ratios()
    console.print(
        _table(
            starts.TITLE,
            {
                "each, and how many times a bare Python": {
                    f"{name}, {ratios[name]:.2f} times": spread for name, spread in measured.spreads().items()
                }
            },
        )
    )
    console.print(surroundings(starts.document(measured)))


def _idle(idle: nerve.Idle) -> str:
    if idle.cpu_micros is None and idle.kib is None:
        return f"{idle.connections} idle connections: too few, for too short, to tell what one costs"
    cpu = "too little" if idle.cpu_micros is None else f"{idle.cpu_micros:.0f} µs"
    memory = "too little" if idle.kib is None else f"{idle.kib:.0f} KiB"
    return (
        f"each of {idle.connections} idle connections: {cpu} of processor time a second, "
        f"{memory} of memory, in the record's process"
    )


def _fanouts(fanouts: list[Fanout]) -> Table:
    return _table(nerve.TITLE, {f"listeners: {one.listeners}": one.steps() for one in fanouts})


def _heading(one: Series) -> str:
    return f"rung {one.rung}, {len(one.rounds)} wakes"


def _table(title: str, groups: dict[str, dict[str, Spread]]) -> Table:
    table = Table("milliseconds", title=title)
    for heading in ("p50", "p90", "p99", "max", "samples"):
        table.add_column(heading, justify="right")
    for name, steps in groups.items():
        table.add_section()
        table.add_row(Text(name, style="bold"))
        for step, spread in steps.items():
            figures = (spread.p50, spread.p90, spread.p99, spread.worst)
            table.add_row(f"  {step}", *(f"{figure:.1f}" for figure in figures), str(spread.count))
    return table
