"""HTTP connections that are ended when a request does not arrive: nobody holds one half-open for long."""

from __future__ import annotations

import asyncio
import contextlib
import resource
from collections.abc import Iterable

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from api.errors import BadRequest
from api.problems import envelope

HEAD_SECONDS = 10.0
"""From the first moment, or a request's first byte, until its headers are here."""

REQUEST_SECONDS = 60.0
"""Until all of the request is here."""

NO_HTTP = "This is no HTTP/1.1 request. A header, X-Tyode-Agent too, has no control characters; begin anew."


class Connection(HttpToolsProtocol):
    """Knows since when a request has been due. A link that became a websocket is no such connection."""

    _due_since: float | None = None
    _has_head = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin: a request is due from now on."""
        self._expect()
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Take bytes, which may be less than a request's beginning."""
        self._expect()
        super().data_received(data)

    def on_message_begin(self) -> None:
        """Begin a request, which may lie behind another in the same bytes."""
        self._expect()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Take note of the head."""
        self._has_head = True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is whole: how long it is answered is the application's business."""
        self._due_since, self._has_head = None, False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Give a request that lay behind this answer its full time: nobody read it meanwhile."""
        if self._due_since is not None:
            self._due_since = self.loop.time()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, in the shape of all other errors, and close."""
        status, headers, body = envelope(400, code="bad_request", title=BadRequest.title, detail=NO_HTTP)
        headers = [*headers, (b"content-length", str(len(body)).encode()), (b"connection", b"close")]
        lines = [STATUS_LINE[status], *(b"%s: %s\r\n" % header for header in headers), b"\r\n", body]
        self.transport.write(b"".join(lines))
        self.transport.close()

    def is_overdue(self, *, head_seconds: float, request_seconds: float) -> bool:
        """Whether a request should have been here by now, and none that is whole waits for its answer."""
        if self._due_since is None or self._owes_an_answer():
            return False
        patience = request_seconds if self._has_head else head_seconds
        return self.loop.time() - self._due_since > patience

    def end(self) -> None:
        """Drop the connection."""
        self.transport.abort()

    def _expect(self) -> None:
        if self._due_since is None:
            self._due_since = self.loop.time()

    def _owes_an_answer(self) -> bool:
        cycle = self.cycle
        return bool(self.pipeline) or not (cycle is None or cycle.response_complete or cycle.more_body)


def end_overdue(connections: Iterable[object], *, head_seconds: float, request_seconds: float) -> int:
    """End the connections whose request does not arrive; returns how many."""
    overdue = [
        each
        for each in connections
        if isinstance(each, Connection)
        and each.is_overdue(head_seconds=head_seconds, request_seconds=request_seconds)
    ]
    for each in overdue:
        each.end()
    return len(overdue)


def raise_file_limit() -> None:
    """Let this process open as many files, connections among them, as it may."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # some systems name a limit that they do not grant
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
