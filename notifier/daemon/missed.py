"""What hooks left behind while no notifier ran."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import msgspec

from notifier.control.messages import Hook, read_request
from notifier.paths import private
from notifier.sessions import Process


def open_folder(runtime: str) -> str:
    """The folder for it; a hook that comes first has made it."""
    folder = os.path.join(runtime, "missed")
    private(folder)
    return folder


def discard(folder: str, process: Process | None) -> None:
    """A hook of this process was heard since."""
    if process is not None:
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(folder, f"{process.pid}-{process.started}.json"))


def take(folder: str) -> Iterator[Hook]:
    """Each process's newest hook, oldest first; what cannot be read is thrown away.

    So is one without a handle whose process is a guess: what the guess hit may be anything that outlives its
    hook for long, such as a shell, and no later hook would ever tell that it is none of ours.
    """
    paths = [os.path.join(folder, name) for name in os.listdir(folder)]
    for path in sorted(paths, key=_age):
        with contextlib.suppress(OSError, msgspec.MsgspecError, ValueError):
            with open(path, "rb") as file:
                told = read_request(file.read())
            os.unlink(path)
            if isinstance(told, Hook) and (told.sure or told.agent is not None):
                yield told
        with contextlib.suppress(OSError):
            os.unlink(path)


def _age(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0
