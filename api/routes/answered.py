"""One line in the log and one count in the metrics for every request."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.auth import AGENT_HEADER
from api.routes.front import MCP
from api.routes.lane import ROOM_MESSAGES, Operation
from api.services.metrics import Metrics

log = structlog.get_logger()

PROBES = frozenset({"/healthz", "/readyz", "/metrics"})
LEFT = 499
"""The status in log and metrics of a caller that hung up before the answer."""


class Answered:
    """The outermost ASGI layer: looks on, changes nothing, and keeps neither bodies nor tokens.

    What agents do all day is logged at debug where it went well: a line costs a quarter of a `say`.

    Args:
        app: answers.
        operations: the lane's, whose routes no router knows.
        metrics: counts.
    """

    def __init__(self, app: ASGIApp, *, operations: Iterable[Operation], metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics
        self._busy = frozenset({MCP, *(operation.path for operation in operations)})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        answer: Message = {"status": LEFT, "headers": ()}

        async def sending(message: Message) -> None:
            nonlocal answer
            if message["type"] == "http.response.start":
                answer = message
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            self._note(scope, answer, time.perf_counter() - started)

    def _note(self, scope: Scope, answer: Message, seconds: float) -> None:
        method, route, status = scope["method"], self._route(scope), answer["status"]
        self._metrics.answered(method, route, status, seconds)
        quiet = route in PROBES or (status < 400 and route in self._busy)
        if quiet and not log.is_enabled_for(logging.DEBUG):
            return
        agent = next((value.decode() for name, value in answer["headers"] if name == AGENT_HEADER), None)
        log.log(
            logging.DEBUG if quiet else logging.INFO,
            "request_answered",
            method=method,
            route=route,
            status=status,
            duration_ms=round(seconds * 1000, 2),
            agent=agent,
        )

    def _route(self, scope: Scope) -> str:
        """The route's template, so that neither log nor metrics grow with what callers think up."""
        route = scope.get("route")
        if route is not None:
            template: str = route.path
            return template
        path: str = scope["path"]
        if path in self._busy:
            return path
        return "/v1/rooms/{room}/messages" if ROOM_MESSAGES.fullmatch(path) else "none"
