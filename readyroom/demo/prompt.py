"""A prompt line as agent programs have one: it edits its own line and asks for bracketed paste."""

from __future__ import annotations

import os
import re
import sys
import termios
import time
import tty
from types import TracebackType
from typing import Self

_PASTE_MARKS = b"\x1b[200~", b"\x1b[201~"
_SEQUENCE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|[^\[O])")
_UNFINISHED = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*|O)?\Z|[\xc2-\xdf]\Z|[\xe0-\xef].?\Z|[\xf0-\xf4].{0,2}\Z", re.S
)
_BRACKETED_PASTE = "\x1b[?2004h", "\x1b[?2004l"


class Prompt:
    """Reads lines from the terminal; use it inside `with`.

    Attributes:
        first_key: when the first byte of the last line came, in seconds since 1970.
    """

    def __init__(self) -> None:
        self._fd = sys.stdin.fileno()
        self._pending = b""
        self._pasting = False
        self.first_key = 0.0

    def __enter__(self) -> Self:
        self._before = termios.tcgetattr(self._fd)
        tty.setcbreak(self._fd, termios.TCSADRAIN)
        self._show(_BRACKETED_PASTE[0])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._show(_BRACKETED_PASTE[1])
        termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    def read(self) -> str | None:
        """The next submitted line; None at the end of input."""
        self._show("> ")
        line = b""
        self.first_key = 0.0
        while True:
            if not self._pending or _UNFINISHED.fullmatch(self._pending):
                data = os.read(self._fd, 4096)
                if not data:
                    return None
                self.first_key = self.first_key or time.time()
                self._pending += data
            while self._pending and not _UNFINISHED.fullmatch(self._pending):
                key = self._take()
                if key == b"\n" and not self._pasting:
                    self._show("\n")
                    return line.decode("utf-8", "replace")
                if key == b"\x04" and not line:
                    return None
                line = self._edit(line, key)

    def _take(self) -> bytes:
        """Take one key off what came; escape sequences count as none."""
        sequence = _SEQUENCE.match(self._pending)
        size = sequence.end() if sequence else 1
        key, self._pending = self._pending[:size], self._pending[size:]
        if key in _PASTE_MARKS:
            self._pasting = key == _PASTE_MARKS[0]
        return b"" if sequence else key

    def _edit(self, line: bytes, key: bytes) -> bytes:
        if key in (b"\x7f", b"\x08"):
            if not line:
                return line
            self._show("\b \b")
            return line.decode("utf-8", "replace")[:-1].encode()
        if key < b" " and key != b"\n":
            return line
        os.write(sys.stdout.fileno(), key)
        return line + key

    def _show(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
