"""What the notifier knows of one agent session. Standard library only: hooks use it too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["starting", "idle", "busy", "waiting", "suspended", "offline", "unknown"]
"""`waiting`: a dialog is open. `unknown`: nobody may type."""

Event = Literal[
    "session-start",
    "prompt",
    "tool",
    "dialog-open",
    "dialog-close",
    "ending",
    "stop",
    "continue",
    "session-end",
]
"""What hooks say, in no program's words.

`tool`: work goes on. `ending`: the turn is about to end, and what is unread is being looked up. `stop`: it
has ended. `continue`: it was kept going.
"""


@dataclass(frozen=True, slots=True)
class Process:
    """A process that cannot be mistaken for a later one with the same number.

    Attributes:
        pid: the process id.
        started: its start time in clock ticks since boot (Linux: field 22 of /proc/<pid>/stat).
    """

    pid: int
    started: int


@dataclass(frozen=True, slots=True)
class TmuxPane:
    """One pane of one tmux server; pane numbers start again when a server restarts.

    Attributes:
        socket: path of the server's socket.
        server_pid: the server's process id.
        pane: the pane's id, such as `%7`.
    """

    socket: str
    server_pid: int
    pane: str


@dataclass(frozen=True, slots=True)
class Session:
    """One session of an agent program, as its hooks and its launcher told us.

    Attributes:
        agent: its handle.
        program: `claude-code`, `codex`, …, or the word given to `--for`.
        session_id: the program's own id of the session; changes with Claude Code's /clear.
        process: the program's process, the one that checked in.
        tty: path of the terminal that the program runs on.
        tmux: the pane that it runs in, if any.
        pty_socket: path of the control socket of its `readyroom run`, if it was started so.
        cwd: its working folder.
        wake_on: its own READYROOM_WAKE_ON, if it has one.
        watches: its program watches the session's flag (`paths.flag_file`), and calls a hook when it changes.
    """

    agent: str
    program: str
    session_id: str | None = None
    process: Process | None = None
    tty: str | None = None
    tmux: TmuxPane | None = None
    pty_socket: str | None = None
    cwd: str | None = None
    wake_on: str | None = None
    watches: bool = False
