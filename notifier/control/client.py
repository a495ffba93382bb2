"""The caller's side of the door: blocking, standard library only, quick to import.

A request is `{"op": ..., ...}`, its answer `{"ok": true, ...}` or `{"ok": false, "detail": ...}`.

- `hook`, from hooks: `event`, `program`, `agent`, `session_id`, `wake_on`, a place; answers `agent` and more.
- `flagged`, from hooks: `process`, whose flag has changed; answers `wake`, whether it is to wake.
- `launched`, from `readyroom run`: `agent`, `program`, and a place. Hooks that come later know better.
- `ended`, from `readyroom run`: `agent`.
- `who`, from a command: `above`, its ancestors, nearest first; answers the `agent` that it runs in, or null.
- `status`: answers `sessions`, `record`, `nerve`, and what else `readyroom status --json` prints.

A place is `process`, `cwd`, `tty`, `tmux`, `pty_socket`, `watches`: `process` is `{"pid", "started"}`,
`tmux` is `{"socket", "server_pid", "pane"}`; absent and null mean unknown.
"""

from __future__ import annotations

import json
import os
import socket

from notifier.paths import check_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Self

CONNECT_SECONDS = 0.2
ANSWER_SECONDS = 1.7


class Control:
    """One connection to this user's notifier; use it in a `with`."""

    def __init__(
        self,
        socket_path: str,
        *,
        connect_within: float = CONNECT_SECONDS,
        answer_within: float = ANSWER_SECONDS,
    ) -> None:
        """Connect.

        Raises:
            PermissionError: others can enter the socket's folder, and could answer in the notifier's place.
            OSError: nobody listens there, or not in time.
        """
        check_private(os.path.dirname(socket_path))
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(connect_within)
            self._socket.connect(socket_path)
            self._socket.settimeout(answer_within)
        except OSError:
            self._socket.close()
            raise
        self._lines = self._socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lines.close()
        self._socket.close()

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send one line, return the answer's.

        Raises:
            OSError: no answer in time, or the notifier hung up.
        """
        self._socket.sendall(in_bytes(request) + b"\n")
        line = self._lines.readline()
        if not line:
            raise ConnectionResetError("the notifier hung up")
        answer: dict[str, Any] = json.loads(line)
        return answer


def in_bytes(request: dict[str, Any]) -> bytes:
    """A request as it is written; what is no text, such as an odd folder's name, has `?` in its place."""
    return json.dumps(request, ensure_ascii=False).encode("utf-8", "replace")
