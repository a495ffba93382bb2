"""Ways to wake a session, one a rung of the ladder; each types only when every gate of its own is open."""

from notifier.wakers.base import Wake, Waker
from notifier.wakers.keystrokes import Pty, Tmux

__all__ = ["Wake", "Waker", "ladder"]


def ladder() -> tuple[Waker, ...]:
    """All rungs, best first: the first that fits a session is tried first."""
    return (Pty(), Tmux())
