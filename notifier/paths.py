"""Where the notifier and those who talk to it meet. Imports next to nothing: every hook pays for it."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_SOCKET_PATH_BYTES = 100
"""The kernels end a socket's path at 104 (macOS) or 108 bytes (Linux)."""


def runtime_dir(environ: Mapping[str, str]) -> str:
    """The folder of lock and control socket: READYROOM_RUNTIME_DIR, or one per user."""
    given = environ.get("READYROOM_RUNTIME_DIR", "").strip()
    if given and not given.startswith("${"):
        return os.path.abspath(given)
    base = environ.get("XDG_RUNTIME_DIR", "")
    if base and os.path.isdir(base):
        return os.path.join(base, "readyroom")
    return f"/tmp/readyroom-{os.getuid()}"  # noqa: S108 - private() checks owner and mode


def control_socket(folder: str) -> str:
    """The control socket's path; in a short stand-in folder where the kernel would cut the path."""
    path = os.path.join(folder, "control.sock")
    if len(os.fsencode(path)) <= _SOCKET_PATH_BYTES:
        return path
    import hashlib

    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    return f"/tmp/readyroom-{os.getuid()}/{name}.sock"  # noqa: S108 - private() checks owner and mode


def private(folder: str) -> None:
    """Make a folder that only this user can enter.

    Raises:
        PermissionError: it is there already and is not so; the text says what to do.
    """
    os.makedirs(folder, mode=0o700, exist_ok=True)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(
            f"{folder} belongs to another user or can be entered by others. Remove it, or name a folder of "
            "your own (mode 700) in READYROOM_RUNTIME_DIR."
        )
