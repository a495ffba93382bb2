"""`make bench`: measure, show, keep. It fails when something is broken, never because something is slow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from bench import delays, machine, nerve, results, say, starts, wakes, wrk
from bench.database import value
from bench.load import LoadFailed
from bench.meter import Meter
from bench.plot import plot
from bench.report import report
from bench.rounds import measure
from bench.surroundings import surroundings

CONTESTS = {say.NAME: say}
PAGE_COLUMNS = 160
"""Where the output is no terminal, nothing needs to be folded."""
SCENARIOS = (*CONTESTS, wakes.NAME, nerve.NAME, starts.NAME)


def main(
    scenario: Annotated[list[str] | None, typer.Argument(help="Which ones.", show_default="all")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Samples of each contender.")] = 5,
    seconds: Annotated[int, typer.Option(min=1, help="Seconds a sample.")] = 3,
    wakes_a_rung: Annotated[
        int, typer.Option("--wakes", min=1, max=wakes.MOST_ROUNDS, help="Wakes of each rung.")
    ] = 50,
    listeners: Annotated[
        list[int] | None, typer.Option(min=1, help="Listeners of the nerve; may be given again.")
    ] = None,
    says: Annotated[int, typer.Option(min=1, help="Says to each number of listeners.")] = 100,
    idle_seconds: Annotated[int, typer.Option(min=1, help="How long idle listeners are watched.")] = 20,
    times: Annotated[int, typer.Option("--starts", min=1, help="Starts of each program.")] = 100,
    folder: Annotated[Path | None, typer.Option(help="Where the database lies meanwhile.")] = None,
    keep: Annotated[bool, typer.Option(help="Write bench/results/.")] = True,
) -> None:
    """Measure Readyroom beside its baselines."""
    console = Console()
    if not console.is_terminal:
        console.width = PAGE_COLUMNS
    unknown = set(scenario or ()) - set(SCENARIOS)
    trouble = f"There is no scenario {', '.join(unknown)}: {', '.join(SCENARIOS)}." if unknown else None
    if not unknown and CONTESTS.keys() & set(scenario or SCENARIOS):
        trouble = wrk.missing()
    if trouble:
        console.print(trouble, style="red")
        raise typer.Exit(1)
    for name in scenario or SCENARIOS:
        try:
            if name == wakes.NAME:
                wake(console, rounds=wakes_a_rung, folder=folder, keep=keep)
            elif name == starts.NAME:
                start(console, times, folder=folder, keep=keep)
            elif name == nerve.NAME:
                numbers = listeners or nerve.LISTENERS
                listen(console, numbers, says=says, idle_seconds=idle_seconds, folder=folder, keep=keep)
            else:
                run(console, name, rounds=rounds, seconds=seconds, folder=folder, keep=keep)
        except (LoadFailed, machine.NotUp) as error:
            console.print(f"{name}: {error}", style="red", markup=False)
            raise typer.Exit(1) from None


def run(
    console: Console, name: str, *, rounds: int, seconds: int, folder: Path | None, keep: bool
) -> dict[str, Any]:
    """Run one contest on a machine of its own."""
    scenario = CONTESTS[name]
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
        results.keep(name, result, plot(result))
    return result


def wake(console: Console, *, rounds: int, folder: Path | None, keep: bool) -> None:
    """Run the scenario of the wakes, which has no baseline."""
    with console.status("waking") as status:
        measured = wakes.measure(rounds, folder, progress=status.update)
    delays.report(console, measured)
    if keep:
        results.keep(wakes.NAME, wakes.document(measured))


def listen(
    console: Console,
    listeners: Sequence[int],
    *,
    says: int,
    idle_seconds: int,
    folder: Path | None,
    keep: bool,
) -> None:
    """Run the scenario of the nerve, which has no baseline either."""
    with console.status("listening") as status:
        measured = nerve.measure(
            listeners, says=says, idle_seconds=idle_seconds, folder=folder, progress=status.update
        )
    delays.report_nerve(console, measured)
    if keep:
        results.keep(nerve.NAME, nerve.document(measured))


def start(console: Console, times: int, *, folder: Path | None, keep: bool) -> None:
    """Run the scenario of the small programs."""
    with console.status("starting") as status:
        measured = starts.measure(times, folder, progress=status.update)
    delays.report_starts(console, measured)
    if keep:
        results.keep(starts.NAME, starts.document(measured))


if __name__ == "__main__":
    typer.run(main)
