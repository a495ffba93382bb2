"""Record processes on a database of the tests, and the tables that the suites print."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import aiohttp
import pytest

from tests.contract.nerves import free_port
from tests.http.running import Running, settings_for, until

NO_LIMITS = {
    "READYROOM_SAY_PER_SECOND": "1000000",
    "READYROOM_SAY_BURST": "1000000",
    "READYROOM_URGENT_BURST": "1000000",
    "READYROOM_BOX_PER_SECOND": "1000000",
    "READYROOM_BOX_BURST": "1000000",
}
CALL_SECONDS = 60.0


@contextlib.asynccontextmanager
async def record_process(
    database_url: str, folder: Path, settings: Mapping[str, str] = NO_LIMITS, *, port: int | None = None
) -> AsyncIterator[Running]:
    """A record as a process of its own, ready to answer; it is killed in the end."""
    port = port or free_port()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("READYROOM_")},
        "READYROOM_DATABASE_URL": database_url,
        "READYROOM_ADMIN_TOKEN_FILE": str(settings_for(database_url, folder).admin_token_file),
        "READYROOM_PORT": str(port),
        **settings,
    }
    with (folder / f"record-{port}.log").open("wb") as log:
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "api", env=environment, stdout=log, stderr=log
        )
    try:
        timeout = aiohttp.ClientTimeout(CALL_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as http:
            record = Running(f"http://127.0.0.1:{port}", http)
            await until(lambda: _ready(record), "the record is ready")
            yield record
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


async def _ready(record: Running) -> bool:
    try:
        return (await record.stranger.get("/readyz")).status == 200
    except aiohttp.ClientConnectionError:
        return False


def show(
    capsys: pytest.CaptureFixture[str], columns: Sequence[str], rows: Sequence[Sequence[object]]
) -> None:
    """Print a table, whatever pytest captures."""
    texts = [[str(cell) for cell in row] for row in [columns, *rows]]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    with capsys.disabled():
        print()
        for row in texts:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
