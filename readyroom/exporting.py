"""A room as a document: who said what, and when, with every body quoted."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, TextIO

from notifier.record import Record
from readyroom.screen import message_lines

PAGE = 500
_STEERS_MARKDOWN = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>#|~!&"})


async def exported(record: Record, room: str, out: TextIO, *, jsonl: bool) -> None:
    """Write the room's messages, oldest first, as Markdown or as JSON Lines; a refusal writes nothing."""
    title = "" if jsonl else f"# {_plain(room)}\n"
    async for message in _messages(record, room):
        out.write(title + (json.dumps(message) + "\n" if jsonl else _markdown(message)))
        title = ""
    out.write(title)
    out.flush()


async def _messages(record: Record, room: str) -> AsyncIterator[Mapping[str, Any]]:
    """All that is there, a page at a time; what is said meanwhile comes, too."""
    after = 0
    while page := await record.history(room, after=after, limit=PAGE):
        for message in page:
            yield message
        after = page[-1]["id"]


def _markdown(message: Mapping[str, Any]) -> str:
    """A heading and a marker of ours, then the body as an indented block, in which Markdown means nothing.

    A line that stands at the margin is never the sender's.
    """
    standing, marker, *body = message_lines(message)
    block = "\n".join(f"    {line}" for line in body)
    return f"\n## {_plain(standing)}\n\n{_plain(marker)}\n\n{block}\n"


def _plain(text: str) -> str:
    return text.translate(_STEERS_MARKDOWN)
