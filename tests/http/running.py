"""A record that runs: real HTTP on a free loopback port, a real database behind it."""

from __future__ import annotations

import asyncio
import contextlib
import io
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp
import uvicorn
from pydantic import SecretStr
from starlette.types import ASGIApp

from api.app import create_app
from api.settings import Settings
from broker_bridge.guard import UVICORN

OPERATOR = "the-operators-own-token"
DEADLINE = 60.0
"""Seconds; ten times what anything here needs on a machine that does much else."""


@dataclass(frozen=True)
class Reply:
    """An answer."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def code(self) -> str | None:
        """A problem's code."""
        code: str | None = (
            self.body["code"] if self.headers["content-type"] == "application/problem+json" else None
        )
        return code


@dataclass(frozen=True)
class Party:
    """Somebody who calls the record."""

    http: aiohttp.ClientSession
    url: str
    token: str | None = None
    agent: str | None = None
    token_id: str | None = None

    async def get(self, path: str, **options: Any) -> Reply:
        """GET."""
        return await self.call("GET", path, **options)

    async def post(self, path: str, body: Any = None, **options: Any) -> Reply:
        """POST a JSON body, or none."""
        return await self.call("POST", path, body, **options)

    async def put(self, path: str, body: Any, **options: Any) -> Reply:
        """PUT a JSON body."""
        return await self.call("PUT", path, body, **options)

    async def delete(self, path: str, **options: Any) -> Reply:
        """DELETE."""
        return await self.call("DELETE", path, **options)

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | list[tuple[str, str]] = {},  # noqa: B006
        raw: bytes | AsyncIterator[bytes] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> Reply:
        """One request; `headers` come beside the two that say who calls, `raw` in place of a JSON body."""
        every = [*(headers.items() if isinstance(headers, Mapping) else headers)]
        if self.token is not None:
            every.append(("Authorization", f"Bearer {self.token}"))
        if self.agent is not None:
            every.append(("X-Tyode-Agent", self.agent))
        sent = {"json": body} if body is not None else {}
        if raw is not None:
            sent = {"data": io.BytesIO(raw) if isinstance(raw, bytes) else raw}
            every.append(("Content-Type", "application/json"))
        async with self.http.request(method, self.url + path, headers=every, params=query, **sent) as answer:
            is_json = "json" in answer.headers.get("content-type", "")
            got = await (answer.json(content_type=None) if is_json else answer.text())
            return Reply(answer.status, {k.lower(): v for k, v in answer.headers.items()}, got)

    def speaking_as(self, agent: str | None) -> Party:
        """The same token with another session."""
        return replace(self, agent=agent)


@dataclass(frozen=True)
class Running:
    """A record that runs, and the parties that tests need."""

    url: str
    http: aiohttp.ClientSession

    @property
    def stranger(self) -> Party:
        """Nobody."""
        return Party(self.http, self.url)

    @property
    def operator(self) -> Party:
        """The operator."""
        return self.holding(OPERATOR)

    def holding(self, token: str, agent: str | None = None) -> Party:
        """Whoever holds this token."""
        return Party(self.http, self.url, token, agent)

    async def box(self, name: str, *, realm: str | None = None) -> Party:
        """A new box."""
        return await self._holder("boxes", name, realm)

    async def person(self, name: str, *, realm: str | None = None) -> Party:
        """A new person."""
        return await self._holder("people", name, realm)

    async def session(self, box: Party, role: str | None = None) -> Party:
        """A new session of a box."""
        checked_in = await box.speaking_as(None).post("/v1/checkin", {"role": role} if role else {})
        assert checked_in.status == 201, checked_in
        return box.speaking_as(checked_in.body["agent"])

    async def _holder(self, kind: str, name: str, realm: str | None) -> Party:
        wanted = {"name": name} | ({"realm": realm} if realm else {})
        made = await self.operator.post(f"/v1/admin/{kind}", wanted)
        assert made.status == 201, made
        return Party(self.http, self.url, made.body["token"], token_id=made.body["token_id"])


def settings_for(database_url: str, folder: Path, **changes: Any) -> Settings:
    """The settings of a record under test; the operator's token is in `folder`."""
    token_file = folder / "admin.token"
    token_file.write_text(f"{OPERATOR}\n")
    return Settings(
        database_url=SecretStr(database_url), admin_token_file=token_file, database_connections=9, **changes
    )


@contextlib.asynccontextmanager
async def running(
    settings: Settings, around: Callable[[ASGIApp], ASGIApp] = lambda app: app
) -> AsyncIterator[Running]:
    """Run a record for the length of the block; `around` may put something in front of it."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        around(create_app(settings)),
        http="httptools",
        **UVICORN,
        lifespan="on",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign,assignment]
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await until(lambda: server.started or serving.done(), "the record starts")
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(DEADLINE)) as http:
            yield Running(url, http)
    finally:
        server.should_exit = True
        await serving
        listener.close()


async def until(holds: Callable[[], bool] | Callable[[], Awaitable[bool]], what: str) -> None:
    """Wait for something to become true; fail when it does not."""
    try:
        async with asyncio.timeout(DEADLINE) as limit:
            while True:
                held = holds()
                if held if isinstance(held, bool) else await held:
                    return
                await asyncio.sleep(0.01)
    except TimeoutError:
        if not limit.expired():  # somebody else's patience, within `holds`
            raise
        raise AssertionError(f"not in {DEADLINE:g} s: {what}") from None
