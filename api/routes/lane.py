"""The lane: the few calls that agents make all day, answered in front of FastAPI.

FastAPI's dispatch was measured at four fifths of the CPU of a `say`; here a request is a token looked up,
a body decoded by its type, one use case, and bytes. The calls stand in the one OpenAPI document.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from api.auth import AGENT_HEADER, Auth
from api.decoding import Decoder, bad_field
from api.errors import BadField, TooLarge
from api.models import Caller
from api.problems import answer_problem
from api.routes.document import references
from api.routes.front import refuse_announced
from api.routes.wire import check_query, idempotency_key
from api.services import fields
from api.services.drafts import Said, SayIn, SendIn
from api.services.feed import Feed, FeedIn, Feeds
from api.services.messages import Messages
from api.services.reading import AckIn, Polled, PollIn, Reading, Unread
from api.services.waiting import Wait, Waits

Answer = tuple[int, Any]

ROOM_MESSAGES = re.compile(r"/v1/rooms/([^/]+)/messages")
HISTORY = ("/v1/rooms/{room}/messages", "GET")
"""The one call on a path of the lane that is not the lane's."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One call of the lane, for the dispatch and for the OpenAPI document."""

    method: str
    path: str
    summary: str
    body: type[msgspec.Struct] | None
    answer: type | None
    run: Callable[[Caller, Any, str], Awaitable[Answer]]


class Lane:
    """An ASGI layer: answers its own operations and passes everything else on."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        auth: Auth,
        messages: Messages,
        reading: Reading,
        feeds: Feeds,
        waits: Waits,
        max_bytes: int,
    ) -> None:
        self._app = app
        self._auth = auth
        self._messages = messages
        self._reading = reading
        self._feeds = feeds
        self._waits = waits
        self._max_bytes = max_bytes
        self.operations = (
            Operation("POST", "/v1/rooms/{room}/messages", "Say something in a room", SayIn, Said, self._say),
            Operation("POST", "/v1/messages", "Send to an address", SendIn, Said, self._send),
            Operation("POST", "/v1/poll", "My unread, handed over once", PollIn, Polled, self._poll),
            Operation("POST", "/v1/ack", "Commit a lease, or move cursors forward", AckIn, None, self._ack),
            Operation("GET", "/v1/unread", "Count what waits; moves nothing", None, Unread, self._unread),
            Operation(
                "GET", "/v1/messages", "The feed, behind the client's cursor", FeedIn, Feed, self._feed
            ),
        )
        self._decoders: dict[Operation, Decoder[Any]] = {
            operation: Decoder(operation.body) for operation in self.operations if operation.body is not None
        }
        self._exact = {(o.method, o.path): o for o in self.operations[1:]}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "http":
            operation, room = self._operation(scope)
            if operation is not None:
                await self._serve(operation, room, scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _operation(self, scope: Scope) -> tuple[Operation | None, str]:
        path = scope["path"]
        found = self._exact.get((scope["method"], path))
        if found is None and scope["method"] == "POST" and (room := ROOM_MESSAGES.fullmatch(path)):
            return self.operations[0], room[1]
        return found, ""

    async def _serve(
        self, operation: Operation, room: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        try:
            caller = await self._auth.authenticate(scope)
            body = await self._given(operation, scope, receive)
            if isinstance(body, SayIn):
                _take_idempotency_key(body, scope["headers"])
            status, answer = await self._run(operation, caller, body, room, receive)
        except _CallerLeft:
            return
        except Exception as error:
            status, headers, content = answer_problem(error)
        else:
            headers, content = _JSON, msgspec.json.encode(answer)
        known = scope.get("caller")
        if known is not None:
            headers = [*headers, (AGENT_HEADER, known.handle.encode())]
        headers = [*headers, (b"content-length", str(len(content)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def _run(
        self, operation: Operation, caller: Caller, body: Any, room: str, receive: Receive
    ) -> Answer:
        if getattr(body, "wait_seconds", 0) <= 0:
            return await operation.run(caller, body, room)
        async with self._waits.one(caller) as waiting, _watched(waiting, receive):
            return await operation.run(caller, body, room)

    async def _given(self, operation: Operation, scope: Scope, receive: Receive) -> Any:
        """What the caller gave, by its type: from the body, or of a GET from the query."""
        if operation.method == "GET" and operation.body is not None:
            return _query(operation.body, scope["query_string"])
        if scope["query_string"]:
            check_query(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True), ())
        if operation.body is None:
            return None
        refuse_announced(scope, self._max_bytes)
        raw = await self._read(receive)
        return self._decoders[operation].decode(raw or b"{}")

    async def _read(self, receive: Receive) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _CallerLeft
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._max_bytes:
                raise TooLarge(self._max_bytes)
            if not message.get("more_body", False):
                return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _say(self, caller: Caller, new: SayIn, room: str) -> Answer:
        said, is_new = await self._messages.say(caller, room, new)
        return (201 if is_new else 200), said

    async def _send(self, caller: Caller, new: SendIn, _: str) -> Answer:
        said, is_new = await self._messages.send(caller, new)
        return (201 if is_new else 200), said

    async def _poll(self, caller: Caller, how: PollIn, _: str) -> Answer:
        return 200, await self._reading.poll(caller, how)

    async def _ack(self, caller: Caller, what: AckIn, _: str) -> Answer:
        await self._reading.ack(caller, what)
        return 200, {}

    async def _feed(self, caller: Caller, how: FeedIn, _: str) -> Answer:
        return 200, await self._feeds.read(caller, how)

    async def _unread(self, caller: Caller, _: None, __: str) -> Answer:
        return 200, await self._reading.unread(caller)


_JSON = [(b"content-type", b"application/json")]


def _take_idempotency_key(new: SayIn, headers: Iterable[tuple[bytes, bytes]]) -> None:
    """The header and `client_id` are two names of one thing."""
    key = fields.line("Idempotency-Key", idempotency_key(headers), fields.CLIENT_ID_CHARACTERS)
    if key is not None:
        if new.client_id not in (None, key):
            raise BadField("client_id", "differs from the Idempotency-Key header; give one of them")
        new.client_id = key


class _CallerLeft(Exception):
    """Nobody waits for the answer any more."""


@contextlib.asynccontextmanager
async def _watched(waiting: Wait, receive: Receive) -> AsyncIterator[None]:
    """End the call that waits when its caller hangs up."""

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        waiting.end(_CallerLeft())

    watcher = asyncio.create_task(watch())
    try:
        yield
    finally:
        watcher.cancel()


def _query(type_: type[msgspec.Struct], raw: bytes) -> Any:
    given = parse_qsl(raw.decode("latin-1"), keep_blank_values=True)
    check_query(given, type_.__struct_fields__)
    try:
        return msgspec.convert({name: value for name, value in given if value}, type_, strict=False)
    except msgspec.ValidationError as error:
        raise bad_field(str(error)) from None


def refuse_other_methods(routes: list[BaseRoute], operations: Iterable[Operation]) -> None:
    """Behind the lane, answer 405 for methods that its paths do not have; `routes` grows at its end."""
    methods = [HISTORY, *((operation.path, operation.method) for operation in operations)]
    for path in {operation.path for operation in operations}:
        allow = ", ".join(sorted({method for at, method in methods if at == path}))
        routes.append(Route(path, _Refusal(allow), include_in_schema=False))


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Answers every method; a plain function would answer GET alone."""

    allow: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raise HTTPException(405, headers={"Allow": self.allow})


