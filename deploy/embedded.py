"""One machine, one command: PostgreSQL, the record with its nerve, this machine's notifier.

The record runs in this process; PostgreSQL and the notifier are children in the same process group. When this
process is killed, the kernel ends the children (Linux), or the next start clears away what is left.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import uvloop
from pydantic import SecretStr

from api.settings import Settings
from deploy.box import Box, NoBox, sign_in
from deploy.children import dies_with_us
from deploy.folder import DataFolder
from deploy.keeping import KeptProcess, keep_postgres
from deploy.listening import is_loopback, listen, url_of
from deploy.logfile import open_log
from deploy.postgres import Postgres
from deploy.schema import upgrade
from deploy.server import Server
from deploy.signals import StopButton, raising_stop

GUEST_CONNECTIONS = 64
"""Room for programs other than the record: backups, benches, a curious operator."""

SERVICE_ONLY = frozenset(
    f"READYROOM_{name}"
    for name in (
        "DATABASE_URL",
        "DATABASE_URL_FILE",
        "ADMIN_TOKEN_FILE",
        "NERVE_TOKEN_FILE",
        "TOKEN",
        "AGENT",
    )
)
"""What the notifier has no business with."""


@dataclass(frozen=True)
class Running:
    """What runs where, once it is ready.

    Attributes:
        url: where this machine's programs reach the record.
        loopback: whether only they can.
        first_start: whether the data folder was new.
        postgres: the embedded server; None when the database is elsewhere.
        box: this machine's own, or why it has none.
    """

    url: str
    nerve_url: str
    loopback: bool
    first_start: bool
    postgres: Postgres | None
    box: Box | NoBox


class Machine:
    """Everything on one machine.

    Args:
        folder: the data folder.
        settings: where to listen; with `database_url` the database is elsewhere and PostgreSQL is left out.
        with_notifier: whether this machine's notifier runs too.
        stage: told what is being done while it starts.
        ready: told once what runs where.
    """

    def __init__(
        self,
        folder: DataFolder,
        settings: Settings,
        *,
        with_notifier: bool,
        stage: Callable[[str], None],
        ready: Callable[[Running], None],
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._with_notifier = with_notifier
        self._stage = stage
        self._ready = ready
        self._first_start = False
        self._postgres: Postgres | None = None
        self._notifier: KeptProcess | None = None

    def run(self) -> None:
        """Start everything, keep it up, and stop it when asked by a signal. Must run in the main thread.

        Raises:
            FolderTaken, CannotListen, PostgresFailed, SchemaFailed, RecordFailed: nothing is left running.
            StopAsked: a signal came before the record was up; nothing is left running.
        """
        with raising_stop(), contextlib.ExitStack() as undo:
            self._folder.make()
            undo.enter_context(self._folder.held())
            listener = undo.enter_context(listen(self._settings.host, self._settings.port))
            self._first_start = not self._folder.admin_token_file.exists()
            self._folder.admin_token()
            dsn = undo.enter_context(self._database())
            self._stage("Bringing the schema up to date")
            upgrade(dsn)
            self._stage("Starting the record")
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve(listener, dsn))

    @contextlib.contextmanager
    def _database(self) -> Iterator[str]:
        if self._settings.database_url or self._settings.database_url_file:
            yield self._settings.database_dsn()
            return
        self._stage("Starting PostgreSQL")
        connections = 3 * self._settings.database_connections + GUEST_CONNECTIONS
        with Postgres(self._folder.path, max_connections=connections) as self._postgres:
            yield self._postgres.dsn

    async def _serve(self, listener: socket.socket, dsn: str) -> None:
        """Run the parts until one fails or a signal comes, then end them in order."""
        from api.app import create_app  # takes over a second, which nobody waits for who cannot start at all

        reload_wanted = asyncio.Event()
        stop = StopButton(again=lambda: self._hurry(server), reload=reload_wanted.set)
        port = listener.getsockname()[1]
        server = Server(
            create_app(
                self._settings.model_copy(
                    update={
                        "database_url": SecretStr(dsn),
                        "admin_token_file": self._folder.admin_token_file,
                        "port": port,
                    }
                ),
                reload_wanted=reload_wanted,
            ),
            listener,
        )
        record = asyncio.create_task(server.run_until_stopped())
        others = [asyncio.create_task(part) for part in (stop.wait(), self._attend(server, listener, dsn))]
        if self._postgres:
            others.append(asyncio.create_task(keep_postgres(self._postgres)))
        try:
            done, _ = await asyncio.wait([record, *others], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            self._folder.withdraw()
            server.stop()
            await self._end(record, others)

    async def _attend(self, server: Server, listener: socket.socket, dsn: str) -> None:
        """Once the record answers: sign this machine in, tell that all is ready, keep the notifier up."""
        await server.up()
        url = url_of(listener)
        nerve_url = self._settings.nerve_url or url
        try:
            box: Box | NoBox = await sign_in(url, self._folder)
        except NoBox as trouble:
            box = trouble
        self._ready(
            Running(
                url=url,
                nerve_url=nerve_url,
                loopback=is_loopback(listener),
                first_start=self._first_start,
                postgres=self._postgres,
                box=box,
            )
        )
        self._folder.announce(url=url, nerve_url=nerve_url, database_url=dsn, pid=os.getpid())
        if self._with_notifier and isinstance(box, Box):
            self._notifier = KeptProcess("notifier", lambda: start_notifier(self._folder, url))
            await self._notifier.keep()
        await asyncio.Event().wait()

    async def _end(self, record: asyncio.Task[None], others: list[asyncio.Task[None]]) -> None:
        for task in others:
            task.cancel()
        await asyncio.wait(others)
        if self._notifier:
            await self._notifier.stop()
        await asyncio.wait([record])
        if self._postgres:
            await asyncio.to_thread(self._postgres.stop)

    def _hurry(self, server: Server) -> None:
        """Somebody is tired of waiting."""
        server.stop(hurry=True)
        if self._notifier:
            self._notifier.hurry()
        if self._postgres:
            self._postgres.hurry()


def start_notifier(folder: DataFolder, url: str) -> subprocess.Popen[bytes]:
    """Start this machine's notifier; it finds its record and its token in its environment, as files."""
    environment = {name: value for name, value in os.environ.items() if name not in SERVICE_ONLY}
    environment |= {
        "READYROOM_URL": url,
        "READYROOM_TOKEN_FILE": str(folder.box_token_file),
        "READYROOM_DATA_DIR": str(folder.path),
    }
    with open_log(folder.path / "notifier.log") as log:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "readyroom", "notifier"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            preexec_fn=dies_with_us(signal.SIGTERM),
        )
