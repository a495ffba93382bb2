"""`readyroom notifier`: run this box's notifier in the foreground, or have it run."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Annotated

import typer

from notifier.daemon import Daemon, Parts
from notifier.errors import NotifierError
from notifier.inbox import Policy
from notifier.logs import configure
from notifier.paths import runtime_dir
from notifier.settings import Settings
from notifier.wakers import Flags, Person, ladder
from readyroom import __version__
from readyroom.entrance import enter
from readyroom.notifier_unit import install, uninstall
from readyroom.waking import waking

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def main(argv: list[str]) -> int:
    """Run until SIGINT or SIGTERM; 1 when it cannot start."""
    return enter(app, argv[1:], name="readyroom notifier")


@app.callback(invoke_without_command=True)
def notifier(
    context: typer.Context,
    damper: Annotated[
        bool, typer.Option("--damper/--no-damper", help="Hold back two agents who only wake each other.")
    ] = True,
    debug: Annotated[bool, typer.Option("--debug", help="Log every look at the record, too.")] = False,
) -> None:
    """Run this box's notifier: it hears nudges, and wakes idle sessions that have something to read.

    One runs for each user (READYROOM_RUNTIME_DIR keeps several apart). It starts whether or not the record
    can be reached, and logs to standard error. Ctrl-C stops it.
    """
    if context.invoked_subcommand is not None:
        return
    settings = Settings.load()
    access, how = settings.access(), waking(settings)
    configure(debug=debug)
    folder, flags, person = runtime_dir(os.environ), Flags(), Person()
    parts = Parts(
        url=access.url,
        token=access.token.get_secret_value(),
        folder=folder,
        wakers=ladder(folder, flags, person, only=how.only),
        flags=flags,
        person=person,
        bell=how.bell,
        policy=Policy(sweep=settings.sweep_seconds, damper=damper, wake_on=how.rules),
        version=__version__,
    )
    try:
        asyncio.run(_until_told_to_stop(Daemon(parts)))
    except NotifierError as error:
        sys.stderr.write(f"readyroom: {error}\n")
        raise typer.Exit(1) from None


app.command()(install)
app.command()(uninstall)


async def _until_told_to_stop(daemon: Daemon) -> None:
    running = asyncio.create_task(daemon.run())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, running.cancel)
    try:
        await running
    except asyncio.CancelledError:
        return
