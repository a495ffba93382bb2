"""The official Inspector of MCP at a record that runs: its strict look at the tools, and calls of some."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from api.mcp.tools import TOOLS
from tests.http.models import headers_of
from tests.http.running import Party, Running, running, settings_for
from tests.real import npm

pytestmark = pytest.mark.real

COMMAND_SECONDS = 100.0
IS_ERROR, NOT_LET_IN = 5, 3
"""What it exits with when a tool answers with an error, and when nobody knows the token."""


@dataclass(frozen=True)
class Done:
    """What it has told."""

    code: int
    out: str
    errors: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Inspector:
    """It, in the name of a party."""

    party: Party
    home: Path

    async def __call__(self, *words: str) -> Done:
        """Run one command."""
        headers = [word for pair in headers_of(self.party).items() for word in ("--header", ": ".join(pair))]
        where = ("--cli", f"{self.party.url}/mcp", "--transport", "http")
        done = await asyncio.to_thread(
            subprocess.run,
            [str(npm.node()), str(npm.mcp_inspector()), *where, *headers, *words],
            env={"HOME": str(self.home), "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    async def call(self, tool: str, **arguments: str) -> Done:
        """Call a tool."""
        given = [word for pair in arguments.items() for word in ("--tool-arg", "=".join(pair))]
        return await self("--method", "tools/call", "--tool-name", tool, *given)


@pytest.fixture
async def record(database_url: str, tmp_path: Path) -> AsyncIterator[Running]:
    """A fresh record."""
    npm.mcp_inspector()
    async with running(settings_for(database_url, tmp_path)) as record:
        yield record


async def test_strictly_no_schema_of_a_tool_is_found_wanting(record: Running, tmp_path: Path) -> None:
    inspect = Inspector(await record.session(await record.box("work3")), tmp_path)
    listed = await inspect("--method", "tools/list", "--strict")
    assert listed.code == 0, listed.errors
    assert [tool["name"] for tool in listed.data["tools"]] == list(TOOLS)
    assert listed.errors == ""


async def test_tools_are_called_and_the_prompt_is_read(record: Running, tmp_path: Path) -> None:
    inspect = Inspector(await record.session(await record.box("work3")), tmp_path)
    bob = await record.session(await record.box("devmac"))
    started = await inspect.call("start_conv", room="api")
    assert (started.code, started.data["structuredContent"]["joined"]) == (0, True)
    assert (await bob.post("/v1/rooms", {"name": "api"})).status == 200
    said = await bob.post("/v1/rooms/api/messages", {"body": "hello"})
    polled = await inspect.call("poll_convs", wait_seconds="5")
    (room,) = polled.data["structuredContent"]["rooms"]
    assert [message["id"] for message in room["messages"]] == [said.body["message"]["id"]]
    lease = polled.data["structuredContent"]["lease"]
    answered = await inspect.call("say", room="api", body="hi", seen=lease)
    assert answered.data["structuredContent"]["receipt"]["accepted"][0]["agent"] == bob.agent
    prompt = await inspect("--method", "prompts/get", "--prompt-name", "catchup")
    assert "poll_convs" in prompt.data["messages"][0]["content"]["text"]


async def test_what_goes_wrong_is_told(record: Running, tmp_path: Path) -> None:
    box = await record.box("work3")
    refused = await Inspector(await record.session(box), tmp_path).call("say", room="none", body="x")
    assert refused.code == IS_ERROR
    assert "tool start_conv" in refused.out
    unknown = await Inspector(record.holding("made-up"), tmp_path)("--method", "tools/list")
    assert unknown.code == NOT_LET_IN, unknown
