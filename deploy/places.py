"""Where the embedded PostgreSQL keeps its cluster and its socket.

Usually all of it lies in the data folder. As root the borrowed account must be able to reach each of them;
what it cannot reach lies under `/var/lib/readyroom`, and `postgres.location` in the data folder says so.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from deploy.account import Account

SYSTEM_FOLDER = Path("/var/lib/readyroom")
PLAIN = re.compile(r"[A-Za-z0-9/._+-]+")
LOCATION_FILE = "postgres.location"
SOCKET_PATH_MAX = 103
"""Bytes of a Unix socket's path, without the final NUL, on the stricter of Linux (107) and macOS (103)."""


@dataclass(frozen=True)
class Places:
    """`home` is ours; `cluster` and `run` belong to the account that PostgreSQL runs under (mode 700)."""

    home: Path
    run: Path

    @property
    def cluster(self) -> Path:
        """The cluster proper, PostgreSQL's PGDATA."""
        return self.home / "data"

    def tidy(self) -> None:
        """Remove the socket's folder if nothing is in it; call it while nobody else may start the server."""
        with contextlib.suppress(OSError):
            self.run.rmdir()


def settle(data_dir: Path, account: Account | None) -> Places:
    """Choose the places for `data_dir` and make `home`. The choice is stable."""
    home = _home(data_dir.resolve(), account)
    return Places(home=home, run=_run_folder(home, account))


def own_folder(folder: Path, account: Account | None) -> None:
    """Make `folder`, mode 700, for the account. One that is there already must be just that.

    Raises:
        PermissionError: somebody else made it, or it is open to others, or a symbolic link.
    """
    uid = account.uid if account else os.geteuid()
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == uid and not found.st_mode & 0o077:
            return
        raise PermissionError(f"{folder} is not a private folder of ours. Remove it, start again.") from None
    if account:
        account.give(folder)


def open_folder(folder: Path) -> None:
    """Make `folder` ours, so that every account may pass through it; leave one that is there as it is."""
    try:
        folder.mkdir()
    except FileExistsError:
        return
    folder.chmod(0o755)  # whatever the umask made of it


def _home(data_dir: Path, account: Account | None) -> Path:
    note = data_dir / LOCATION_FILE
    home = data_dir / "postgres"
    if note.exists():
        home = Path(note.read_text(encoding="utf-8").strip())
    elif account and not home.exists() and not account.can_enter(data_dir):
        # Never a name that an earlier folder at the same path may have used: its data is not ours.
        home = system_folder() / f"cluster-{secrets.token_hex(6)}"
        note.touch(mode=0o600)
        note.write_text(f"{home}\n", encoding="utf-8")
    if account:
        open_folder(home)
    else:
        home.mkdir(mode=0o700, exist_ok=True)
    return home


def _run_folder(home: Path, account: Account | None) -> Path:
    if _fits(home / "run"):
        return home / "run"
    key = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    if account:
        return system_folder() / f"run-{key}"
    for base in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):  # noqa: S108
        folder = Path(base or "/") / f"readyroom-{os.geteuid()}-{key}"
        if base and _fits(folder) and os.access(base, os.W_OK):
            return folder
    raise OSError("No folder with a short, plain path for PostgreSQL's socket. Set TMPDIR to one.")


def _fits(folder: Path) -> bool:
    """Whether a socket in it can be opened, and be named in a libpq URL (a comma begins another host)."""
    path = str(folder / ".s.PGSQL.5432.lock")
    return len(path) <= SOCKET_PATH_MAX and PLAIN.fullmatch(path) is not None


def system_folder() -> Path:
    """Where things lie that every account must reach; ours, made by root when first needed."""
    open_folder(SYSTEM_FOLDER)
    return SYSTEM_FOLDER
