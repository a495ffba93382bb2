"""What the bytes from a human's terminal tell about the draft in a program's composer.

The composer itself can't be seen from here. Plain typing at the end of one line is followed exactly; whatever
else may leave text behind makes the draft `unknown`, until Enter or Ctrl-C. What the terminal says by itself
(answers to queries, focus, mouse) is no key.
"""

from __future__ import annotations

import re
import sys

from notifier.terminals.base import Draft

_REPORT = re.compile(
    rb"\x1b\[M[\x20-\xff]{3}"  # mouse, the oldest form
    rb"|\x1b\[[?>=<][0-?]*[ -/]*[@-~]"  # anything with a private marker: attributes, modes, SGR mouse, flags
    rb"|\x1b\[[IO]"  # focus
    rb"|\x1b\[\d*;\d+R|\x1b\[[\d;]+(?:[nctx]|\$y)"  # cursor, status, attributes, window
    rb"|\x1b\[\d+;\d+;\d+M"  # mouse, the urxvt form
    rb"|\x1b[P\]X^_][^\x00-\x1f]*(?:\x07|\x1b\\)"  # strings: colours, clipboard, graphics
)
_KEY_CODE = re.compile(
    rb"\x1b\[(\d{1,6})(?::\d*)*(?:;(\d{0,3})(?::(\d+))?(?:;[\d:]*)?)?u|\x1b\[27;(\d{1,3});(\d{1,6})~"
)
_SEQUENCE = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO[ -~]")
_UNFINISHED = re.compile(
    rb"\x1b(?:\[(?:M[\x20-\xff]{0,2}|[0-?]*[ -/]*)|O|[P\]X^_][^\x00-\x1f]*\x1b?)?\Z"
    rb"|[\xc2-\xdf]\Z|[\xe0-\xef][\x80-\xbf]?\Z|[\xf0-\xf4][\x80-\xbf]{0,2}\Z"
)
_TEXT = re.compile(rb"[\x20-\x7e\x80-\xff]+")
_PASTE, _PASTE_END = b"\x1b[200~", b"\x1b[201~"

_ENTER, _LINE_FEED, _CTRL_C, _CTRL_U, _ESCAPE = 13, 10, 3, 21, 27
_ERASE = frozenset({8, 127})
_KEYPAD_ENTER, _MODIFIERS = 57414, range(57441, 57455)
_SHIFT, _ALT, _CTRL, _LOCKS, _RELEASED = 1, 2, 4, 64 | 128, b"3"
_HARMLESS = frozenset({12, 26})
"""Ctrl-L and Ctrl-Z: no editor leaves text for them."""
_HARMLESS_WHEN_EMPTY = frozenset({1, 2, 4, 5, 6, 11, 23})
"""Moving and deleting (Ctrl-A B D E F K W): nothing to move in or delete in an empty line."""

SPLIT_SECONDS = 0.05
"""A terminal sends one sequence at one go; an Escape that stands alone this long is the key."""


