"""The pseudo-terminal that `readyroom run` gives a program: it knows every key and every byte of output."""

from __future__ import annotations

import time
from collections.abc import Callable

from notifier.sessions import Process
from notifier.terminals.base import KEY_SECONDS, QUIET_SECONDS, Draft, Hold, Look
from notifier.terminals.composer import KNOWN_FORMS, composed, same_text
from notifier.terminals.emulator import Emulator
from notifier.terminals.keys import Keys
from notifier.terminals.output import Output
from notifier.terminals.process import hold_of

_ROWS, _COLUMNS = 24, 80
_PASTE, _PASTE_END = "\x1b[200~", "\x1b[201~"


class OwnPty:
    """One program on a pseudo-terminal of ours, as a `Terminal`.

    No call lets the event loop run, so nothing can come between a look and what follows it at once.

    Attributes:
        tty: path of its terminal.
        keys: what the human has typed.
        output: what the program has printed.
    """

    def __init__(
        self,
        tty: str,
        *,
        process: Callable[[], Process | None],
        program: str = "plain",
        send: Callable[[bytes], None],
        unread_keys: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`send` types bytes at the program; `unread_keys` tells of keys that are yet to be read.

        `process` tells which process must be in front; None before it has started and after it has ended.
        """
        self.tty = tty
        self.keys = Keys()
        self.output = Output()
        self._process = process
        self._program = program
        self._emulator = Emulator(_ROWS, _COLUMNS)
        self._send = send
        self._unread_keys = unread_keys
        self._clock = clock
        self._keyed = False
        self._home_is_alternate = False

    def rests(self) -> bool:
        """Whether something may be shown to the human between two things that the program prints."""
        last = self.output.last
        quiet = last is None or self._clock() - last >= QUIET_SECONDS
        return quiet and self._emulator.rests()

    def typed(self, data: bytes, *, canonical: bool) -> None:
        """The human's terminal sent `data`, which goes to the program."""
        self.keys.feed(data, self._clock(), canonical=canonical)
        self._keyed = self._keyed or self.keys.last_key is not None

    def printed(self, data: bytes) -> None:
        """The program printed `data`."""
        self.output.feed(data, self._clock())
        self._emulator.feed(data)
        if not self._keyed and self.output.alternate:
            # Full-screen before anybody pressed a key: its own screen, not an editor or a pager on top of it.
            self._home_is_alternate = True

    def resized(self, rows: int, columns: int) -> None:
        """The window has this size now."""
        self._emulator.resize(rows, columns)

    async def look(self) -> Look:
        """See what can be known now."""
        now = self._clock()
        last_key = now if self._unread_keys() else self.keys.last_key
        key_age = None if last_key is None else now - last_key
        hold = self._hold()
        # Reading the screen takes time; it does not while a human waits for the next echo.
        idle = hold is None and (key_age is None or key_age >= KEY_SECONDS)
        return Look(
            hold=hold,
            draft=judged(self._program, keys=self.keys.draft, shown=self._composed() if idle else None),
            key_age=key_age,
            output_age=None if self.output.last is None else now - self.output.last,
            bracketed=self.output.bracketed,
            alternate=self.output.alternate,
        )

    async def paste(self, line: str) -> Hold | None:
        """Type `line` as one paste; from now on it is a draft."""
        hold = self._hold()
        if hold is None:
            text = f"{_PASTE}{line}{_PASTE_END}" if self.output.bracketed else line
            self.output.mark()
            self.keys.left(line)
            self._send(text.encode())
        return hold

    async def shows(self, line: str) -> bool:
        """Whether the composer shows `line`, or the program has printed it since the paste.

        Not while something else is in front of a composer whose form is known: a dialog, a menu.
        """
        shown = self._composed()
        if shown is None and self._program in KNOWN_FORMS:
            return False
        return same_text(shown, line) or self.output.echoed(line)

    async def enter(self, line: str) -> Hold | None:
        """Press Enter: the composer is empty then. Nothing comes between this and a look before it."""
        hold: Hold | None = "recent key" if self._unread_keys() else self._hold()
        if hold is None:
            self.output.forget()
            self.keys.submitted()
            self._send(b"\r")
        return hold

    def _composed(self) -> str | None:
        return composed(self._emulator.screen(), self._program)

    def _hold(self) -> Hold | None:
        process = self._process()
        if process is None:
            return "process gone"
        if hold := hold_of(process, tty=self.tty):
            return hold
        return "another screen" if self.output.alternate and not self._home_is_alternate else None


def judged(program: str, *, keys: Draft, shown: str | None) -> Draft:
    """What stands in the composer, by what was typed and by what the screen shows.

    Where a program's composer has a form of its own, the screen is right: keys may have answered a dialog,
    and Escape may have put an old prompt back; without it the screen is a menu, a dialog, something new. A
    prompt that could be any program's (one that asks for a password, say) only decides what the keys leave
    open. What neither knows is a draft.
    """
    if shown:
        return "draft"
    if shown == "" and (program in KNOWN_FORMS or keys == "unknown"):
        return "empty"
    if keys != "empty":
        return "draft"
    return "unknown" if shown is None and program in KNOWN_FORMS else "empty"
