"""Ways to wake a session, one a rung of the ladder; each wakes only when every gate of its own is open."""

from notifier.settings import Ways
from notifier.wakers.base import Wake, Waker
from notifier.wakers.codex_queue import CodexQueue
from notifier.wakers.flags import Flags
from notifier.wakers.keystrokes import Pty, Tmux
from notifier.wakers.native import Native
from notifier.wakers.person import Person

__all__ = ["Flags", "Person", "Wake", "Waker", "ladder"]


def ladder(folder: str, flags: Flags, person: Person, *, only: Ways | None = None) -> tuple[Waker, ...]:
    """All rungs, best first: the first that fits a session is tried first; the last one tells a person.

    `only`: no others than these, and the last.
    """
    native, keystrokes = (Native(folder, flags), CodexQueue()), (Pty(), Tmux())
    match only:
        case "keystrokes":
            return (*keystrokes, person)
        case "native":
            return (*native, person)
        case "bell":
            return (person,)
        case None:
            return (*native, *keystrokes, person)
