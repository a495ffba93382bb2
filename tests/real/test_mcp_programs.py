"""The real programs at the record's MCP, set up as docs/reference/mcp.md says: whom it takes them for."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.http.running import Party, Running, running, settings_for
from tests.http.test_mcp_door import call
from tests.real import npm
from tests.real.model import Model
from tests.real.need import need
from tests.real.shell import exported, make_folders

pytestmark = pytest.mark.real

PAGE = Path(__file__).parents[2] / "docs/reference/mcp.md"
PAGE_URL = "http://127.0.0.1:7666"
COMMAND_SECONDS = 100.0


@dataclass
class Visits:
    """What came to `/mcp`, and whom the record took each caller for."""

    handles: list[str | None] = field(default_factory=list)
    answers: list[tuple[int, str | None]] = field(default_factory=list)

    def around(self, app: ASGIApp) -> ASGIApp:
        """A look at each request and its answer, in front of the record."""

        async def seen(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http" or scope["path"] != "/mcp" or scope["method"] != "POST":
                await app(scope, receive, send)
                return
            self.handles.append(_header(scope["headers"], b"x-tyode-agent"))

            async def told(message: Message) -> None:
                if message["type"] == "http.response.start":
                    self.answers.append((message["status"], _header(message["headers"], b"x-tyode-agent")))
                await send(message)

            await app(scope, receive, told)

        return seen


def _header(headers: list[tuple[bytes, bytes]], name: bytes) -> str | None:
    return next((value.decode() for key, value in headers if key.lower() == name), None)


@dataclass(frozen=True)
class Desk:
    """A record, a session of a box, a home folder, and what comes to the record."""

    record: Running
    session: Party
    visits: Visits
    home: Path
    model: Model
    page: str = PAGE.read_text(encoding="utf-8")

    def documented(self, program: str, language: str) -> str:
        """What the page says to write for a program, with this record's address."""
        (found,) = re.findall(rf"^{program}[^\n]*:\n\n```{language}\n(.*?)```", self.page, re.M | re.S)
        assert PAGE_URL in found
        return str(found).replace(PAGE_URL, self.record.url)

    async def run(self, *command: str, **env: str) -> str:
        """Run a command in the project of this home, to its good end; what it says."""
        shell = exported(self.home, found_in=self.home / "bin")
        done = await asyncio.to_thread(
            subprocess.run,
            command,
            env={**shell, "READYROOM_TOKEN": str(self.session.token), **env},
            cwd=self.home / "project",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout + done.stderr

    async def polled_under(self, handle: str | None) -> str:
        """What a poll is told that comes with this handle."""
        reply = await call(self.session.speaking_as(handle), "poll_convs")
        return str(reply.body["result"]["content"][0]["text"])


@pytest.fixture
async def desk(database_url: str, tmp_path: Path, folder: Path, model: Model) -> AsyncIterator[Desk]:
    """A fresh one."""
    visits = Visits()
    make_folders(folder, "bin", ".codex", ".gemini", ".claude")
    async with running(settings_for(database_url, tmp_path), visits.around) as record:
        session = await record.session(await record.box("work3"))
        yield Desk(record, session, visits, folder, model)


async def claude_code(desk: Desk, **env: str) -> str:
    """Enter the record with its command, and have it look; Claude Code's own word on it."""
    (desk.home / "bin" / "claude").symlink_to(npm.claude_code())
    quiet = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    await desk.run("bash", "-c", desk.documented("Claude Code", "bash"), **quiet)
    return await desk.run("claude", "mcp", "list", **quiet, **env)


async def gemini(desk: Desk, **env: str) -> str:
    """The same with Gemini CLI, in a folder that is trusted."""
    settings = json.loads(desk.documented("Gemini CLI", "json"))
    quiet = {"privacy": {"usageStatisticsEnabled": False}}
    (desk.home / ".gemini/settings.json").write_text(json.dumps(settings | quiet))
    trusted = {str(desk.home / "project"): "TRUST_FOLDER"}
    (desk.home / ".gemini/trustedFolders.json").write_text(json.dumps(trusted))
    return await desk.run(need("node"), str(npm.gemini()), "mcp", "list", **env)


async def codex(desk: Desk, **env: str) -> str:
    """The same with Codex, whose list looks at nothing: it connects when a session begins."""
    file = desk.home / ".codex/config.toml"
    file.write_text(CODEX.format(url=desk.model.url) + desk.documented("Codex", "toml"))
    more = {"CODEX_HOME": str(file.parent), "OPENAI_API_KEY": "made-up", **env}
    listed = await desk.run(str(npm.codex()), "mcp", "list", **more)
    await desk.run(str(npm.codex()), "exec", "--skip-git-repo-check", "good morning", **more)
    return listed


CODEX = """\
model = "stand-in"
model_provider = "here"
check_for_update_on_startup = false

[model_providers.here]
name = "here"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"

"""
CONNECTED = {claude_code: "Connected", codex: "enabled", gemini: "Connected"}
"""What each says when all is well."""
UNSET = {claude_code: "", codex: None, gemini: ""}
"""What arrives as the handle from each, where the variable is not set."""


class Program(Protocol):
    """One of them."""

    async def __call__(self, desk: Desk, **env: str) -> str:
        """Have it look at the record; what it says."""


@pytest.mark.parametrize("program", CONNECTED)
async def test_it_connects_under_the_handle_in_its_environment(desk: Desk, program: Program) -> None:
    handle = str(desk.session.agent)
    assert CONNECTED[program] in await program(desk, READYROOM_AGENT=handle)
    assert {*desk.visits.handles} == {handle}
    assert {agent for _, agent in desk.visits.answers} == {handle}
    assert all(status < 300 for status, _ in desk.visits.answers)


@pytest.mark.parametrize("program", CONNECTED)
async def test_without_a_handle_it_connects_as_the_box_and_a_poll_tells_the_cure(
    desk: Desk, program: Program
) -> None:
    assert CONNECTED[program] in await program(desk)
    (came,) = {*desk.visits.handles}
    assert came == UNSET[program]
    assert {agent for _, agent in desk.visits.answers} == {"work3"}
    told = await desk.polled_under(came)
    assert told.startswith("Nothing unread for work3. ")
    assert "readyroom run" in told


async def test_a_variable_that_claude_code_leaves_as_it_stands_is_no_handle(desk: Desk) -> None:
    """As written without `:-`, which the page has."""
    desk_of_old = replace(desk, page=desk.page.replace("${READYROOM_AGENT:-}", "${READYROOM_AGENT}"))
    assert "Connected" in await claude_code(desk_of_old)
    assert {*desk.visits.handles} == {"${READYROOM_AGENT}"}
    assert {agent for _, agent in desk.visits.answers} == {"work3"}
    assert "readyroom run" in await desk.polled_under("${READYROOM_AGENT}")


@pytest.mark.parametrize("program", [claude_code, gemini])
async def test_with_a_wrong_token_it_says_that_it_is_not_connected(desk: Desk, program: Program) -> None:
    assert CONNECTED[program] not in await program(desk, READYROOM_TOKEN="made-up")
    assert {status for status, _ in desk.visits.answers} == {401}
