"""Opaque cursors: where the next page of a list begins."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from api.errors import BadField

Row = TypeVar("Row")

MESSAGE_DIGITS = 18
"""Of a cursor that ends with a message's id."""

SEARCH_DIGITS = 4
"""Of a cursor that ends with how many were found so far."""


def opened(cursor: str) -> str:
    """What the page before ended with; the empty string for the first page.

    Raises:
        BadField: no page ended with it.
    """
    try:
        text = base64.b64decode(cursor.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        text = "\0"
    if not text.isprintable():
        raise _bad_cursor()
    return text


def number(cursor: str, digits: int) -> int:
    """The number of up to so many digits that the page before ended with.

    Raises:
        BadField: no page ended with it.
    """
    if re.fullmatch(f"[0-9]{{1,{digits}}}", cursor) is None:
        raise _bad_cursor()
    return int(cursor)


def next_cursor(rows: Sequence[Row], limit: int, key: Callable[[Row], str]) -> str | None:
    """The cursor of the page after these rows; None when they are fewer than were asked for."""
    if len(rows) < limit:
        return None
    return base64.urlsafe_b64encode(key(rows[-1]).encode()).decode()


def _bad_cursor() -> BadField:
    return BadField("cursor", "use next_cursor as it was given")
