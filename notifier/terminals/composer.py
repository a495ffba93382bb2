# ruff: noqa: RUF001, RUF002 - the prompts of real programs look like other characters

"""Reads off a screen what stands in a program's composer. Where its form is not known, it says so.

- `claude-code`: what stands between the last two horizontal rules, after `❯` or `>`.
- `codex`: the last line that begins with `›`, with the cursor on it or below it.
- `gemini`: the last line that begins with `>` or `*`, if it or one that it was wrapped into holds both the
  cursor and the block that is drawn for it. Its placeholder is not dim, but known by its words. In a window
  that is not in front it draws no block: then the rule above it and the footer below it tell it from a prompt
  that was sent before, if no shell has the keys.
- `opencode`: no form is known, so nothing is ever read.
- Every other program: the cursor's own line must be a prompt and what was typed after it. A prompt is one
  word of at most 64 characters that ends with one of `> ❯ › » : $ # %`, and one blank if there is one.

Dim text (a placeholder, a suggestion) is no draft, and neither is the block that some programs draw as
cursor.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_CONTROL = re.compile(
    r"\x1b\[([0-9;:]*)m|\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x1f]|\x1b."
)
_RULE = re.compile(r"\s*[─━]{8,}.*")
_PROMPT = re.compile(r"\S{0,63}[>❯›»:$#%](?: |$)")
_CLAUDE_PROMPT = re.compile(r"\s*[❯>][ \xa0]?")
_CODEX_PROMPT = re.compile(r"\s*› ?")
_GEMINI_PROMPT = re.compile(r" [>*] ")
_GEMINI_WIDTH = 3
_GEMINI_EDGE = re.compile(r"\s*[▀─]*")
_GEMINI_PLACEHOLDERS = ("  Type your message or @path/to/file", "  Press 'Esc' for NORMAL mode.")
_GEMINI_COMMANDS = "  Press 'i' for INSERT mode."
"""Its placeholder where letters are commands, as in vi."""
_GEMINI_SHELL = re.compile(r"unfocus|\(Focused")
_GEMINI_FOOT_ROWS = 3
_WRAPPED_ROWS = 8

KNOWN_FORMS = frozenset({"claude-code", "codex", "gemini"})
"""Programs whose composer is told from everything else on the screen."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One character on the screen."""

    text: str
    dim: bool
    inverse: bool


Row = list[Cell]


@dataclass(frozen=True, slots=True)
class Screen:
    """What a pane shows.

    Attributes:
        rows: its lines, from the top, each without trailing blanks.
        column: the cursor's column, from 0.
        row: the cursor's row, from 0.
    """

    rows: list[Row]
    column: int
    row: int

    @classmethod
    def read(cls, text: str, *, column: int, row: int) -> Screen:
        """Read lines with their styles, as `tmux capture-pane -e` prints them."""
        return cls(_rows(text), column, row)


def composed(screen: Screen, program: str) -> str | None:
    """What stands in the composer; empty when nothing does, None when it cannot be told."""
    match program:
        case "claude-code":
            return _claude(screen)
        case "codex":
            return _codex(screen)
        case "gemini":
            return _gemini(screen)
        case "opencode":
            return None
        case _:
            return _prompted(screen)


def same_text(shown: str | None, line: str) -> bool:
    """Whether the composer shows exactly `line`, wherever it was wrapped."""
    return shown is not None and "".join(shown.split()) == "".join(line.split())


def _claude(screen: Screen) -> str | None:
    rules = [number for number, row in enumerate(screen.rows) if _RULE.fullmatch(_text(row))]
    if len(rules) < 2:
        return None
    rows = screen.rows[rules[-2] + 1 : rules[-1]]
    return _after_prompt(rows, _CLAUDE_PROMPT)


def _codex(screen: Screen) -> str | None:
    starts = [number for number, row in enumerate(screen.rows) if _CODEX_PROMPT.match(_text(row))]
    if not starts or screen.row < starts[-1]:
        return None
    return _after_prompt(screen.rows[starts[-1] : screen.row + 1], _CODEX_PROMPT)


