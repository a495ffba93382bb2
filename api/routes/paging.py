"""Pages of lists over REST: how long they are, and where they begin."""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec
from fastapi import Depends, Query
from pydantic import AfterValidator

from api.auth import RecordDep
from api.errors import BadField
from api.services import cursors
from api.services.closing import Undelivered
from api.services.envelope import Found, Message

HIGHEST = 2**63 - 1
_NUMBER = re.compile("[0-9]{0,18}")


class Page(msgspec.Struct):
    """A page of messages; `next_cursor` is null where nothing follows."""

    messages: list[Message]
    next_cursor: str | None


class FoundPage(msgspec.Struct):
    """A page of what a search found, best first."""

    messages: list[Found]
    next_cursor: str | None


class UndeliveredPage(msgspec.Struct):
    """A page of what nobody took, oldest first."""

    messages: list[Undelivered]
    next_cursor: str | None


Cursor = Annotated[
    str,
    Query(max_length=400, description="`next_cursor` of the page before."),
    AfterValidator(cursors.opened),
]
"""What the page before ended with; the empty string for the first page."""


def _digits(most: int) -> Any:
    """Queries for a cursor of up to so many digits, refused in words that do not quote a pattern."""
    number = f"[0-9]{{1,{most}}}"

    def checked(cursor: str) -> str:
        cursors.number(cursor, most)
        return cursor

    about = "`next_cursor` of the page before."
    return Annotated[
        str, Query(description=about, json_schema_extra={"pattern": f"^{number}$"}), AfterValidator(checked)
    ]


MessageCursor = _digits(cursors.MESSAGE_DIGITS)
"""The same of pages of messages, which end with a message's id."""

SearchCursor = _digits(cursors.SEARCH_DIGITS)
"""The same of a search, whose pages end with how many were found so far."""


def opened_number(cursor: str) -> int:
    """The number that the page before ended with, where the newest come first; before the first, the highest.

    Raises:
        BadField: no page ended with it.
    """
    if not _NUMBER.fullmatch(cursor):
        raise BadField("cursor", "use next_cursor as it was given")
    return int(cursor or HIGHEST)


def _page(
    record: RecordDep, limit: Annotated[int, Query(ge=1, le=1000, description="How many at most.")] = 100
) -> int:
    return min(limit, record.settings.page_max)


def _short_page(
    record: RecordDep, limit: Annotated[int, Query(ge=1, le=200, description="How many at most.")] = 20
) -> int:
    return min(limit, record.settings.page_max)


Limit = Annotated[int, Depends(_page)]
"""How many rows a page has at most: what the caller wants, within what the operator allows."""

ShortLimit = Annotated[int, Depends(_short_page)]
"""The same where each row is dear."""
