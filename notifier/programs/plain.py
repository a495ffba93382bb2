"""A program without hooks of its own kind: scripts that call `readyroom hook EVENT --for plain`."""

from __future__ import annotations

from notifier.programs.base import Told
from notifier.programs.processes import nearest_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from notifier.programs.base import Mode, Program
    from notifier.programs.processes import Seen
    from notifier.sessions import Event, State

_EVENTS: tuple[Event, ...] = (
    "session-start",
    "prompt",
    "tool",
    "dialog-open",
    "dialog-close",
    "stop",
    "session-end",
)


class Plain:
    """Any program that says in our own words what it does, and prints what it is answered."""

    name = "plain"
    catchup = "/catchup"
    reads_stdin = False
    default_mode: Mode = "off"
    # A script that does not look at the answer would lose what it was handed, until the lease runs out.
    wake = ""

    def understand(self, event: str, given: Mapping[str, Any]) -> Told | None:
        """The event as it stands."""
        return next((Told(known, boundary=known == "tool") for known in _EVENTS if known == event), None)

    def owner(self, environ: Mapping[str, str], ancestors: Sequence[Seen]) -> tuple[Seen, bool] | None:
        """The nearest ancestor that is no shell; never sure."""
        likely = nearest_program(ancestors)
        return (likely, False) if likely else None

    def registry(self, environ: Mapping[str, str], pid: int) -> str | None:
        """None: there is no second sign but the terminal's look."""
        return None

    def watches(self, environ: Mapping[str, str]) -> bool:
        """False: a script watches nothing."""
        return False

    def sign(self, registry: str, *, started: int) -> State | None:
        """None, for want of a registry."""
        return None

    def context(self, event: Event | None, text: str | None, *, watch: str | None = None) -> str:
        """The text itself."""
        return f"{text}\n"

    def notice(self, text: str) -> str:
        """The text itself."""
        return f"{text}\n"


PROGRAM: Program = Plain()
