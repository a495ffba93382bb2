"""A model at its tools: the official SDK's client, over real HTTP, in either era of the protocol."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Literal

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from tests.http.running import DEADLINE, Party

Era = Literal["auto", "legacy"]
"""2026-07-28, or the newest revision with a handshake."""


@dataclass(frozen=True)
class Answer:
    """What a tool answered."""

    texts: list[str]
    data: Any
    code: str | None

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Of a poll, all messages of all rooms."""
        return [message for room in self.data["rooms"] for message in room["messages"]]


@dataclass(frozen=True)
class Model:
    """Somebody who calls tools."""

    client: Client

    async def __call__(self, tool: str, **arguments: Any) -> Answer:
        """One call; the client holds what is answered to the tool's output schema."""
        result = await self.client.call_tool(tool, arguments)
        assert isinstance(result, CallToolResult)
        texts = [block.text for block in result.content if isinstance(block, TextContent)]
        assert len(texts) == len(result.content)
        code = (result.meta or {}).get("urn:readyroom:code")
        assert result.is_error == (code is not None)
        return Answer(texts, result.structured_content, code)


def headers_of(party: Party) -> dict[str, str]:
    """The two that say who calls."""
    headers = {"Authorization": f"Bearer {party.token}"} if party.token is not None else {}
    return headers | ({"X-Tyode-Agent": party.agent} if party.agent is not None else {})


@contextlib.asynccontextmanager
async def model(party: Party, era: Era = "auto") -> AsyncIterator[Model]:
    """Tools in the name of a party."""
    async with (
        httpx2.AsyncClient(headers=headers_of(party), timeout=DEADLINE) as http,
        Client(streamable_http_client(f"{party.url}/mcp", http_client=http), mode=era) as client,
    ):
        yield Model(client)


@contextlib.asynccontextmanager
async def held_model(party: Party, era: Era) -> AsyncIterator[Model]:
    """The same for a fixture, whose end may run in another task than its beginning."""
    ready: asyncio.Future[Model] = asyncio.get_running_loop().create_future()
    done = asyncio.Event()

    async def hold() -> None:
        async with model(party, era) as held:
            ready.set_result(held)
            await done.wait()

    holding = asyncio.create_task(hold())
    either: list[asyncio.Future[Any]] = [ready, holding]
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if not ready.done():
        await holding  # it says why
    try:
        yield ready.result()
    finally:
        done.set()
        await holding
