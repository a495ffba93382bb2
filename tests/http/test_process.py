"""`python -m api`, as a container runs it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.http.running import DEADLINE, OPERATOR, Running, settings_for, until


@asynccontextmanager
async def process(
    database_url: str, folder: Path, **more: str
) -> AsyncIterator[tuple[Running, asyncio.subprocess.Process]]:
    """The record as a process of its own, with `more` in its environment, and the way to it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = settings_for(database_url, folder)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("READYROOM_")},
        "READYROOM_DATABASE_URL": database_url,
        "READYROOM_ADMIN_TOKEN_FILE": str(settings.admin_token_file),
        "READYROOM_PORT": str(port),
        **more,
    }
    with (folder / "log").open("wb") as log:
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-W", "error", "-m", "api", env=environment, stdout=log, stderr=log
        )
    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(DEADLINE)) as http:
            yield Running(f"http://127.0.0.1:{port}", http), child
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


@pytest.mark.long
async def test_it_serves_from_its_environment_ends_at_sigterm_and_logs_no_secret(
    database_url: str, tmp_path: Path
) -> None:
    async with process(database_url, tmp_path) as (record, child):

        async def ready() -> bool:
            try:
                return (await record.stranger.get("/readyz")).status == 200
            except aiohttp.ClientConnectionError:
                return False

        await until(ready, "it is ready")
        box = await record.box("work3")
        session = await record.session(box)
        assert (await session.post("/v1/rooms", {"name": "api", "title": "a private title"})).status == 201
        child.send_signal(signal.SIGTERM)
        async with asyncio.timeout(DEADLINE):
            await child.wait()
    log = (tmp_path / "log").read_text()
    assert '"event":"request_answered"' in log
    assert "Traceback" not in log
    for secret in (str(box.token), OPERATOR, database_url, "a private title"):
        assert secret not in log
