"""Where the notifier and those who talk to it meet. Imports next to nothing: every hook pays for it."""

from __future__ import annotations

import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_SOCKET_PATH_BYTES = 100
"""The kernels end a socket's path at 104 (macOS) or 108 bytes (Linux)."""


def runtime_dir(environ: Mapping[str, str]) -> str:
    """The folder of lock and control socket: READYROOM_RUNTIME_DIR, or one per user and data folder."""
    given = _given(environ, "READYROOM_RUNTIME_DIR")
    if given:
        return os.path.abspath(given)
    data = _given(environ, "READYROOM_DATA_DIR")
    data = os.path.realpath(os.path.expanduser(data)) if data else ""
    name = f"-{_short(data)}" if data and data != _usual_data(environ) else ""
    base = environ.get("XDG_RUNTIME_DIR", "")
    if base and os.path.isdir(base):
        return os.path.join(base, f"readyroom{name}")
    return f"/tmp/readyroom-{os.getuid()}{name}"  # noqa: S108 - private() checks owner and mode


def flag_file(folder: str, pid: int, started: int) -> str:
    """The file by whose change one process is woken; nobody else ever watches it."""
    return os.path.join(folder, "flags", f"{pid}-{started}")


def control_socket(folder: str) -> str:
    """The control socket's path; in a short stand-in folder where the kernel would cut the path."""
    path = os.path.join(folder, "control.sock")
    if len(os.fsencode(path)) <= _SOCKET_PATH_BYTES:
        return path
    return f"/tmp/readyroom-{os.getuid()}/{_short(folder)}.sock"  # noqa: S108 - private() checks owner and mode


def _given(environ: Mapping[str, str], name: str) -> str:
    value = environ.get(name, "").strip()
    return "" if value.startswith("${") else value


def _usual_data(environ: Mapping[str, str]) -> str:
    """Where `readyroom up` keeps its data unless told otherwise, as platformdirs would say."""
    home = os.path.expanduser("~")
    if sys.platform == "darwin":
        return os.path.realpath(os.path.join(home, "Library", "Application Support", "readyroom"))
    base = environ.get("XDG_DATA_HOME", "").strip() or os.path.join(home, ".local", "share")
    return os.path.realpath(os.path.join(base, "readyroom"))


def _short(path: str) -> str:
    import hashlib

    return hashlib.sha256(os.fsencode(path)).hexdigest()[:16]


def private(folder: str) -> None:
    """Make a folder that only this user can enter.

    Raises:
        PermissionError: it is there already and is not so; the text says what to do.
    """
    os.makedirs(folder, mode=0o700, exist_ok=True)
    check_private(folder)


def check_private(folder: str) -> None:
    """See that only this user can enter a folder, so that nobody else can have put anything there.

    Raises:
        FileNotFoundError: there is none.
        PermissionError: others can; the text says what to do.
    """
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(
            f"{folder} belongs to another user or can be entered by others. Remove it, or name a folder of "
            "your own (mode 700) in READYROOM_RUNTIME_DIR."
        )
