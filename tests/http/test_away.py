"""PostgreSQL is away: everything says so, and recovers by itself."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from deploy.postgres import Postgres
from deploy.schema import upgrade
from tests.http.running import Party, Running, running, settings_for, until


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    """A server that this test may kill."""
    folder = Path(tempfile.mkdtemp(prefix="readyroom-away-"))
    server = Postgres(folder, settings={"fsync": "off"})
    try:
        upgrade(server.start())
        yield server
    finally:
        server.stop(hurry=True)
        shutil.rmtree(server.places.home, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.long
async def test_a_record_starts_without_postgresql_and_serves_when_it_comes(
    own_postgres: Postgres, tmp_path: Path
) -> None:
    own_postgres.stop()
    with capture_logs() as logs:
        async with running(settings_for(own_postgres.dsn, tmp_path)) as record:
            await until(lambda: "database_not_reached" in map(itemgetter("event"), logs), "the log says so")
    assert list(map(itemgetter("event"), logs)).count("database_not_reached") == 1
    async with running(settings_for(own_postgres.dsn, tmp_path)) as record:
        assert (await record.stranger.get("/healthz")).status == 200
        ready = await record.stranger.get("/readyz")
        assert (ready.status, ready.body["status"], ready.body["parts"]["record"]) == (503, "down", "down")
        await is_down(record.holding("any"))
        await is_down(record.operator)
        own_postgres.start()
        await until(lambda: is_ready(record), "the record is ready")
        session = await record.session(await record.box("work3"))
        assert session.agent == "work3-agent#1"


@pytest.mark.long
async def test_a_record_says_that_postgresql_was_killed_and_goes_on_when_it_is_back(
    own_postgres: Postgres, tmp_path: Path
) -> None:
    async with running(settings_for(own_postgres.dsn, tmp_path)) as record:
        box = await record.box("work3")
        session = await record.session(box)
        pid = own_postgres.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await until(lambda: is_away(record), "the record notices")
        await is_down(record.operator)
        own_postgres.stop()
        own_postgres.start()
        await until(lambda: is_ready(record), "the record is ready")
        assert (await session.get("/v1/whoami")).body["agent"] == "work3-agent#1"
        assert (await record.session(box)).agent == "work3-agent#2"
        await record.operator.delete(f"/v1/admin/tokens/{box.token_id}")
        assert (await session.get("/v1/whoami")).status == 401


async def is_ready(record: Running) -> bool:
    return (await record.stranger.get("/readyz")).status == 200


async def is_away(record: Running) -> bool:
    return (await record.stranger.get("/readyz")).status == 503


async def is_down(party: Party) -> None:
    reply = await party.post("/v1/admin/boxes", {"name": "more"})
    assert (reply.status, reply.code) == (503, "record_down")
    assert int(reply.headers["retry-after"]) > 0
