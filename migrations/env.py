"""Runs the migrations on one connection, under an advisory lock, with a bounded wait for table locks."""

from __future__ import annotations

import asyncio

import sqlalchemy as sa
from alembic import context
from sqlalchemy.ext.asyncio import create_async_engine

from api.store.tables import metadata

MIGRATION_LOCK = 0x7EAD_1200


def migrate(connection: sa.Connection) -> None:
    """Apply what is missing; two programs that try at once take turns."""
    context.configure(connection=connection, target_metadata=metadata)
    with context.begin_transaction():
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
        connection.execute(sa.text("SET LOCAL lock_timeout = '10s'"))
        context.run_migrations()


async def main() -> None:
    """Connect with the URL that the caller put into the configuration."""
    url = context.config.get_main_option("sqlalchemy.url")
    if url is None:
        raise SystemExit("no database: set sqlalchemy.url in the alembic configuration")
    engine = create_async_engine(url, poolclass=sa.pool.NullPool)
    async with engine.connect() as connection:
        await connection.run_sync(migrate)
        await connection.commit()
    await engine.dispose()


asyncio.run(main())
