"""Who PostgreSQL runs as, and what that account can reach.

PostgreSQL refuses to run as root. As root we lend it an account that exists already; nothing is ever added to
the system's users, and no mode of a folder that is not ours is changed.
"""

from __future__ import annotations

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

ACCOUNTS = ("postgres", "nobody")


@dataclass(frozen=True)
class Account:
    """An unprivileged account of this system."""

    name: str
    uid: int
    gid: int

    def can_enter(self, folder: Path) -> bool:
        """Whether every folder from the root down to `folder` lets the account pass (by mode bits alone)."""
        path = folder.resolve()
        return all(self._may_pass(part) for part in (path, *path.parents))

    def _may_pass(self, folder: Path) -> bool:
        try:
            status = folder.stat()
        except OSError:
            return False
        if status.st_uid == self.uid:
            return bool(status.st_mode & stat.S_IXUSR)
        if status.st_gid == self.gid:
            return bool(status.st_mode & stat.S_IXGRP)
        return bool(status.st_mode & stat.S_IXOTH)

    def give(self, folder: Path) -> None:
        """Make `folder`, which must be ours, the account's own and closed to all others."""
        os.chown(folder, self.uid, self.gid)


def borrowed() -> Account | None:
    """The account that PostgreSQL runs under when we are root; None when it runs as we do.

    Raises:
        LookupError: we are root and the system has none of the accounts.
    """
    if os.geteuid() != 0:
        return None
    for name in ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name=name, uid=entry.pw_uid, gid=entry.pw_gid)
    raise LookupError(
        f"PostgreSQL does not run as root, and this system has no account named {' or '.join(ACCOUNTS)}. "
        "Start readyroom as an ordinary user, or set READYROOM_DATABASE_URL."
    )
