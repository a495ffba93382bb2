"""`readyroom demo`: two sessions on two boxes; one wakes the other, in front of your eyes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console

from readyroom.demo.children import StepFailed
from readyroom.demo.latency import Leg, latency_table
from readyroom.demo.mirror import Mirror
from readyroom.demo.play import command_of, perform
from readyroom.demo.stage import Stage, build, clean_environment
from readyroom.demo.windows import PtyWindow, Tmux, Window, short_folder
from readyroom.entrance import enter

SWEEP_SECONDS = 60.0
SWEEP_SECONDS_WITHOUT_NERVE = 2.0
LAST_LOOK_SECONDS = 3.0

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Nerve(StrEnum):
    """Whether nudges are carried."""

    ON = "on"
    OFF = "off"


def main(argv: list[str]) -> int:
    """Run the demo; 1 when a step did not come in time."""
    return enter(app, argv[1:], name="readyroom demo")


@app.command()
def demo(
    nerve: Annotated[
        Nerve, typer.Option(help="off: nobody is nudged, and the regular re-check finds it.")
    ] = Nerve.ON,
    plain: Annotated[
        bool, typer.Option("--plain", help="No tmux: show what is printed line by line.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the latencies as JSON; implies --plain.")
    ] = False,
) -> None:
    """Show two sessions on two boxes: one asks, the other is woken by keystrokes and answers.

    It starts a record, two notifiers and two small agent programs of its own, touches nothing that is yours,
    ends by itself and leaves nothing behind.
    """
    console = Console(highlight=False, stderr=as_json)
    try:
        legs = asyncio.run(_play(console, nerve=nerve is Nerve.ON, tmux=not (plain or as_json)))
    except StepFailed as failed:
        sys.stderr.write(f"readyroom demo: {failed}\n")
        raise typer.Exit(1) from None
    except (asyncio.CancelledError, KeyboardInterrupt):
        sys.stderr.write("readyroom demo: stopped.\n")
        raise typer.Exit(1) from None
    if as_json:
        sys.stdout.write(json.dumps({"legs": [leg.to_json() for leg in legs]}) + "\n")
    else:
        console.print(latency_table(legs))


async def _play(console: Console, *, nerve: bool, tmux: bool) -> tuple[Leg, Leg]:
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    console.print("Starting a record and two boxes, desk and lab, with a notifier each …")
    sweep = SWEEP_SECONDS if nerve else SWEEP_SECONDS_WITHOUT_NERVE
    async with build(nerve=nerve, sweep_seconds=sweep) as stage:
        looking = tmux and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        watched = _in_tmux if looking and shutil.which("tmux") else _in_ptys
        async with watched(stage, console) as windows:
            return await perform(stage, windows, console.print)


@asynccontextmanager
async def _in_ptys(stage: Stage, console: Console) -> AsyncIterator[tuple[Window, Window]]:
    with contextlib.ExitStack() as undo:
        windows: list[Window] = []
        for box, style in zip(stage.boxes, ("cyan", "magenta"), strict=True):
            mirror = Mirror(console, box.name, style)
            window = PtyWindow(command_of(box), env=clean_environment() | box.own, show=mirror.feed)
            undo.callback(window.close)
            windows.append(window)
        yield windows[0], windows[1]


@asynccontextmanager
async def _in_tmux(stage: Stage, console: Console) -> AsyncIterator[tuple[Window, Window]]:
    with contextlib.ExitStack() as undo:
        tmux = Tmux(undo.enter_context(short_folder(stage.folder)) / "tmux.sock", env=clean_environment())
        undo.callback(tmux.close)
        windows = [tmux.open(box.name, command_of(box), own=box.own) for box in stage.boxes]
        viewer = tmux.attach()
        undo.callback(viewer.wait)
        undo.callback(tmux.detach)
        console.quiet = True
        undo.callback(setattr, console, "quiet", False)
        yield windows[0], windows[1]
        if viewer.poll() is None:
            await asyncio.sleep(LAST_LOOK_SECONDS)
