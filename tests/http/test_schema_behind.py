"""A database that was not migrated, or not far enough: everything names the cure, and recovers by itself."""

from __future__ import annotations

import asyncio
from operator import itemgetter
from pathlib import Path

from structlog.testing import capture_logs

from deploy.schema import upgrade
from tests.conftest import run_sql
from tests.http.running import Party, Running, running, settings_for, until

CALLS: tuple[tuple[str, str, object], ...] = (
    ("POST", "/v1/admin/boxes", {"name": "work3"}),
    ("GET", "/v1/whoami", None),
    ("POST", "/v1/rooms/api/messages", {"body": "hello"}),
    ("POST", "/v1/poll", {}),
)
"""One for each way to the database."""


async def test_a_database_without_tables_is_told_with_its_cure(
    empty_database_url: str, tmp_path: Path
) -> None:
    with capture_logs() as logs:
        async with running(settings_for(empty_database_url, tmp_path)) as record:
            await is_behind(record)
            for method, path, body in CALLS:
                await is_refused(
                    record.operator if "admin" in path else record.holding("any"), method, path, body
                )
            await until(lambda: "schema_behind" in map(itemgetter("event"), logs), "the log says so")
            await asyncio.to_thread(upgrade, empty_database_url)
            await until(lambda: is_ready(record), "the record is ready")
            session = await record.session(await record.box("work3"))
            assert session.agent == "work3-agent#1"
            await until(lambda: "database_reached" in map(itemgetter("event"), logs), "the log says so")
    events = list(map(itemgetter("event"), logs))
    assert events.count("schema_behind") == 1
    assert not {"request_failed", "closing_failed", "background_failed"} & set(events)


async def test_a_database_that_lacks_a_migration_is_not_ready(database_url: str, tmp_path: Path) -> None:
    await run_sql(database_url, "UPDATE alembic_version SET version_num = '0001'")
    async with running(settings_for(database_url, tmp_path)) as record:
        await is_behind(record)


async def test_a_database_that_is_newer_than_the_record_will_do(database_url: str, tmp_path: Path) -> None:
    await run_sql(database_url, "UPDATE alembic_version SET version_num = '9999'")
    async with running(settings_for(database_url, tmp_path)) as record:
        assert await is_ready(record)


async def is_behind(record: Running) -> None:
    ready = await record.stranger.get("/readyz")
    assert ready.status == 503
    assert ready.body == {"status": "down", "parts": {"record": "schema_behind", "nerve": "ok"}}


async def is_ready(record: Running) -> bool:
    return (await record.stranger.get("/readyz")).status == 200


async def is_refused(party: Party, method: str, path: str, body: object) -> None:
    refused = await party.call(method, path, body)
    assert (refused.status, refused.code) == (503, "schema_behind")
    assert "readyroom migrate" in refused.body["detail"]
    assert int(refused.headers["retry-after"]) > 0
