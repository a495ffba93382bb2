"""The cells of a terminal's screen, and what control sequences do to them."""

from __future__ import annotations

import unicodedata

from notifier.terminals.composer import Cell, Row, Screen

BLANK = Cell(" ", dim=False, inverse=False)
_BEHIND_WIDE = Cell("", dim=False, inverse=False)
_TAB = 8


class Grid:
    """One screen. Coordinates are from 0; every move stays inside.

    Attributes:
        dim: whether what is printed next is dim.
        inverse: whether it is inverse.
    """

    def __init__(self, rows: int, columns: int) -> None:
        self.height, self.width = max(1, rows), max(1, columns)
        self.rows: list[Row] = [[] for _ in range(self.height)]
        self.x = self.y = 0
        self.dim = self.inverse = False
        self.top, self.bottom = 0, self.height - 1
        self._wraps = False
        self._saved = (0, 0)
        self._cells: dict[tuple[str, bool, bool], Cell] = {}

    def screen(self) -> Screen:
        """What is shown now."""
        return Screen([list(row) for row in self.rows], self.x, self.y)

    def resize(self, rows: int, columns: int) -> None:
        """Change the size. Lines are not wrapped anew: programs draw again after a resize."""
        rows, columns = max(1, rows), max(1, columns)
        gone = max(0, self.y - rows + 1)
        self.rows = [row[:columns] for row in self.rows[gone : gone + rows]]
        self.rows += [[] for _ in range(rows - len(self.rows))]
        self.height, self.width = rows, columns
        self.top, self.bottom = 0, rows - 1
        self.move(self.x, self.y - gone)

    def move(self, x: int, y: int) -> None:
        """Put the cursor somewhere."""
        self.x, self.y = min(max(0, x), self.width - 1), min(max(0, y), self.height - 1)
        self._wraps = False

    def save(self) -> None:
        """Remember where the cursor is."""
        self._saved = (self.x, self.y)

    def restore(self) -> None:
        """Put the cursor where it was remembered."""
        self.move(*self._saved)

    def print(self, text: str) -> None:
        """Print a run of characters, wrapping at the right edge."""
        if text.isascii():
            while text:
                self._wrap_if_due()
                part, text = text[: self.width - self.x], text[self.width - self.x :]
                self._put([self._cell(char) for char in part])
            return
        for char in text:
            wide = unicodedata.east_asian_width(char) in "WF"
            if unicodedata.combining(char) or char in "\u200b\u200d\ufe0e\ufe0f":
                continue
            if wide and self.x == self.width - 1:
                self._wraps = True
            self._wrap_if_due()
            self._put([self._cell(char), _BEHIND_WIDE] if wide else [self._cell(char)])

    def tab(self) -> None:
        """Go to the next tab stop."""
        self.move((self.x // _TAB + 1) * _TAB, self.y)

    def line_feed(self) -> None:
        """Go down a line, scrolling at the bottom."""
        if self.y == self.bottom:
            self.scroll_up(1)
        else:
            self.move(self.x, self.y + 1)
        self._wraps = False

    def reverse_line_feed(self) -> None:
        """Go up a line, scrolling at the top."""
        if self.y == self.top:
            self.scroll_down(1)
        else:
            self.move(self.x, self.y - 1)

    def scroll_up(self, count: int, *, top: int | None = None) -> None:
        """Lose lines at the top of the scrolling region (or at `top`), and gain empty ones at its bottom."""
        top = self.top if top is None else top
        for _ in range(min(count, self.bottom - top + 1)):
            del self.rows[top]
            self.rows.insert(self.bottom, [])

    def scroll_down(self, count: int, *, top: int | None = None) -> None:
        """Lose lines at the bottom of the scrolling region, and gain empty ones at its top (or at `top`)."""
        top = self.top if top is None else top
        for _ in range(min(count, self.bottom - top + 1)):
            del self.rows[self.bottom]
            self.rows.insert(top, [])

    def insert_lines(self, count: int) -> None:
        """Push the lines from the cursor on down."""
        if self.top <= self.y <= self.bottom:
            self.scroll_down(count, top=self.y)

    def delete_lines(self, count: int) -> None:
        """Pull the lines below the cursor up."""
        if self.top <= self.y <= self.bottom:
            self.scroll_up(count, top=self.y)

    def erase_in_line(self, how: int) -> None:
        """Erase to the line's end (0), from its beginning (1), or all of it (2)."""
        begin = 0 if how else self.x
        end = self.x + 1 if how == 1 else self.width
        self._blank(self.y, begin, end)

    def erase_in_screen(self, how: int) -> None:
        """Erase to the screen's end (0), from its beginning (1), or all of it (2)."""
        if how in (0, 1):
            self.erase_in_line(how)
        above, below = range(self.y), range(self.y + 1, self.height)
        for y in {0: [*below], 1: [*above], 2: [*range(self.height)]}.get(how, []):
            self.rows[y] = []

    def erase_characters(self, count: int) -> None:
        """Erase from the cursor on, moving nothing."""
        self._blank(self.y, self.x, min(self.width, self.x + count))

    def insert_characters(self, count: int) -> None:
        """Push the rest of the line to the right."""
        row = self._padded(self.y, self.x)
        row[self.x : self.x] = [BLANK] * min(count, self.width)
        del row[self.width :]

    def delete_characters(self, count: int) -> None:
        """Pull the rest of the line to the left."""
        del self.rows[self.y][self.x : self.x + count]

    def margins(self, top: int, bottom: int) -> None:
        """Set the scrolling region, and go home."""
        if 0 <= top < bottom < self.height:
            self.top, self.bottom = top, bottom
            self.move(0, 0)

    def _cell(self, char: str) -> Cell:
        key = (char, self.dim, self.inverse)
        cell = self._cells.get(key)
        if cell is None:
            cell = self._cells[key] = Cell(char, self.dim, self.inverse)
        return cell

    def _wrap_if_due(self) -> None:
        if self._wraps:
            self.x = 0
            self.line_feed()

    def _put(self, cells: list[Cell]) -> None:
        row = self._padded(self.y, self.x)
        row[self.x : self.x + len(cells)] = cells
        end = self.x + len(cells)
        self._wraps = end >= self.width
        self.x = min(end, self.width - 1)

    def _padded(self, y: int, length: int) -> Row:
        row = self.rows[y]
        if len(row) < length:
            row += [BLANK] * (length - len(row))
        return row

    def _blank(self, y: int, begin: int, end: int) -> None:
        row = self.rows[y]
        if end >= len(row):
            del row[begin:]
        else:
            row[begin:end] = [BLANK] * (end - begin)