def describe(document: dict[str, Any], operations: Iterable[Operation]) -> None:
    """Write the lane's operations into an OpenAPI document."""
    types = [t for operation in operations for t in (operation.body, operation.answer) if t is not None]
    schemas = dict(zip(types, references(document, types), strict=True))
    for operation in operations:
        document["paths"].setdefault(operation.path, {})[operation.method.lower()] = _described(
            operation, schemas
        )


def _described(operation: Operation, schemas: dict[type, Any]) -> dict[str, Any]:
    def content(type_: type | None) -> dict[str, Any]:
        return {"application/json": {"schema": schemas[type_] if type_ else {"type": "object"}}}

    statuses = ("200", "201") if operation.answer is Said else ("200",)
    described: dict[str, Any] = {
        "summary": operation.summary,
        "operationId": operation.run.__name__.strip("_"),
        "responses": {
            status: {"description": HTTPStatus(int(status)).phrase, "content": content(operation.answer)}
            for status in statuses
        },
    }
    if operation.body is not None and operation.method == "GET":
        described["parameters"] = _parameters(operation.body)
    elif operation.body is not None:
        described["requestBody"] = {"required": True, "content": content(operation.body)}
    if "{room}" in operation.path:
        described["parameters"] = [
            {"name": "room", "in": "path", "required": True, "schema": {"type": "string"}}
        ]
    return described


def _parameters(type_: type) -> list[dict[str, Any]]:
    schema = next(iter(msgspec.json.schema(type_)["$defs"].values()))
    return [
        {"name": name, "in": "query", "required": False, "schema": each}
        for name, each in schema["properties"].items()
    ]
