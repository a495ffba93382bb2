"""What can go wrong in the notifier itself; each text says what to do next."""

from __future__ import annotations


class NotifierError(Exception):
    """The root."""


class AlreadyRunning(NotifierError):
    """Another notifier holds this user's lock."""

    def __init__(self, runtime_dir: str, pid: int | None) -> None:
        who = f"process {pid}" if pid else "another process"
        super().__init__(
            f"A notifier of this user runs already ({who}, {runtime_dir}); `readyroom status` shows for "
            "which record. Stop it, or give this one a folder of its own in READYROOM_RUNTIME_DIR."
        )
        self.pid = pid


class NotRunning(NotifierError):
    """Nobody answers on the control socket."""

    def __init__(self, socket_path: str) -> None:
        super().__init__(
            f"No notifier answers at {socket_path}. Start one with `readyroom notifier` (or `readyroom up`)."
        )


class UnsafeFolder(NotifierError):
    """The runtime folder is open to other users, or belongs to one."""
