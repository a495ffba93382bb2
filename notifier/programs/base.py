"""The seam between an agent program and everything that must not know which one it is."""

from __future__ import annotations

HANDED = "Unread in Readyroom for "
"""How a text begins that is handed to the model."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Literal, Protocol

    from notifier.programs.processes import Seen
    from notifier.sessions import Event, State

    Mode = Literal["engage", "notify", "off"]

    class Program(Protocol):
        """One agent program. Used by hooks, so its module imports only what starts fast."""

        name: str
        catchup: str
        """The line that makes an idle session read."""
        reads_stdin: bool
        """Whether its hooks are given JSON on stdin."""
        default_mode: Mode
        """What the end of a turn does with unread messages where nobody has set it."""
        wake: str
        """What the model reads when the session's flag wakes it; always these same words."""

        def understand(self, event: str, given: Mapping[str, Any]) -> Told | None:
            """What a hook call means; None where it says nothing about the session itself."""

        def owner(self, environ: Mapping[str, str], ancestors: Sequence[Seen]) -> tuple[Seen, bool] | None:
            """The program's process among a hook's ancestors, nearest first, and whether that is sure."""

        def registry(self, environ: Mapping[str, str], pid: int) -> str | None:
            """Path of the file in which the program itself says what it does, if it keeps one."""

        def watches(self, environ: Mapping[str, str]) -> bool:
            """Whether this version calls a hook when a file changes that it was told to watch."""

        def sign(self, registry: str, *, started: int) -> State | None:
            """What that file says of the process that began at `started`; None when it says nothing sure."""

        def context(self, event: Event | None, text: str | None, *, watch: str | None = None) -> str:
            """What a hook prints to hand `text` to the model.

            At `tool` it is called at a boundary only; at `ending` this keeps the turn going.
            `watch`: a file that the program is to watch from now on.
            """

        def notice(self, text: str) -> str:
            """What a hook prints to show `text` to the human alone."""


class Told:
    """What a hook call means.

    Attributes:
        event: in our words; None where it says nothing of the session's state.
        session_id: the program's own id of the session.
        cwd: its working folder.
        mode: what to do with unread messages where the event itself decides it.
        resting: a `session-start` after which the session waits for input.
        read: the model has just been handed what a poll returned.
        boundary: a `tool` at which the program hands a text on with its tools' results, before the model's
            next word.
        lone: that boundary is one tool's, and those of other tools may follow before the model's next word.
        watch: the program may be told now which file to watch.
        changed: the file of which the program saw that it changed.
        registry: the file in which the program says what it does, where the event itself names it.
    """

    __slots__ = (
        "boundary",
        "changed",
        "cwd",
        "event",
        "lone",
        "mode",
        "read",
        "registry",
        "resting",
        "session_id",
        "watch",
    )

    def __init__(
        self,
        event: Event | None,
        *,
        session_id: str | None = None,
        cwd: str | None = None,
        mode: Mode | None = None,
        resting: bool = True,
        read: bool = False,
        boundary: bool = False,
        lone: bool = False,
        watch: bool = False,
        changed: str | None = None,
        registry: str | None = None,
    ) -> None:
        self.event = event
        self.session_id = session_id
        self.cwd = cwd
        self.mode = mode
        self.resting = resting
        self.read = read
        self.boundary = boundary
        self.lone = lone
        self.watch = watch
        self.changed = changed
        self.registry = registry
