"""Where a hook was called from: its program's JSON, process, terminal and handle."""

from __future__ import annotations

import json
import os
import select
import time

from notifier.programs.processes import ancestors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from notifier.programs.base import Program, Told
    from notifier.programs.processes import Seen

_READ_WITHIN = 0.5
_READ_AT_MOST = 16 * 1024 * 1024


def given(fd: int) -> dict[str, Any]:
    """The JSON object on `fd`; `{}` for a terminal, nothing, garbage, or a writer that does not finish."""
    if os.isatty(fd):
        return {}
    try:
        value = json.loads(_read(fd))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _read(fd: int) -> bytes:
    parts: list[bytes] = []
    left, end = _READ_AT_MOST, time.monotonic() + _READ_WITHIN
    while left > 0 and select.select([fd], [], [], max(0.0, end - time.monotonic()))[0]:
        part = os.read(fd, 1 << 16)
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def find_place(program: Program, told: Told, environ: Mapping[str, str]) -> dict[str, Any]:
    """Handle, process, terminal and folder, in the control socket's words."""
    above = list(ancestors(os.getppid()))
    found = program.owner(environ, above)
    seen, sure = found if found else (None, False)
    return {
        "agent": _set(environ, "READYROOM_AGENT"),
        "session_id": told.session_id,
        "cwd": told.cwd or _folder(),
        "resting": told.resting,
        "read": told.read,
        "boundary": told.boundary,
        "lone": told.lone,
        "process": {"pid": seen.pid, "started": seen.started} if seen else None,
        "sure": sure,
        "above": [{"pid": each.pid, "started": each.started} for each in above],
        "tty": seen.tty if seen else None,
        "registry": told.registry or (program.registry(environ, seen.pid) if seen else None),
        "tmux": _pane(environ),
        "pty_socket": _run(environ, above),
        "wake_on": _set(environ, "READYROOM_WAKE_ON"),
    }


def _set(environ: Mapping[str, str], name: str) -> str | None:
    """A variable; None for what agent programs hand on in place of one that is not set."""
    value = environ.get(name, "").strip()
    return None if not value or value.startswith("${") else value


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


def _run(environ: Mapping[str, str], above: Sequence[Seen]) -> str | None:
    """The socket of the `readyroom run` above us. The variable outlives it, in a multiplexer's server too."""
    path = environ.get("READYROOM_PTY", "")
    name = os.path.basename(path)
    return path if name in {f"run-{seen.pid}.sock" for seen in above} else None


def _pane(environ: Mapping[str, str]) -> dict[str, Any] | None:
    """From TMUX (`socket,server pid,session`) and TMUX_PANE (`%N`)."""
    socket, _, rest = environ.get("TMUX", "").partition(",")
    server, pane = rest.partition(",")[0], environ.get("TMUX_PANE", "")
    if not socket or not server.isdigit() or not pane.startswith("%"):
        return None
    return {"socket": socket, "server_pid": int(server), "pane": pane}
