"""`readyroom serve` and `readyroom broker` as processes of their own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp

from tests.contract.nerves import free_port
from tests.http.running import DEADLINE, Running, settings_for

START_SECONDS = 100


@contextlib.contextmanager
def program(log: Path, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """One command of `readyroom`; what it logs goes to a file."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("READYROOM_")}
    with log.open("ab") as out:
        command = [sys.executable, "-m", "readyroom", *arguments]
        process = subprocess.Popen(command, stdout=out, stderr=out, env={**clean, **environment})
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextlib.asynccontextmanager
async def serving_alone(
    database_url: str, folder: Path, **more: str
) -> AsyncIterator[tuple[Running, subprocess.Popen[bytes]]]:
    """`readyroom serve`, ready, with `more` in its environment."""
    settings, port = settings_for(database_url, folder), free_port()
    environment = {
        "READYROOM_DATABASE_URL": database_url,
        "READYROOM_ADMIN_TOKEN_FILE": str(settings.admin_token_file),
        **more,
    }
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(DEADLINE)) as http:
        with program(folder / "serve.log", "serve", "--port", str(port), **environment) as process:
            record = Running(f"http://127.0.0.1:{port}", http)
            end = time.monotonic() + START_SECONDS
            while not await answers(record):
                assert process.poll() is None, "the record ended"
                assert time.monotonic() < end, "the record does not answer"
                await asyncio.sleep(0.05)
            yield record, process


async def answers(record: Running) -> bool:
    """Whether it is ready."""
    try:
        return (await record.stranger.get("/readyz")).status == 200
    except aiohttp.ClientConnectionError:
        return False


@contextlib.contextmanager
def broker_alone(
    record: str, port: int, token_file: Path, log: Path, **environment: str
) -> Iterator[subprocess.Popen[bytes]]:
    """`readyroom broker` for a record, with `environment` besides."""
    arguments = ["--record", record, "--port", str(port), "--nerve-token-file", str(token_file)]
    with program(log, "broker", *arguments, **environment) as process:
        yield process
