"""`readyroom up`: everything on this machine, and how another one joins."""

from __future__ import annotations

import contextlib
import getpass
import os
import shlex
import socket
from pathlib import Path
from typing import Annotated

import platformdirs
import typer
from rich.console import Console
from rich.text import Text

from deploy.box import Box
from deploy.embedded import Machine, Running
from deploy.folder import DataFolder, FolderTaken
from deploy.listening import CannotListen, listen
from deploy.programs import PostgresFailed
from deploy.schema import SchemaFailed
from deploy.server import RecordFailed
from deploy.signals import StopAsked
from notifier.daemon.lock import only_one
from notifier.errors import NotifierError
from notifier.paths import runtime_dir
from notifier.settings import in_words
from readyroom import __version__
from readyroom.entrance import enter
from readyroom.service import fail, log_to_file, service_settings

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def main(argv: list[str]) -> int:
    """Run until asked to stop; 1 when it cannot start."""
    return enter(app, argv[1:], name="readyroom up")


@app.command()
def up(
    data_dir: Annotated[
        Path | None,
        typer.Option(envvar="READYROOM_DATA_DIR", help="Where the data lies.", show_default="per user"),
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="The address to listen on.", show_default="127.0.0.1")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.", show_default="7666")
    ] = None,
    notifier: Annotated[
        bool, typer.Option("--notifier/--no-notifier", help="Run this box's notifier.")
    ] = True,
) -> None:
    """Run PostgreSQL, the record, the nerve and this box's notifier. Ctrl-C stops all of them.

    SIGHUP makes it find out anew who may be on the nerve. READYROOM_NERVE_URL, READYROOM_NERVE_PUBLIC_URL,
    READYROOM_REDIS_URL and all other settings: docs/reference/settings.md.
    """
    settings = service_settings(host=host, port=port)
    folder = DataFolder(data_dir or usual_data())
    page = Page(folder, with_notifier=notifier)
    machine = Machine(folder, settings, with_notifier=notifier, stage=page.stage, ready=page.ready)
    try:
        if not folder.path.exists():
            with listen(settings.host, settings.port):  # where it could not run, nothing is made
                folder.make()
        log_to_file(folder.path / "record.log")
        machine.run()
    except (FolderTaken, CannotListen, PostgresFailed, RecordFailed, SchemaFailed, LookupError) as error:
        fail(str(error))
    except OSError as error:
        fail(
            f"{error.filename or folder.path} cannot be used ({in_words(error)}). Name a data folder that "
            "you can write to, on a disk with room, with --data-dir or READYROOM_DATA_DIR."
        )
    except StopAsked:
        pass
    page.stage("Stopped")


class Page:
    """What `up` shows."""

    def __init__(self, folder: DataFolder, *, with_notifier: bool) -> None:
        self._folder = folder
        self._with_notifier = with_notifier
        self._console = Console(highlight=False, soft_wrap=True)

    def stage(self, text: str) -> None:
        """One line about what is being done."""
        self._show(Text(f"{text} …" if text != "Stopped" else text, style="dim"))

    def ready(self, running: Running) -> None:
        """What runs where, what to guard, and how another machine joins."""
        self._show(Text(f"\nReadyroom {__version__} is up.  Ctrl-C stops it.\n", style="bold green"))
        self._show(self._parts(running))
        if running.first_start:
            self._show(Text(f"\n{READERS_WARNING}", style="yellow"))
        if not running.loopback:
            self._show(Text(f"\n{OPEN_WARNING}", style="bold yellow"))
        self._show(Text(f"\n{joining(running, self._folder)}\n"))

    def _parts(self, running: Running) -> Text:
        parts = {
            "record": f"{running.url}   (REST under /v1, described at /docs)",
            "nerve": running.nerve_url,
            "postgres": self._postgres(running),
            "box": running.box.name if isinstance(running.box, Box) else f"none: {running.box}",
            "notifier": self._notifier(running),
            "data": f"{self._folder.path}   (logs: record.log, postgres.log, notifier.log)",
            "tokens": "admin.token (the operator's), box.token (this box's)",
        }
        return Text("\n").join(Text.assemble((f"{name:<10}", "bold"), text) for name, text in parts.items())

    def _postgres(self, running: Running) -> str:
        server = running.postgres
        if server is None:
            return "elsewhere (READYROOM_DATABASE_URL)"
        lent = f", as {server.account_name}" if server.account_name else ""
        return f"embedded, in {server.places.home}{lent}"

    def _notifier(self, running: Running) -> str:
        if not self._with_notifier:
            return "left out (--no-notifier)"
        if not isinstance(running.box, Box):
            return "does not run: this machine has no box"
        try:
            with only_one(runtime_dir({**os.environ, "READYROOM_DATA_DIR": str(self._folder.path)})):
                return "runs"  # it is started next, and finds its folder free
        except (NotifierError, OSError) as error:
            return f"does not run; tried again until it does. {error}"

    def _show(self, what: Text) -> None:
        with contextlib.suppress(OSError):  # the terminal may be gone
            self._console.print(what)


READERS_WARNING = (
    "Made admin.token and box.token. Only you can read them (mode 600), and so can every program that runs "
    "as you, agents included."
)

OPEN_WARNING = (
    "It listens beyond this machine, without TLS: tokens and messages can be read on the way. Put a TLS "
    "proxy in front, or keep it inside a private network (WireGuard, Tailscale)."
)


def usual_data() -> Path:
    """Where the data lies unless told otherwise; the command line looks here, too."""
    return platformdirs.user_data_path("readyroom")


def joining(running: Running, folder: DataFolder) -> str:
    """How another machine joins: a code from here, one line there."""
    here, port = socket.gethostname(), running.url.rpartition(":")[2]
    if running.loopback:
        url = f"http://127.0.0.1:{port}"
        forward = f"-o ExitOnForwardFailure=yes -L {port}:127.0.0.1:{port}"
        tunnel = f"ssh -fN {forward} {getpass.getuser()}@{here} && "
        otherwise = "A TLS proxy or a private network does as well as the SSH tunnel: give its URL instead."
    else:
        url, tunnel = f"http://{here}:{port}", ""
        otherwise = "Behind a TLS proxy, give the proxy's URL instead."
    unusual = folder.path != DataFolder(usual_data()).path
    data = f"READYROOM_DATA_DIR={shlex.quote(str(folder.path))} " if unusual else ""
    return (
        "Another machine joins with a one-use code:\n"
        f"  here:   {data}readyroom admin invite NAME   (it shows the code)\n"
        f"  there:  {tunnel}readyroom connect {url}   (it asks for the code)\n"
        f"{otherwise}\n"
        "`readyroom` is .venv/bin/readyroom of a clone after `make install`, here and there."
    )
