"""What stands in front of every route: who calls, and one shape for whatever goes wrong."""

from __future__ import annotations

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.auth import AGENT_HEADER, Auth
from api.errors import BadField, Malformed, ServiceError, TooLarge, Unauthenticated
from api.problems import answer_problem

REDEEM = "/v1/redeem"
"""What somebody calls who has a code and no token yet."""

MCP = "/mcp"

ADMISSIONS = "/v1/nerve/admissions"
"""What a nerve calls that stands apart from the record."""


def refuse_announced(scope: Scope, max_bytes: int) -> None:
    """Refuse a body that is said to be too large before any of it comes.

    Raises:
        TooLarge
    """
    announced = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    if announced.isdigit() and int(announced) > max_bytes:
        raise TooLarge(max_bytes)


async def refuse_nul(request: Request) -> None:
    """See that no value in path and query has the character NUL, which PostgreSQL cannot take.

    Raises:
        BadField: one has; this names the first.
    """
    for field, value in (*request.path_params.items(), *request.query_params.multi_items()):
        if "\0" in value:
            raise BadField(field, "the character NUL is in no name and in no text; leave it out")


class Front:
    """An ASGI layer: nothing of /v1 and MCP is read before the token is known, nor told from another.

    Args:
        app: what to pass requests on to; it finds the caller in `scope["caller"]`.
        auth: knows tokens.
        guarded_metrics: whether /metrics is for the operator alone.
        max_bytes: the largest body that is read.
    """

    def __init__(self, app: ASGIApp, *, auth: Auth, guarded_metrics: bool, max_bytes: int) -> None:
        self._app = app
        self._auth = auth
        self._guarded_metrics = guarded_metrics
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            caller = scope.get("caller")
            if caller is not None and message["type"] == "http.response.start":
                headers = [*message.get("headers", ()), (AGENT_HEADER, caller.handle.encode())]
                message = {**message, "headers": headers}
            await send(message)

        try:
            await self._admit(scope)
            await self._app(scope, self._bounded(scope, receive), sending)
        except Exception as error:
            if begun:  # Starlette has answered and logged it, and passes it on for servers that do not
                return
            status, headers, body = answer_problem(error)
            headers = [*headers, (b"content-length", str(len(body)).encode())]
            await sending({"type": "http.response.start", "status": status, "headers": headers})
            await sending({"type": "http.response.body", "body": body})

    async def _admit(self, scope: Scope) -> None:
        path = scope["path"]
        if path.startswith("/v1/admin/") or (self._guarded_metrics and path == "/metrics"):
            await self._auth.admit_operator(scope["headers"])
        elif path == ADMISSIONS or path.startswith(f"{ADMISSIONS}/"):
            await self._auth.admit_nerve(scope["headers"])
        elif path == MCP:
            await self._admit_model(scope)
        elif path.startswith("/v1/") and path != REDEEM:
            await self._auth.authenticate(scope)

    async def _admit_model(self, scope: Scope) -> None:
        """Who sends no valid token or handle is refused; what else is wrong, a tool tells the model."""
        try:
            await self._auth.authenticate(scope)
        except (Unauthenticated, Malformed):
            raise
        except ServiceError as error:
            scope["refused"] = error

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        """Read at most what a body may have, whether or not its length was announced."""
        refuse_announced(scope, self._max_bytes)
        size = 0

        async def receiving() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._max_bytes:
                raise HTTPException(413)  # of all errors, FastAPI lets only its own through while it reads
            return message

        return receiving
