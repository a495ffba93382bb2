"""The data folder of one machine: who holds it, its tokens, and what it tells other programs."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

OPERATOR_PREFIX = "rra_"


class FolderTaken(Exception):
    """Another `readyroom up` holds the folder."""

    def __init__(self, folder: Path, holder: str) -> None:
        super().__init__(
            f"Another `readyroom up` (process {holder}) holds {folder}. Stop it first, or start this one "
            "with another --data-dir and another --port."
        )


def open_lock(path: Path) -> TextIO:
    """A file to lock and to write into who holds it; private, also when an earlier version made it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    os.fchmod(descriptor, 0o600)
    return os.fdopen(descriptor, "a+", encoding="utf-8")


class DataFolder:
    """`admin.token`, `box.token` and `up.json`, each of mode 600 and replaced in one step."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().absolute()
        self.admin_token_file = self.path / "admin.token"
        self.box_token_file = self.path / "box.token"
        self.up_file = self.path / "up.json"

    def make(self) -> None:
        """Make the folder where there is none. One that exists keeps its mode.

        As root others may pass through, for PostgreSQL runs under another account; nothing in it is readable.
        """
        if not self.path.is_dir():
            self.path.mkdir(parents=True, mode=0o700)
            self.path.chmod(0o711 if os.geteuid() == 0 else 0o700)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the folder for the block; the kernel lets go of it when the process ends in any way.

        Raises:
            FolderTaken: somebody else holds it.
        """
        with open_lock(self.path / "lock") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.seek(0)
                raise FolderTaken(self.path, lock.read().strip() or "unknown") from None
            lock.truncate(0)
            lock.write(f"{os.getpid()}\n")
            lock.flush()
            self.withdraw()
            yield

    def admin_token(self) -> str:
        """The operator's token; made when there is none yet."""
        return self.read(self.admin_token_file) or self.keep(
            self.admin_token_file, OPERATOR_PREFIX + secrets.token_urlsafe(32)
        )

    def announce(self, **facts: str | int) -> None:
        """Write `up.json`: the machine is ready."""
        self.keep(self.up_file, json.dumps(facts, indent=2))

    def withdraw(self) -> None:
        """Remove `up.json`."""
        self.up_file.unlink(missing_ok=True)

    def read(self, file: Path) -> str | None:
        """The text of a file without its final newline; None when it is missing or empty."""
        try:
            return file.read_text(encoding="utf-8").strip() or None
        except FileNotFoundError:
            return None

    def keep(self, file: Path, text: str) -> str:
        """Write a private file so that it is there whole, or not at all, whatever happens. Returns `text`."""
        fresh = file.with_name(f".{file.name}.new")
        fresh.unlink(missing_ok=True)
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
            out.write(f"{text}\n")
            out.flush()
            os.fsync(out.fileno())
        fresh.replace(file)
        return text
