"""The migrations and the tables of the code are the same schema."""

from __future__ import annotations

import asyncio
from importlib.resources import files

import asyncpg
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy.ext.asyncio import create_async_engine

from api.store.tables import metadata
from deploy.schema import asyncpg_url, upgrade

CATALOG = {
    "tables": """
        SELECT relname, relkind FROM pg_class
         WHERE relnamespace = 'public'::regnamespace AND relkind <> 'i'
    """,
    "columns": """
        SELECT attrelid::regclass, attname, format_type(atttypid, atttypmod), attnotnull, attidentity,
               attgenerated, pg_get_expr(adbin, adrelid)
          FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
          LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
         WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND attnum > 0 AND NOT attisdropped
    """,
    "constraints": """
        SELECT conrelid::regclass, conname, pg_get_constraintdef(oid) FROM pg_constraint
         WHERE connamespace = 'public'::regnamespace
    """,
    "indexes": "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "ranges": """
        SELECT rngtypid::regtype, rngsubtype::regtype, rngcollation::regcollation FROM pg_range
         WHERE rngtypid >= 16384
    """,
}


def catalog(dsn: str) -> dict[str, set[tuple[str, ...]]]:
    """Everything that a schema consists of, but for alembic's own mark."""

    async def read() -> dict[str, set[tuple[str, ...]]]:
        connection = await asyncpg.connect(dsn)
        try:
            rows = {what: await connection.fetch(query) for what, query in CATALOG.items()}
        finally:
            await connection.close()
        found = {what: {tuple(map(str, row.values())) for row in each} for what, each in rows.items()}
        return {what: {row for row in each if "alembic" not in str(row)} for what, each in found.items()}

    return asyncio.run(read())


def step(dsn: str, *, to: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(files("migrations")))
    config.set_main_option("sqlalchemy.url", asyncpg_url(dsn).replace("%", "%%"))
    command.downgrade(config, to)


async def create_all(dsn: str) -> None:
    engine = create_async_engine(asyncpg_url(dsn))
    async with engine.begin() as connection:
        await connection.run_sync(metadata.create_all)
    await engine.dispose()


def test_the_migrations_build_what_the_code_expects(database_url: str, empty_database_url: str) -> None:
    asyncio.run(create_all(empty_database_url))
    migrated, expected = catalog(database_url), catalog(empty_database_url)
    assert migrated == expected
    assert all(expected.values())


def test_a_difference_would_be_noticed(database_url: str, empty_database_url: str) -> None:
    asyncio.run(create_all(empty_database_url))
    for change in (
        "ALTER TABLE agents ALTER COLUMN title SET NOT NULL",
        "DROP INDEX conv_members_room_idx",
        "ALTER TABLE tokens DROP CONSTRAINT tokens_slot_check",
        "ALTER TABLE batches ADD COLUMN more TEXT",
    ):
        before = catalog(database_url)
        asyncio.run(_execute(database_url, change))
        assert catalog(database_url) != before, change


def test_one_step_down_and_up_again_is_the_same_schema(database_url: str) -> None:
    before = catalog(database_url)
    step(database_url, to="-1")
    assert catalog(database_url) != before
    upgrade(database_url)
    assert catalog(database_url) == before


def test_there_is_one_line_of_migrations() -> None:
    config = Config()
    config.set_main_option("script_location", str(files("migrations")))
    assert len(ScriptDirectory.from_config(config).get_heads()) == 1


async def _execute(dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
