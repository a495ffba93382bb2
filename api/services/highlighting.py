"""Which words of a message a search has found, and the parts of it around them.

Words are those of migration 0002: runs of letters and digits, and their pieces (`getUserName`, `foo_bar`;
each character of Han, Kana and Hangul). PostgreSQL's own headline knows no pieces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

AROUND = 80
"""Characters that are shown on either side of what was found."""

LOOKED_AT = 16_000
"""Characters of a text; what is found behind them is not shown."""

PARTS = 2
LONGEST = 400
OPENING, CLOSING, LEFT_OUT = "⟦", "⟧", " … "

_RUN = re.compile(r"[^\W_]+")
_UNDIVIDED = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")

Span = tuple[int, int]


def sought_words(query: str) -> frozenset[str]:
    """The words that a query seeks, in lower case."""
    runs = [found.span() for found in _RUN.finditer(query)]
    return frozenset(query[begin:end].lower() for run in runs for begin, end in (run, *_pieces(query, *run)))


def highlighted(text: str, sought: frozenset[str]) -> str:
    """The first parts of a text that hold sought words, each between ⟦ and ⟧; without any, its beginning."""
    parts = list(_parts(text, sought))
    if not parts:
        begin, end = _window(text, 0, 0)
        return text[begin:end] + (LEFT_OUT.rstrip() if end < len(text) else "")
    shown = LEFT_OUT.join(_marked(text, *part) for part in parts)
    before = LEFT_OUT.lstrip() if parts[0][0][0] > 0 else ""
    after = LEFT_OUT.rstrip() if parts[-1][0][1] < len(text) else ""
    return before + shown + after


def _parts(text: str, sought: frozenset[str]) -> Iterator[tuple[Span, list[Span]]]:
    """Windows of the text with what was found in each; what lies close together shares one."""
    given, window = 0, (0, 0)
    marks: list[Span] = []
    for begin, end in _found(text, sought):
        left, right = _window(text, begin, end)
        if marks and begin < window[1] and end - window[0] <= LONGEST:
            marks.append((begin, end))
            window = (window[0], max(window[1], right))
            continue
        if marks:
            yield window, marks
            given += 1
        if given == PARTS:
            return
        window, marks = (max(left, window[1]), right), [(begin, end)]
    if marks:
        yield window, marks


def _window(text: str, begin: int, end: int) -> Span:
    """A little more than from `begin` to `end`, without cutting a word where a blank is near."""
    left, right = max(0, begin - AROUND), min(len(text), end + AROUND)
    if left > 0 and (blank := text.find(" ", left, begin)) >= 0:
        left = blank + 1
    if right < len(text) and (blank := text.rfind(" ", end, right)) >= 0:
        right = blank
    return left, right


def _marked(text: str, window: Span, marks: list[Span]) -> str:
    shown, at = [], window[0]
    for begin, end in marks:
        shown += [text[at:begin], OPENING, text[begin:end], CLOSING]
        at = end
    return "".join([*shown, text[at : window[1]]])


def _found(text: str, sought: frozenset[str]) -> Iterator[Span]:
    """Where sought words stand; those without anything between them are one."""
    last: Span | None = None
    for begin, end in _words(text, sought):
        if last is not None and last[1] == begin and end - last[0] <= LONGEST:
            last = (last[0], end)
            continue
        if last is not None:
            yield last
        last = (begin, end)
    if last is not None:
        yield last


def _words(text: str, sought: frozenset[str]) -> Iterator[Span]:
    for run in _RUN.finditer(text, 0, LOOKED_AT):
        if run[0].lower() in sought:
            yield run.span()
        elif not (run[0].isascii() and run[0].islower()):
            yield from (
                piece for piece in _pieces(text, *run.span()) if text[slice(*piece)].lower() in sought
            )


def _pieces(text: str, begin: int, end: int) -> Iterator[Span]:
    """The pieces of a run, in order."""
    start = begin
    for at in range(begin + 1, end):
        if _divides(text, at, end):
            yield start, at
            start = at
    yield start, end


def _divides(text: str, at: int, end: int) -> bool:
    before, here = text[at - 1], text[at]
    if _UNDIVIDED.match(before) or _UNDIVIDED.match(here):
        return True
    if not here.isupper():
        return False
    if before.islower() or before.isdigit():
        return True
    return before.isupper() and at + 1 < end and text[at + 1].islower()