class Keys:
    """Follows one human's typing.

    Attributes:
        last_key: when a human last pressed a key, on the clock that `feed` is given; None before the first.
    """

    def __init__(self) -> None:
        self.last_key: float | None = None
        self._text = ""
        self._known = True
        self._pending = b""
        self._pending_since = 0.0
        self._pasting = False

    @property
    def draft(self) -> Draft:
        """What stands in the composer, as far as the keys tell."""
        if not self._known or self._pending or self._pasting:
            return "unknown"
        return "draft" if self._text else "empty"

    def feed(self, data: bytes, now: float, *, canonical: bool = False) -> None:
        """Take in bytes from the human's terminal, in the order they came, however they were cut.

        `canonical`: the kernel edits the program's lines, so that a line feed or Enter ends one for sure.
        """
        if self._pending and now - self._pending_since > SPLIT_SECONDS:
            self._give_up_pending(now, canonical=canonical)
        data, self._pending = self._pending + data, b""
        while data:
            taken = self._take(data, now, canonical=canonical)
            if taken == 0:
                self._pending, self._pending_since = data, now
                return
            data = data[taken:]

    def left(self, line: str) -> None:
        """Something else than the human has put `line` into the composer."""
        self._text += line

    def submitted(self) -> None:
        """Something else than the human has submitted the composer, which is empty now."""
        self._text, self._known = "", True

    def _take(self, data: bytes, now: float, *, canonical: bool) -> int:
        """Take one token off the front and return its length; 0 when its end has not come yet."""
        if self._pasting:
            return self._take_pasted(data, now)
        if _PASTE.startswith(data[: len(_PASTE)]) and len(data) < len(_PASTE) and len(data) > 2:
            return 0
        if data.startswith(_PASTE):
            self._pasting, self.last_key = True, now
            self._known = self._known and not data.startswith(_PASTE + _PASTE_END)
            return len(_PASTE)
        if report := _REPORT.match(data):
            return report.end()
        if _UNFINISHED.match(data):
            return 0
        self.last_key = now
        if key := _KEY_CODE.match(data):
            self._key_code(key, canonical=canonical)
            return key.end()
        if sequence := _SEQUENCE.match(data):
            self._sequence(sequence.group(), canonical=canonical)
            return sequence.end()
        if text := _TEXT.match(data):
            return self._typed(text.group(), more=text.end() < len(data))
        return self._control_byte(data, canonical=canonical)

    def _typed(self, text: bytes, *, more: bool) -> int:
        """`more`: something that is no text stands behind it, so that nothing of it is still to come."""
        if not more and (cut := _UNFINISHED.search(text)):
            text = text[: cut.start()]
        self._text += text.decode("utf-8", "replace")
        return len(text)

    def _take_pasted(self, data: bytes, now: float) -> int:
        self.last_key = now
        end = data.find(_PASTE_END)
        if end == 0:
            self._pasting = False
            return len(_PASTE_END)
        if end < 0:
            # The end marker may be cut in two.
            kept = next((n for n in range(len(_PASTE_END) - 1, 0, -1) if data.endswith(_PASTE_END[:n])), 0)
            end = len(data) - kept
        self._text += data[:end].decode("utf-8", "replace")
        return end

    def _sequence(self, sequence: bytes, *, canonical: bool) -> None:
        if sequence == b"\x1bOM":
            self._control(_ENTER, canonical=canonical)
        else:
            self._known = False

    def _control_byte(self, data: bytes, *, canonical: bool) -> int:
        if data[0] != _ESCAPE:
            self._control(data[0], canonical=canonical)
            return 1
        if data[1] in (_ENTER, _LINE_FEED):
            self._text += "\n"
        else:
            self._known = False
        return 1 if data[1] == _ESCAPE else 2

    def _key_code(self, key: re.Match[bytes], *, canonical: bool) -> None:
        """One key of the kitty keyboard protocol, or of xterm's modifyOtherKeys."""
        code = int(key[1] or key[5])
        held = (int(key[2] or key[4] or 1) - 1) & ~_LOCKS
        if key[3] == _RELEASED or code in _MODIFIERS:
            return
        if code in (_ENTER, _KEYPAD_ENTER):
            self._control(_LINE_FEED if held else _ENTER, canonical=canonical and not held)
        elif held == _CTRL and 97 <= code <= 122:
            self._control(code - 96, canonical=canonical)
        elif held in (0, _SHIFT) and (code in _ERASE or code in (9, _ESCAPE)):
            self._control(code, canonical=canonical)
        elif held in (0, _SHIFT) and 32 <= code <= sys.maxunicode and not 57344 <= code <= 63743:
            self._text += chr(code)
        else:
            self._known = False

    def _control(self, code: int, *, canonical: bool) -> None:
        if code == _CTRL_C:
            self.submitted()
        elif code == _ENTER or (code == _LINE_FEED and canonical):
            self._enter(canonical=canonical)
        elif code == _LINE_FEED:
            self._text += "\n"
        elif code == _CTRL_U and self._known and "\n" not in self._text and "\r" not in self._text:
            self._text = ""
        elif code in _ERASE:
            self._text = self._text[:-1]
        elif code not in _HARMLESS and not (code in _HARMLESS_WHEN_EMPTY and self.draft == "empty"):
            self._known = False

    def _enter(self, *, canonical: bool) -> None:
        words = self._text.split(" ")
        if not canonical and self._text.endswith("\\"):
            self._text += "\n"  # a backslash before Enter continues the line in most composers
        elif not canonical and words[-1].startswith("@"):
            self._text, self._known = (
                "",
                False,
            )  # Enter may have completed a file's name, and submitted nothing
        else:
            self.submitted()

    def _give_up_pending(self, now: float, *, canonical: bool) -> None:
        """What looked like the start of a report was keys: Escape, and what was typed after it."""
        rest, self._pending, self._known = self._pending[1:], b"", False
        self.last_key = self._pending_since
        if rest:
            self.feed(rest, now, canonical=canonical)
