"""Shows what a pseudo-terminal prints, line by line, under the name of its box."""

from __future__ import annotations

import codecs
import re

from rich.console import Console
from rich.text import Text

from readyroom.screen import inert

_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\r")


class Mirror:
    """One box's part of a shared screen."""

    def __init__(self, console: Console, name: str, style: str) -> None:
        self._console = console
        self._name = Text(f"{name:>5} │ ", style=style)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._line = ""

    def feed(self, data: bytes) -> None:
        """Take in what was printed; whole lines are shown."""
        self._line += self._decoder.decode(data)
        *lines, self._line = self._line.split("\n")
        for line in lines:
            shown = inert(_SEQUENCE.sub("", line))
            if shown.strip():
                self._console.print(self._name + Text(shown), soft_wrap=True)
