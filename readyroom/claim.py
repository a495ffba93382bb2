"""Which handle a launched session goes by, and a lock so that two processes never share one."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
from dataclasses import dataclass
from typing import TextIO

from notifier import paths
from notifier.record import Record, Refused

_NUMBER = re.compile(r"#(\d+)$")
_NOT_OURS_ANY_MORE = (404, 409, 410, 422)


@dataclass(frozen=True, slots=True)
class Claim:
    """A handle that this process alone goes by, on this machine.

    Attributes:
        agent: the handle.
        lock: an open, locked file; the kernel gives it up when the process dies.
    """

    agent: str
    lock: TextIO

    def release(self) -> None:
        """Let others take the handle up."""
        self.lock.close()


async def check_in(record: Record, program: str, role: str | None, *, new: bool, folder: str) -> Claim:
    """Take up the newest offline handle of this box, role, program and folder again, or mint one.

    `folder` holds the locks; it is this user's alone.
    """
    cwd = os.fsencode(os.getcwd()).decode(errors="replace")
    for agent in [] if new else await _offline(record, program, role, cwd):
        claim = _claim(agent, folder)
        if claim is None:
            continue
        try:
            await record.checkin(role=role, harness=program, cwd=cwd, resume=agent)
        except Refused as refused:
            claim.release()
            if refused.status not in _NOT_OURS_ANY_MORE:
                raise
            continue
        return claim
    minted = str((await record.checkin(role=role, harness=program, cwd=cwd))["agent"])
    claim = _claim(minted, folder)
    if claim is None:
        raise OSError(f"the new handle {minted} is locked by another process of this user")
    return claim


def forget(agent: str, folder: str) -> None:
    """Remove what is kept of a handle that has retired."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(_lock_file(agent, folder))


async def _offline(record: Record, program: str, role: str | None, cwd: str) -> list[str]:
    """Handles that could be taken up again, newest first."""
    box = (await record.whoami())["box"]
    wanted = {"kind": "session", "box": box, "role": role, "harness": program, "cwd": cwd, "state": "offline"}
    rows = [row for row in await record.agents() if all(row.get(k) == v for k, v in wanted.items())]
    rows.sort(key=lambda row: (row.get("last_seen") or "", _number(row["agent"])), reverse=True)
    return [row["agent"] for row in rows]


def _number(agent: str) -> int:
    found = _NUMBER.search(agent)
    return int(found[1]) if found else 0


def _claim(agent: str, folder: str) -> Claim | None:
    path = _lock_file(agent, folder)
    paths.private(os.path.dirname(path))
    lock = open(path, "w")  # noqa: SIM115 - held for as long as the process lives
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return Claim(agent, lock)


def _lock_file(agent: str, folder: str) -> str:
    name = hashlib.sha256(agent.encode()).hexdigest()[:32]
    return os.path.join(folder, "handles", f"{name}.lock")
