"""What every test may ask for: a real PostgreSQL, and a database of its own in it."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from deploy.postgres import Postgres
from deploy.schema import upgrade
from tests.contract.redis_server import RedisServer, redis_server
from tests.pairings import table

FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_wal_size": "64MB"}
"""A test database need not survive a power cut, and is small."""

MEMORY_BYTES = 2 << 30
"""What the clusters of a run need at most, several workers together."""

TEMPLATE = "migrated"
_numbers = itertools.count(1)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show which makes of programs heard each other, where that was tried."""
    passed = terminalreporter.stats.get("passed", [])
    pairings = [value for report in passed for name, value in report.user_properties if name == "pairing"]
    if pairings:
        terminalreporter.section("interoperability")
        terminalreporter.write_line(table(sorted(pairings)))


@pytest.fixture(scope="session", autouse=True)
def buffered_output() -> None:
    """Programs under test buffer what they print, as they do for users, whatever this shell says."""
    os.environ.pop("PYTHONUNBUFFERED", None)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One embedded server for the whole run, in memory where there is enough of it."""
    folder = Path(tempfile.mkdtemp(prefix="readyroom-tests-", dir=in_memory()))
    folder.chmod(0o755)
    server = Postgres(folder, settings=FAST)
    try:
        with server:
            yield server
    finally:
        shutil.rmtree(server.places.home, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def database_template(postgres: Postgres) -> str:
    """The name of a database that holds the migrated schema and no rows."""
    asyncio.run(
        run_sql(postgres.url_of("postgres", user="postgres"), f"CREATE DATABASE {TEMPLATE} OWNER readyroom")
    )
    upgrade(postgres.url_of(TEMPLATE))
    return TEMPLATE


@pytest.fixture
def empty_database_url(postgres: Postgres) -> Iterator[str]:
    """A fresh database without any table."""
    yield from _database(postgres, "template0")


@pytest.fixture
def database_url(postgres: Postgres, database_template: str) -> Iterator[str]:
    """A fresh database with the migrated schema, as a libpq URL."""
    yield from _database(postgres, database_template)


@pytest.fixture(scope="session")
def redis() -> Iterator[RedisServer]:
    """One Redis or Valkey for the whole run."""
    with redis_server() as server:
        yield server


def in_memory() -> Path | None:
    """A folder that lies in memory and has room for the clusters of a whole run.

    Most tests make a database of 300 files and remove it, which a disk's file system spends longer on than
    the test itself.
    """
    folder = Path("/dev/shm")
    if folder.is_dir() and shutil.disk_usage(folder).free > MEMORY_BYTES:
        return folder
    return None


async def run_sql(dsn: str, *statements: str) -> None:
    """Run statements one by one, each in a transaction of its own."""
    connection = await asyncpg.connect(dsn)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


def _database(postgres: Postgres, template: str) -> Iterator[str]:
    name = f"test_{next(_numbers)}"
    admin = postgres.url_of("postgres", user="postgres")
    create = f"CREATE DATABASE {name} TEMPLATE {template} OWNER readyroom STRATEGY file_copy"
    asyncio.run(run_sql(admin, create))
    try:
        yield postgres.url_of(name)
    finally:
        asyncio.run(run_sql(admin, f"DROP DATABASE {name} WITH (FORCE)"))
