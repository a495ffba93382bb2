"""The official SDK's server with our tools: both protocol eras on one route, nothing kept between calls."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import structlog
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prompt,
    PromptMessage,
    ServerCapabilities,
    TextContent,
)
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Scope

from api.decoding import Decoder
from api.errors import NoSuchThing
from api.mcp.door import Door
from api.mcp.results import refused
from api.mcp.tools import CATCHUP, INSTRUCTIONS, TOOLS, Desk
from api.models import Caller
from api.problems import words
from api.services import fields
from api.services.record import Record
from api.services.waiting import Waits

log = structlog.get_logger()

_PROMPT = Prompt(name="catchup", title="Catch up", description="Read what is unread, and act on it.")

Context = ServerRequestContext[Any, Request]


class _Server(Server[Any]):
    """A server without resources, which tells a program that asks all the same that there are none.

    It does not declare them: a program would show its model tools for them, which cost and find nothing.
    """

    def get_capabilities(self, *given: Any, **named: Any) -> ServerCapabilities:
        """What is declared."""
        return super().get_capabilities(*given, **named).model_copy(update={"resources": None})


class McpFace:
    """MCP over the services of one record; `running` spans the time in which it answers.

    Who calls is found out in front of it, for each request: `scope["caller"]`, or `scope["refused"]`, the
    error that a model can be told.
    """

    def __init__(
        self, record: Record, waits: Waits, *, path: str, names: frozenset[str], version: str
    ) -> None:
        self._desk = Desk(record, waits)
        self._tools = [face.shown(name) for name, face in TOOLS.items()]
        self._schemas = {tool.name: tool.input_schema for tool in self._tools}
        self._decoders = {name: Decoder(face.arguments) for name, face in TOOLS.items()}
        server = _Server(
            "readyroom",
            title="Readyroom",
            version=version,
            instructions=INSTRUCTIONS,
            get_tool_input_schema=self._schemas.get,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_resource_templates,
        )
        # A caller that leaves is noticed only while an answer may become a stream, hence no json_response.
        self._manager = StreamableHTTPSessionManager(app=server, stateless=True, json_response=False)
        self.route = Route(path, Door(StreamableHTTPASGIApp(self._manager), names), include_in_schema=False)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer for as long as the block lasts; what is open then ends."""
        async with self._manager.run():
            yield

    async def _list_tools(self, _: Context, __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=self._tools)

    async def _list_prompts(self, _: Context, __: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(prompts=[_PROMPT])

    async def _get_prompt(self, _: Context, wanted: GetPromptRequestParams) -> GetPromptResult:
        if wanted.name != _PROMPT.name:
            raise MCPError(INVALID_PARAMS, f"There is no prompt but {_PROMPT.name}.")
        text = TextContent(type="text", text=CATCHUP)
        return GetPromptResult(messages=[PromptMessage(role="user", content=text)])

    async def _list_resources(self, _: Context, __: PaginatedRequestParams | None) -> ListResourcesResult:
        return ListResourcesResult(resources=[])

    async def _list_resource_templates(
        self, _: Context, __: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=[])

    async def _call_tool(self, context: Context, call: CallToolRequestParams) -> CallToolResult:
        """Whatever goes wrong is told to the model, which can mend it, and is no fault of the protocol."""
        started = time.perf_counter()
        assert context.request is not None
        scope, outcome = context.request.scope, "left"
        try:
            result = await self._run(scope, call.name, call.arguments or {})
            outcome = "ok"
            return result
        except Exception as error:
            outcome, detail = words(error)
            return refused(detail, outcome)
        finally:
            self._note(scope, call.name, outcome, time.perf_counter() - started)

    async def _run(self, scope: Scope, name: str, arguments: Mapping[str, Any]) -> CallToolResult:
        if "refused" in scope:
            raise scope["refused"]
        caller: Caller = scope["caller"]
        face = TOOLS.get(name)
        if face is None:
            raise NoSuchThing(f"There is no tool of this name. There are: {', '.join(TOOLS)}.")
        return await face.run(self._desk, caller, self._given(name, arguments))

    def _given(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """The arguments by their types; null is the same as leaving out."""
        given = {field: value for field, value in arguments.items() if value is not None}
        for field, value in given.items():
            if isinstance(value, str):
                fields.unicode_text(field, value)
        return self._decoders[name].decode(json.dumps(given).encode())

    def _note(self, scope: Scope, name: str, outcome: str, seconds: float) -> None:
        tool = name if name in TOOLS else "none"
        self._desk.record.metrics.tool_answered(tool, outcome, seconds)
        level = log.debug if outcome == "ok" else log.info
        known: Caller | None = scope.get("caller")
        level(
            "tool_answered",
            tool=tool,
            outcome=outcome,
            duration_ms=round(seconds * 1000, 2),
            agent=known.handle if known else None,
        )
