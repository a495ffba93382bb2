"""What a tool answers: a short text, each message in a block of its own, and the same as data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
from mcp_types import CallToolResult, TextContent

from api.services.envelope import Message
from api.services.inert import inert

_NOT_FOR_MODELS = ("body", "client_id", "box", "hop_limit")
"""`text` stands for the body: said twice it would cost twice, and only `text` is inert."""


def result(text: str, structured: dict[str, Any], messages: Sequence[Message] = ()) -> CallToolResult:
    """An answer; only a marker at the front of a block is the record's."""
    blocks = [inert(text), *(_block(message) for message in messages)]
    return CallToolResult(
        content=[TextContent(type="text", text=each) for each in blocks], structured_content=structured
    )


def refused(text: str, code: str) -> CallToolResult:
    """A failure, for the model to read; its code is beside it for programs."""
    return CallToolResult(
        content=[TextContent(type="text", text=f"{code}: {text}")],
        is_error=True,
        _meta={"urn:readyroom:code": code},
    )


def plain(value: Any) -> Any:
    """A value of the services as JSON has it; no text in it steers who reads it."""
    return _clean(json.loads(msgspec.json.encode(value)))


def message_data(message: Message) -> dict[str, Any]:
    """A message as data for a model: without what is null or false."""
    data: dict[str, Any] = plain(message)
    return {
        name: value
        for name, value in data.items()
        if name not in _NOT_FOR_MODELS and value is not None and value is not False
    }


def size(message: Message) -> int:
    """Bytes of what was said."""
    return len(message.text.encode()) + len(bytes(message.payload or b""))


def fitting(messages: list[Message], max_bytes: int, *, newest: bool = False) -> list[Message]:
    """As many as fit, from the oldest on or back from the newest; one at least, whatever its size."""
    kept = 0
    for message in reversed(messages) if newest else messages:
        max_bytes -= size(message)
        if kept and max_bytes < 0:
            break
        kept += 1
    return messages[len(messages) - kept :] if newest else messages[:kept]


def listing(messages: Sequence[Message]) -> str:
    """Where each of the messages stands, in their order: `api #41, #42 (again); @reach #43`."""
    rooms: dict[str, list[str]] = {}
    for message in messages:
        notes = [note for holds, note in _notes(message) if holds]
        rooms.setdefault(message.room, []).append(
            f"#{message.id}" + (f" ({', '.join(notes)})" if notes else "")
        )
    return "; ".join(f"{room} {', '.join(ids)}" for room, ids in rooms.items())


def _notes(message: Message) -> Sequence[tuple[bool, str]]:
    return (
        (message.urgent, "urgent"),
        (message.redelivered, "again"),
        (message.truncated, "cut; read_conv has it whole"),
        (message.type != "note", message.type),
    )


def _block(message: Message) -> str:
    if message.payload is None:
        return message.text
    payload = json.dumps(plain(message.payload), ensure_ascii=False, separators=(",", ":"))
    return f"{message.text}\n\npayload: {payload}"


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return inert(value)
    if isinstance(value, list):
        return [_clean(each) for each in value]
    if isinstance(value, dict):
        return {inert(name): _clean(each) for name, each in value.items()}
    return value
