"""Screens of real programs, kept as files: what they are to be judged as, and what was shown.

The first line is `<verdict> | <column>,<row>`: what stands in the composer (`empty`, `draft <text>`,
`unknown` for all else: a dialog, a menu, another screen; or `closed` where that may also be read as a draft,
since the program draws both alike), and where the cursor was. The rest is the screen
with its styles, as `tmux capture-pane -e` prints it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from notifier.terminals.composer import Screen, composed

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Kept:
    """One screen.

    Attributes:
        expected: the verdict that is right.
        shown: what was on the screen, with styles.
    """

    expected: str
    column: int
    row: int
    shown: str

    @classmethod
    def read(cls, file: Path) -> Kept:
        """Read a file of the corpus."""
        head, _, shown = file.read_text(encoding="utf-8").partition("\n")
        expected, _, cursor = head.rpartition(" | ")
        column, row = map(int, cursor.split(","))
        return cls(expected, column, row, shown)

    def __str__(self) -> str:
        """The file's text."""
        return f"{self.expected} | {self.column},{self.row}\n{self.shown}"

    def judged(self, program: str) -> str:
        """What the notifier makes of it."""
        return self.seen(Screen.read(self.shown, column=self.column, row=self.row), program)

    def seen(self, screen: Screen, program: str) -> str:
        """What the notifier makes of a screen; where `closed` will do, that, unless it would type into it."""
        judged = verdict(screen, program)
        return "closed" if self.expected == "closed" and judged != "empty" else judged


def verdict(screen: Screen, program: str) -> str:
    """What the notifier makes of a screen; a draft is given in one line."""
    text = composed(screen, program)
    return "unknown" if text is None else f"draft {' '.join(text.split())}" if text else "empty"
