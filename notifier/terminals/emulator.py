"""Follows a program's output closely enough to read its composer off the screen.

Not a terminal for humans: colours, titles, character sets and whatever else does not change what stands where
are skipped. (pyte, the library for this, knows no dim text, by which placeholders are told from drafts.)
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable

from notifier.terminals.composer import Screen, style
from notifier.terminals.grid import Grid

_TOKEN = re.compile(
    r"(?P<text>[^\x00-\x1f\x7f\x9b]+)"
    r"|\x1b\[(?P<given>[0-?]*)[ -/]*(?P<final>[@-~])"
    r"|\x1b[PX^_\]](?:[^\x07\x1b\x18\x1a]*)(?:\x07|\x1b\\|[\x18\x1a])"
    r"|\x1b[ -/]+[0-~]"
    r"|\x1b(?P<escape>[0-OQ-WYZ\\`-~])"
    r"|(?P<control>[\x00-\x1a\x1c-\x1f\x7f\x9b])"
)
_CUT_LIMIT = 4096
_DIGITS = 9
"""No count in a sequence means more than that."""
_BACKLOG = 128 * 1024
_ALTERNATE = frozenset({"47", "1047", "1049"})


class Emulator:
    """A screen that output is shown on, lazily: nothing is worked out before somebody looks."""

    def __init__(self, rows: int, columns: int) -> None:
        self._grid = Grid(rows, columns)
        self._other: Grid | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._backlog = bytearray()
        self._cut = ""
        self._last = " "

    def feed(self, data: bytes) -> None:
        """Take in output. Of very much that nobody has looked at, only the end is kept."""
        self._backlog += data
        if len(self._backlog) > 2 * _BACKLOG:
            del self._backlog[:-_BACKLOG]

    def resize(self, rows: int, columns: int) -> None:
        """The window has another size now."""
        self._catch_up()
        self._grid.resize(rows, columns)
        if self._other is not None:
            self._other.resize(rows, columns)

    def screen(self) -> Screen:
        """What is shown now."""
        self._catch_up()
        return self._grid.screen()

    def rests(self) -> bool:
        """Whether the output ends neither within a sequence nor within a character."""
        self._catch_up()
        return not self._cut and not self._decoder.getstate()[0]

    def _catch_up(self) -> None:
        text = self._cut + self._decoder.decode(bytes(self._backlog))
        self._backlog.clear()
        at = 0
        while at < len(text):
            token = _TOKEN.match(text, at)
            if token is None:
                if len(text) - at < _CUT_LIMIT:
                    break
                at += 1  # no sequence is as long as that
                continue
            at = token.end()
            self._do(token)
        self._cut = text[at:]

    def _do(self, token: re.Match[str]) -> None:
        match token.lastgroup:
            case "text":
                self._last = token["text"][-1]
                self._grid.print(token["text"])
            case "final":
                self._sequence(token["given"], token["final"])
            case "escape":
                self._escape(token["escape"])
            case "control":
                self._control(token["control"])

    def _control(self, char: str) -> None:
        grid = self._grid
        match char:
            case "\r":
                grid.move(0, grid.y)
            case "\n" | "\v" | "\f":
                grid.line_feed()
            case "\b":
                grid.move(grid.x - 1, grid.y)
            case "\t":
                grid.tab()

    def _escape(self, char: str) -> None:
        grid = self._grid
        match char:
            case "7":
                grid.save()
            case "8":
                grid.restore()
            case "D":
                grid.line_feed()
            case "E":
                grid.move(0, grid.y)
                grid.line_feed()
            case "M":
                grid.reverse_line_feed()
            case "c":
                self._grid, self._other = Grid(grid.height, grid.width), None

    def _sequence(self, given: str, final: str) -> None:
        if given[:1] in ("?", ">", "=", "<"):
            if given[0] == "?" and final in "hl" and _ALTERNATE & set(given[1:].split(";")):
                self._switch(on=final == "h")
            return
        if final == "m":
            self._grid.dim, self._grid.inverse = style(given, dim=self._grid.dim, inverse=self._grid.inverse)
            return
        numbers = [int(word[:_DIGITS]) if word.isdigit() else 0 for word in given.split(";")]
        self._act(final, numbers)

    def _switch(self, *, on: bool) -> None:
        if on and self._other is None:
            self._other, self._grid = self._grid, Grid(self._grid.height, self._grid.width)
        elif not on and self._other is not None:
            self._grid, self._other = self._other, None

    def _act(self, final: str, numbers: list[int]) -> None:
        grid, first = self._grid, numbers[0]
        count = max(1, first)
        second = numbers[1] if len(numbers) > 1 else 0
        acts: dict[str, Callable[[], None]] = {
            "A": lambda: grid.move(grid.x, grid.y - count),
            "B": lambda: grid.move(grid.x, grid.y + count),
            "C": lambda: grid.move(grid.x + count, grid.y),
            "D": lambda: grid.move(grid.x - count, grid.y),
            "E": lambda: grid.move(0, grid.y + count),
            "F": lambda: grid.move(0, grid.y - count),
            "G": lambda: grid.move(count - 1, grid.y),
            "`": lambda: grid.move(count - 1, grid.y),
            "d": lambda: grid.move(grid.x, count - 1),
            "H": lambda: grid.move(max(1, second) - 1, count - 1),
            "f": lambda: grid.move(max(1, second) - 1, count - 1),
            "J": lambda: grid.erase_in_screen(first),
            "K": lambda: grid.erase_in_line(first),
            "X": lambda: grid.erase_characters(count),
            "P": lambda: grid.delete_characters(count),
            "@": lambda: grid.insert_characters(count),
            "L": lambda: grid.insert_lines(count),
            "M": lambda: grid.delete_lines(count),
            "S": lambda: grid.scroll_up(count),
            "T": lambda: grid.scroll_down(count),
            "b": lambda: grid.print(self._last * min(count, grid.width)),
            "r": lambda: grid.margins(count - 1, (second or grid.height) - 1),
            "s": grid.save,
            "u": grid.restore,
        }
        if final in acts:
            acts[final]()
