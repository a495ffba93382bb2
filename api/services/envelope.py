"""What one message looks like to whoever reads it, on every face."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from api.services.highlighting import highlighted
from api.services.inert import inert


class Message(msgspec.Struct, kw_only=True):
    """A message as the record answers it; contract section 4 says what each field means."""

    id: int
    room: str
    sender: str
    sender_kind: str
    box: str | None
    to: str | None
    type: str
    body: str | None
    payload: Annotated[msgspec.Raw, msgspec.Meta(extra_json_schema={"type": "object"})] | None
    urgent: bool
    client_id: str | None
    thread_id: str | None
    in_reply_to: int | None
    relay_of: int | None
    hop_limit: int
    late: bool
    created_at: dt.datetime
    expires_at: dt.datetime | None
    replayed: bool = False
    redelivered: bool = False
    truncated: bool = False
    text: str = ""


class Found(Message, kw_only=True):
    """A message that a search found; `highlight` has the words that were sought between ⟦ and ⟧."""

    rank: float = 0
    highlight: str = ""


def found(row: Any, sought: frozenset[str]) -> Found:
    """Build a found message from a search's row; `sought` are the words that it was sought by."""
    message = from_row(row)
    words = message.body if message.body is not None else _summary(message.payload)
    return Found(
        **msgspec.structs.asdict(message), rank=row["rank"], highlight=highlighted(words or "", sought)
    )


def from_row(
    row: Any,
    *,
    replayed: bool = False,
    redelivered: bool = False,
    read_before: bool = False,
    cut: int | None = None,
) -> Message:
    """Build a message from a reading statement's row.

    Args:
        row: has the columns of `store.messages.MESSAGE`.
        replayed: it was said before the reader could hear it.
        redelivered: it was handed to this reader before.
        read_before: another reader had it before this one came.
        cut: of a larger message at most this many bytes of body, and no payload; None: whole.
    """
    message = Message(
        id=row["id"],
        room=row["room"],
        sender=row["sender"],
        sender_kind=row["sender_kind"],
        box=row["box"],
        to=row["selector"],
        type=row["type"],
        body=row["body"],
        payload=msgspec.Raw(row["payload"].encode()) if row["payload"] is not None else None,
        urgent=row["urgent"],
        client_id=row["client_id"],
        thread_id=row["thread_id"],
        in_reply_to=row["in_reply_to"],
        relay_of=row["relay_of"],
        hop_limit=row["hop_limit"],
        late=row["late"],
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        replayed=replayed,
        redelivered=redelivered,
    )
    summary = _summary(message.payload) if message.body is None else None
    if cut is not None and row["size"] > cut:
        summary = _cut(message, summary, cut)
    message.text = rendered(message, summary, read_before=read_before)
    return message


def more(rows: Sequence[Any]) -> bool:
    """Whether there is something behind a page, which these are the rows of."""
    return bool(rows) and bool(rows[0]["more"])


def rendered(message: Message, summary: str | None = None, *, read_before: bool = False) -> str:
    """The text for a model: a marker that only the record writes, then the body or the summary, inert."""
    words = message.body if message.body is not None else summary or ""
    return f"{marker(message, read_before=read_before)} {inert(words)}"


def marker(message: Message, *, read_before: bool = False) -> str:
    """Who said it and how it reached the reader; authentic only at the very front."""
    person = ", person" if message.sender_kind == "person" else ""
    before = ", sent before you started" if message.replayed else ""
    read = ", already read by another" if read_before else ""
    reply = f", reply to #{message.in_reply_to}" if message.in_reply_to is not None else ""
    return f"[message from {message.sender}{person}{before}{read}{reply}]"


def _summary(payload: msgspec.Raw | None) -> str | None:
    summary = msgspec.json.decode(payload).get("summary") if payload is not None else None
    return summary if isinstance(summary, str) else None


def _cut(message: Message, summary: str | None, cut: int) -> str | None:
    message.truncated = True
    message.payload = None
    if message.body is not None:
        message.body = _first_bytes(message.body, cut)
    return _first_bytes(summary, cut) if summary is not None else None


def _first_bytes(text: str, count: int) -> str:
    return text.encode()[:count].decode(errors="ignore")
