"""`make bench`: measure, show, keep. It fails when something is broken, never because something is slow."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from bench import machine, results, say, wrk
from bench.database import value
from bench.load import LoadFailed
from bench.meter import Meter
from bench.plot import plot
from bench.report import report
from bench.rounds import measure
from bench.surroundings import surroundings

SCENARIOS = {say.NAME: say}


def main(
    scenario: Annotated[list[str] | None, typer.Argument(help="Which ones.", show_default="all")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Samples of each contender.")] = 5,
    seconds: Annotated[int, typer.Option(min=1, help="Seconds a sample.")] = 3,
    folder: Annotated[Path | None, typer.Option(help="Where the database lies meanwhile.")] = None,
    keep: Annotated[bool, typer.Option(help="Write bench/results/.")] = True,
) -> None:
    """Measure Readyroom beside its baselines."""
    console = Console()
    unknown = set(scenario or ()) - set(SCENARIOS)
    trouble = f"There is no scenario {', '.join(unknown)}." if unknown else wrk.missing()
    if trouble:
        console.print(trouble, style="red")
        raise typer.Exit(1)
    for name in scenario or SCENARIOS:
        try:
            run(console, name, rounds=rounds, seconds=seconds, folder=folder, keep=keep)
        except (LoadFailed, machine.NotUp) as error:
            console.print(f"{name}: {error}", style="red", markup=False)
            raise typer.Exit(1) from None


def run(
    console: Console, name: str, *, rounds: int, seconds: int, folder: Path | None, keep: bool
) -> dict[str, Any]:
    """Run one scenario on a machine of its own."""
    scenario = SCENARIOS[name]
    with console.status("starting") as status, machine.running(folder) as up:
        facts = surroundings(up)
        measured = measure(
            scenario.cases(up),
            Meter(up.pid),
            rounds=rounds,
            seconds=seconds,
            between=lambda: value(up.superuser_dsn, "CHECKPOINT"),
            progress=status.update,
        )
    result = results.document(name, measured, facts, seconds=seconds)
    report(console, result, title=scenario.TITLE, before=results.committed(name))
    console.print(scenario.verdict(measured))
    if keep:
        results.keep(name, result, plot(result, title=scenario.TITLE))
    return result


if __name__ == "__main__":
    typer.run(main)
