"""One notifier per user and box: a lock that the kernel gives up when its holder dies."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

from notifier.errors import AlreadyRunning, UnsafeFolder
from notifier.paths import control_socket, private


@contextlib.contextmanager
def only_one(folder: str) -> Iterator[None]:
    """Hold the lock of `folder`, and see that it is this user's alone.

    Raises:
        AlreadyRunning: another process holds it.
        UnsafeFolder: others can enter the folder.
    """
    try:
        private(folder)
        private(os.path.dirname(control_socket(folder)))
    except PermissionError as error:
        raise UnsafeFolder(str(error)) from None
    with open(os.path.join(folder, "lock"), "a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            text = file.read().strip()
            raise AlreadyRunning(folder, int(text) if text.isdigit() else None) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
