"""What comes to a terminal: tables, messages, JSON. Whatever others wrote is made inert first."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

JOINERS = frozenset("\u200c\u200d")
"""Needed by scripts and emoji, and harmless."""

HIDDEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Categories that steer a terminal or show text in another order than it has."""


_MARKER = re.compile(r"\[message from [^\]\n]+\]")


def inert(text: str) -> str:
    """The text with everything that could steer a terminal made visible; newlines and tabs stay."""
    return "".join(map(_inert_character, text.replace("\r\n", "\n")))


def _inert_character(character: str) -> str:
    if character in "\n\t" or character in JOINERS or unicodedata.category(character) not in HIDDEN:
        return character
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"<U+{code:04X}>"


def message_lines(message: Mapping[str, Any]) -> list[str]:
    """A message for a terminal: where it stands, the record's marker, then the body, each line after `> `.

    So a line that does not begin with `> ` is never the sender's.
    """
    body = message.get("body") or (message.get("payload") or {}).get("summary") or ""
    lines = [_standing(message), _marker(message)]
    lines += [f"> {line}" for line in inert(body).split("\n")]
    if message.get("truncated"):
        lines.append(f"(cut here; readyroom history {message['room']} shows the whole of #{message['id']})")
    return lines


def _standing(message: Mapping[str, Any]) -> str:
    parts = [f"{message['room']} #{message['id']}", moment(message["created_at"])]
    if message.get("type", "note") != "note":
        parts.append(str(message["type"]))
    if message.get("redelivered"):
        parts.append("handed out before")
    return _one_line(" · ".join(parts))


def moment(timestamp: str | None) -> str:
    """The record's timestamp (ISO 8601, UTC) to the second; empty for none."""
    return "" if timestamp is None else re.sub(r"\.\d+", "", timestamp)


def _marker(message: Mapping[str, Any]) -> str:
    """The front of `text`, which only the record writes; no handle holds a bracket."""
    found = _MARKER.match(str(message.get("text") or ""))
    return _one_line(found[0] if found else f"[message from {message['sender']}]")


def _one_line(text: str) -> str:
    return inert(text).replace("\n", "␊")


class Screen:
    """Standard output: JSON when asked for, rich text on a terminal, plain text elsewhere."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        terminal = sys.stdout.isatty()
        self._console = Console(
            markup=False, highlight=False, emoji=False, soft_wrap=True, width=None if terminal else 10_000
        )

    def json(self, answer: object) -> None:
        """One JSON document on one line, ASCII only: inert by construction."""
        sys.stdout.write(json.dumps(answer) + "\n")

    def line(self, text: str, style: str = "") -> None:
        """One line of ours; what it quotes is made inert."""
        self._console.print(Text(_one_line(text), style=style))

    def message(self, message: Mapping[str, Any]) -> None:
        """One message, as `message_lines` has it."""
        standing, marker, *body = message_lines(message)
        self._console.print(Text(standing, style="dim"))
        self._console.print(Text(marker, style="bold cyan"))
        for line in body:
            self._console.print(Text(line))

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
        """Rows under their headings; `empty` is said when there are none."""
        table = Table(*columns, box=None, pad_edge=False, header_style="bold")
        for row in rows:
            table.add_row(*(Text(_one_line("" if cell is None else str(cell))) for cell in row))
        if table.row_count:
            self._console.print(table)
        else:
            self.line(empty)

    def flush(self) -> None:
        """Return when what was shown has left this process.

        Raises:
            OSError: nobody reads it.
        """
        sys.stdout.flush()
