"""What each tool takes: names, types and bounds, for reading arguments and for the input schemas."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from api.services.drafts import MessageId
from api.services.rooms import DEFAULT_BACKFILL

MAX_BYTES = 32 * 1024
"""Of what is said, in one answer: what a model can take at a time."""

WAIT_SECONDS = 25
"""Programs give a tool up after 60 seconds."""


class Arguments(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """None, and no others."""


class InRoom(Arguments, kw_only=True):
    """A room."""

    room: str


class Join(InRoom, kw_only=True):
    """A room, and how many of its earlier messages are still unread after joining."""

    backfill: int | Literal["none", "all"] = DEFAULT_BACKFILL


class Start(Join, kw_only=True):
    """A room to create, or to join when it exists."""

    title: str | None = None


class Say(Arguments, kw_only=True):
    """Something to say in a room; what REST takes, but for passing on by hand (`relay_of`, `hop_limit`)."""

    room: str
    body: str | None = None
    to: str | None = None
    in_reply_to: MessageId | None = None
    thread_id: str | None = None
    type: str = "note"
    payload: dict[str, Any] | None = None
    urgent: bool = False
    ttl_seconds: float | None = None
    client_id: str | None = None
    seen: str | None = None


class Send(Arguments, kw_only=True):
    """The same to an address."""

    to: str
    body: str | None = None
    in_reply_to: MessageId | None = None
    thread_id: str | None = None
    type: str = "note"
    payload: dict[str, Any] | None = None
    urgent: bool = False
    ttl_seconds: float | None = None
    client_id: str | None = None
    seen: str | None = None


class Poll(Arguments, kw_only=True):
    """How to poll."""

    seen: str | None = None
    wait_seconds: Annotated[float, Meta(ge=0, le=WAIT_SECONDS)] = 0
    rooms: list[str] | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    max_bytes: Annotated[int, Meta(ge=1, le=MAX_BYTES)] = MAX_BYTES


class Paged(Arguments, kw_only=True):
    """A page of a list."""

    cursor: str = ""


class Members(Paged, kw_only=True):
    """A page of a room's members."""

    room: str


class Read(Arguments, kw_only=True):
    """A page of a room's messages, or of a thread's."""

    room: str | None = None
    thread_id: str | None = None
    after: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 20
    cursor: str | None = None


class Search(Arguments, kw_only=True):
    """What to look for."""

    q: Annotated[str, Meta(min_length=1, max_length=1000)]
    room: str | None = None
    sender: str | None = None
    type: str | None = None
    since: Annotated[dt.datetime, Meta(tz=True)] | None = None
    limit: Annotated[int, Meta(ge=1, le=200)] = 10
    cursor: str = "0"


class OfMessage(Arguments, kw_only=True):
    """One message."""

    id: MessageId


_KEPT = ("type", "items")


def input_schema(type_: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON schema of a tool's arguments, as short as it can be: each session pays for it in tokens."""
    (schema,) = msgspec.json.schema(type_)["$defs"].values()
    properties = {name: _short(each) for name, each in schema["properties"].items()}
    required = {"required": schema["required"]} if schema["required"] else {}
    return {"type": "object", "properties": properties, **required, "additionalProperties": False}


def _short(schema: dict[str, Any]) -> dict[str, Any]:
    """Without defaults, bounds, and null, which stands for leaving out: an error names what is wrong."""
    kinds = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    if len(kinds) == 1:
        return _short(kinds[0])
    if kinds:
        return {"anyOf": [{"type": each.get("type", "string")} for each in kinds]}  # some models take no list
    return {name: schema[name] for name in _KEPT if name in schema}
