"""Words of others as text that steers nothing."""

from __future__ import annotations

import re

# Control characters but newline and tab; what turns the order of text round; what takes up no room, such as
# tags, in which words can be hidden (but for the joiners that scripts need); halves of surrogate pairs.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def inert(text: str) -> str:
    """The text with characters that cannot be seen, and steer terminals or readers, made visible."""
    return _HIDDEN.sub(_shown, text.replace("\r\n", "\n"))


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"<U+{code:04X}>"
