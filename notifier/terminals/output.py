"""What a program's output tells: the modes that it asked for, when it last printed, and whether it echoed."""

from __future__ import annotations

import re

_MODES = re.compile(rb"\x1b\[\?([\d;]{1,60})([hl])|\x1bc")
_CUT = re.compile(rb"\x1b(?:\[[?\d;]{0,60})?\Z")
_SEQUENCES = re.compile(
    rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[P\]X^_][^\x07\x1b]*(?:\x07|\x1b\\|\Z)|\x1b[ -/]*[0-~]|[\x00-\x20\x7f]"
)
_BRACKETED = 2004
_ALTERNATE = frozenset({47, 1047, 1049})
_ECHO_BYTES = 256 * 1024


class Output:
    """Watches one program's output; the bytes themselves pass by unchanged.

    Attributes:
        last: when something was last printed, on the clock that `feed` is given; None before the first byte.
        bracketed: whether pastes are to be bracketed.
        alternate: whether the alternate screen is shown.
    """

    def __init__(self) -> None:
        self.last: float | None = None
        self.bracketed = False
        self.alternate = False
        self._tail = b""
        self._since_mark: bytearray | None = None

    def feed(self, data: bytes, now: float) -> None:
        """Take in what the program printed, however it was cut."""
        self.last = now
        if self._since_mark is not None and len(self._since_mark) < _ECHO_BYTES:
            self._since_mark += data
        data = self._tail + data
        for mode in _MODES.finditer(data):
            self._set(mode)
        cut = _CUT.search(data, max(0, len(data) - 64))
        self._tail = data[cut.start() :] if cut else b""

    def mark(self) -> None:
        """Begin to listen for an echo."""
        self._since_mark = bytearray()

    def forget(self) -> None:
        """Stop listening for an echo."""
        self._since_mark = None

    def echoed(self, line: str) -> bool:
        """Whether `line` was printed since the mark, blanks and styles aside."""
        if self._since_mark is None:
            return False
        shown = _SEQUENCES.sub(b"", bytes(self._since_mark))
        return "".join(line.split()).encode() in shown

    def _set(self, mode: re.Match[bytes]) -> None:
        if mode[1] is None:
            self.bracketed = self.alternate = False
            return
        numbers = {int(number) for number in mode[1].split(b";") if number}
        on = mode[2] == b"h"
        if _BRACKETED in numbers:
            self.bracketed = on
        if numbers & _ALTERNATE:
            self.alternate = on
