"""What a sender may give, and what the record makes of it: a draft to store, then the answer."""

from __future__ import annotations

import hashlib
import math
import re
from typing import Annotated, Any

import msgspec

from api.db import Refused
from api.errors import BadField, RoomNotFound
from api.models import Caller
from api.services import fields
from api.services.envelope import Message, rendered
from api.services.relations import Place
from api.services.saying import Draft, Stored

MessageId = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]


_NUMBER = re.compile(r"[^eE]+(?:[eE][+-]?0*\d{1,3})?")
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
"""Behind an even number of backslashes; behind an odd one, it is six characters of text."""

_EXPONENTS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|(\d+)(?:\.(\d+))?[eE]([+-]?\d+)')
"""Numbers with an exponent; the groups are empty where it is a string."""


class SayIn(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What a sender may give; contract section 4."""

    body: str | None = None
    payload: dict[str, Any] | None = None
    type: str = "note"
    to: str | None = None
    urgent: bool = False
    client_id: str | None = None
    thread_id: str | None = None
    in_reply_to: MessageId | None = None
    relay_of: MessageId | None = None
    hop_limit: int = 5
    ttl_seconds: float | None = None
    seen: str | None = None


class SendIn(SayIn, forbid_unknown_fields=True, kw_only=True):
    """The same for an address: `to`, or `recipient` as another word for it."""

    recipient: str | None = None


_ACCEPTED = {"type": "array", "items": {"$ref": "#/components/schemas/Accepted"}}
"""`receipts.Accepted`, of which PostgreSQL writes the JSON."""


class Receipt(msgspec.Struct):
    """Who it was for when it was said, each with its state: an accept, not a promise."""

    accepted: Annotated[msgspec.Raw, msgspec.Meta(extra_json_schema=_ACCEPTED)]


class Said(msgspec.Struct):
    """A message with its receipt."""

    message: Message
    receipt: Receipt


def refusal(refused: Refused) -> Exception:
    """What a row that the database refused means to its sender; other refusals stay what they are."""
    if refused.constraint == "conv_messages_realm_id_conv_id_fkey":
        return RoomNotFound("that you named")
    if refused.sqlstate[:2] in ("22", "23"):  # a value, a constraint
        return BadField(refused.constraint or "payload", "the database cannot keep this value")
    return refused


def check_body(body: str, limit: int) -> None:
    """See that a body can be kept, and says something.

    Raises:
        BadField: it is empty, has a NUL, or is over `limit` bytes.
    """
    fields.unicode_text("body", body)
    if not body.strip():
        raise BadField("body", "must not be empty")
    if len(body.encode()) > limit:
        raise BadField("body", f"at most {limit} bytes; put more into payload.content")


def encoded(payload: dict[str, Any]) -> bytes:
    """The payload as JSON.

    Raises:
        BadField: it has what PostgreSQL cannot keep.
    """
    try:
        content = msgspec.json.encode(payload)
    except (UnicodeEncodeError, ValueError):
        raise BadField("payload", "half of a surrogate pair is not a character") from None
    if _NUL.search(content):
        raise BadField("payload", "the character NUL cannot be stored")
    return content


def exact_number(text: str) -> msgspec.Raw:
    """A number of a payload, digit by digit as it was sent; a float would round it.

    Raises:
        ValueError: readers could not take it.
    """
    if math.isinf(float(text)) or not _NUMBER.fullmatch(text):
        raise ValueError("A number must be within a double's range, its exponent of at most three digits")
    return msgspec.Raw(text.encode())


def growth(payload: bytes) -> int:
    """By how many bytes a payload grows because PostgreSQL writes numbers without an exponent."""
    return sum(_growth(number) for number in _EXPONENTS.finditer(payload) if number[1])


def _written(payload: bytes) -> int:
    """The bytes that readers will get: PostgreSQL also puts a blank behind each comma and colon."""
    return len(msgspec.json.format(payload, indent=0)) + growth(payload)


def _growth(number: re.Match[bytes]) -> int:
    whole, fraction, exponent = len(number[1]), len(number[2] or b""), int(number[3])
    behind_point = max(fraction - exponent, 0)
    written = max(whole + exponent, 1) + (1 + behind_point if behind_point else 0)
    return written - len(number[0])


def content_hash(new: SayIn, conv_id: int) -> bytes:
    """What tells a repeat of a client_id from another message under it."""
    content = (
        conv_id,
        new.body,
        new.payload,
        new.type,
        new.to,
        new.urgent,
        new.thread_id,
        new.in_reply_to,
        new.relay_of,
        new.hop_limit,
        new.ttl_seconds,
    )
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).digest()


def is_repeat(new: SayIn, conv_id: int, first: bytes) -> bool:
    """Whether `first` is the content_hash of the same content."""
    try:
        return content_hash(new, conv_id) == first
    except ValueError:  # half of a surrogate pair, which was never stored
        return False


def drafted(
    caller: Caller, new: SayIn, payload: bytes | None, place: Place, *, conv_id: int, in_room: bool
) -> Draft:
    """The draft of a checked message."""
    size = len(new.body.encode() if new.body else b"") + (_written(payload) if payload is not None else 0)
    columns = (
        caller.realm_id,
        conv_id,
        caller.agent_id,
        caller.kind,
        caller.box_id,
        new.to,
        new.client_id,
        content_hash(new, conv_id) if new.client_id is not None else None,
        new.type,
        new.body,
        payload.decode() if payload is not None else None,
        size,
        new.urgent,
        place.thread_id,
        new.in_reply_to,
        new.relay_of,
        place.hop_limit,
        place.late,
        new.ttl_seconds,
        in_room,
    )
    return Draft(conv_id, columns)


def answered(
    caller: Caller,
    new: SayIn,
    payload: bytes | None,
    place: Place,
    *,
    room: str,
    stored: Stored,
) -> Said:
    """The answer to whoever said it."""
    message = Message(
        id=stored.id,
        room=room,
        sender=caller.handle,
        sender_kind=caller.kind,
        box=caller.box,
        to=new.to,
        type=new.type,
        body=new.body,
        payload=msgspec.Raw(payload) if payload is not None else None,
        urgent=new.urgent,
        client_id=new.client_id,
        thread_id=place.thread_id,
        in_reply_to=new.in_reply_to,
        relay_of=new.relay_of,
        hop_limit=place.hop_limit,
        late=place.late,
        created_at=stored.created_at,
        expires_at=stored.expires_at,
    )
    message.text = rendered(message, (new.payload or {}).get("summary"))
    return Said(message, Receipt(msgspec.Raw(stored.accepted.encode())))