def _gemini(screen: Screen) -> str | None:
    texts = [_text(row) for row in screen.rows]
    starts = [number for number, text in enumerate(texts) if _GEMINI_PROMPT.match(text)]
    if not starts:
        return None
    first = starts[-1]
    end = next((n for n in range(first, len(texts)) if _GEMINI_EDGE.fullmatch(texts[n])), first)
    shown = "\n".join([texts[first][_GEMINI_WIDTH:], *texts[first + 1 : end]])
    placeholder = shown.startswith("  ") and any(same_text(shown, each) for each in _GEMINI_PLACEHOLDERS)
    if same_text(shown, _GEMINI_COMMANDS):
        return None
    blocks = [(n, at) for n, row in enumerate(screen.rows) for at, cell in enumerate(row) if cell.inverse]
    if not first <= screen.row < end:
        if blocks or not _is_gemini_composer(texts, first, end):
            return None
        return "" if placeholder else shown.strip() or None
    if len([n for n, _ in blocks if first <= n < end]) != 1:
        return None
    if placeholder and (first, _GEMINI_WIDTH) in blocks:
        return ""
    return shown.strip() or None  # blanks were typed


def _is_gemini_composer(texts: list[str], first: int, end: int) -> bool:
    """Whether these rows have a rule and one line above them, and a footer below: no dialog, no shell."""
    above, below = texts[max(0, first - 4) : first - 1], [text for text in texts[end + 1 :] if text.strip()]
    return (
        end > first
        and any(map(_RULE.fullmatch, above))
        and not _RULE.fullmatch(texts[first - 1])
        and len(below) <= _GEMINI_FOOT_ROWS
        and not any("│" in text for text in below)
        and not any(map(_GEMINI_SHELL.search, texts))
    )


def _prompted(screen: Screen) -> str | None:
    """The cursor stands behind what was typed; a long line was wrapped, so its prompt may be rows above."""
    for first in range(screen.row, max(-1, screen.row - _WRAPPED_ROWS), -1):
        rows = screen.rows[first : screen.row + 1]
        if rows and _PROMPT.match(_text(rows[0])):
            return _typed_at_prompt(rows, screen.column)
        if first < screen.row and not rows:
            break
    return None


def _typed_at_prompt(rows: list[Row], column: int) -> str | None:
    prompt = _PROMPT.match(_text(rows[0]))
    if prompt is None:
        return None
    typed = _after_prompt(rows, _PROMPT)
    if (
        typed == ""
        and len(rows) == 1
        and column not in (_width(prompt[0].rstrip()), _width(prompt[0].rstrip()) + 1)
    ):
        return None  # blanks were typed, or the cursor is somewhere else altogether
    return typed


def _after_prompt(rows: list[Row], form: re.Pattern[str]) -> str | None:
    prompt = form.match(_text(rows[0])) if rows else None
    if prompt is None:
        return None
    kept = [rows[0][len(prompt[0]) :], *rows[1:]]
    return "\n".join(_written(row) for row in kept).strip()


def _written(row: Row) -> str:
    """A row's text without what is dim, and without a cursor block in front of it."""
    return "".join(
        " " if cell.dim or (cell.inverse and _followed_by_dim(row, number)) else cell.text
        for number, cell in enumerate(row)
    )


def _followed_by_dim(row: Row, number: int) -> bool:
    return number + 1 < len(row) and row[number + 1].dim


def _text(row: Row) -> str:
    return "".join(cell.text for cell in row)


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def _rows(text: str) -> list[Row]:
    rows: list[Row] = []
    dim = inverse = False
    for line in text.split("\n"):
        row: Row = []
        at = 0
        for control in _CONTROL.finditer(line):
            row += [Cell(char, dim, inverse) for char in line[at : control.start()]]
            at = control.end()
            if control[1] is not None:
                dim, inverse = style(control[1], dim=dim, inverse=inverse)
        row += [Cell(char, dim, inverse) for char in line[at:]]
        rows.append(row)
    return rows


def style(parameters: str, *, dim: bool, inverse: bool) -> tuple[bool, bool]:
    """Dim and inverse after an SGR sequence with these parameters."""
    numbers = iter(parameters.split(";"))
    for number in numbers:
        match number:
            case "" | "0":
                dim = inverse = False
            case "2":
                dim = True
            case "22":
                dim = False
            case "7":
                inverse = True
            case "27":
                inverse = False
            case "38" | "48" | "58":
                for _ in range(1 if next(numbers, "") == "5" else 3):
                    next(numbers, "")
            case _:
                pass
    return dim, inverse
