"""The rules for single fields that several calls share."""

from __future__ import annotations

import datetime as dt
import re
import unicodedata

from api.errors import BadField

LINE_CHARACTERS = 120
CLIENT_ID_CHARACTERS = 64
NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?")
NAME_RULE = "1 to 64 of a-z, 0-9, '.', '_' and '-', beginning and ending with a letter or digit"
TYPE = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)*")
RESERVED = frozenset({"everyone", "system"})
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def name(field: str, value: str) -> str:
    """A box's, person's, role's or room's name.

    Raises:
        BadField: it breaks the grammar or is reserved.
    """
    if not NAME.fullmatch(value):
        raise BadField(field, f"a name is {NAME_RULE}")
    if value in RESERVED:
        raise BadField(field, f"{value} is reserved; choose another name")
    return value


def line(field: str, value: str | None, limit: int = LINE_CHARACTERS) -> str | None:
    """Free text of one line, without control or bidirectional characters; None stays None.

    Raises:
        BadField: it is too long, or has a character that could deceive a reader.
    """
    if value is None:
        return None
    if not value.strip() or len(value) > limit:
        raise BadField(field, f"one line of 1 to {limit} characters")
    if any(
        character in _BIDI or unicodedata.category(character) in ("Cc", "Zl", "Zp") for character in value
    ):
        raise BadField(field, "no control, line-break or bidirectional characters")
    return unicode_text(field, value)


def unicode_text(field: str, value: str) -> str:
    """Text that the record can keep.

    Raises:
        BadField: it has a NUL or half of a surrogate pair.
    """
    if "\0" in value:
        raise BadField(field, "the character NUL cannot be stored")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadField(field, "half of a surrogate pair is not a character") from None
    return value


def in_utc(field: str, moment: dt.datetime) -> dt.datetime:
    """The same moment in UTC.

    Raises:
        BadField: its year is beyond what can be said there.
    """
    try:
        return moment.astimezone(dt.UTC)
    except OverflowError:
        raise BadField(field, "in UTC, its year must be 1 to 9999") from None
