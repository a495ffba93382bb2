"""Ways to wake a session, one a rung of the ladder; each wakes only when every gate of its own is open."""

from typing import Literal

from notifier.wakers.base import Wake, Waker
from notifier.wakers.flags import Flags
from notifier.wakers.keystrokes import Pty, Tmux
from notifier.wakers.native import Native

__all__ = ["Flags", "Wake", "Waker", "Ways", "ladder"]

Ways = Literal["keystrokes", "native"]


def ladder(folder: str, flags: Flags, *, only: Ways | None = None) -> tuple[Waker, ...]:
    """All rungs, best first: the first that fits a session is tried first. `only`: no others than these."""
    native, keystrokes = (Native(folder, flags),), (Pty(), Tmux())
    match only:
        case "keystrokes":
            return keystrokes
        case "native":
            return native
        case None:
            return (*native, *keystrokes)
