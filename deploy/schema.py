"""Brings a database's schema up to date: alembic, without a configuration file."""

from __future__ import annotations

from importlib.resources import files

import asyncpg
from alembic import command
from alembic.config import Config
from sqlalchemy.exc import SQLAlchemyError


class SchemaFailed(Exception):
    """The migrations did not run; the text says why."""


def upgrade(dsn: str) -> None:
    """Apply every migration that the database lacks. Programs that try at once take turns.

    Runs an event loop of its own, so no loop may be running in this thread.

    Args:
        dsn: a libpq URL.

    Raises:
        SchemaFailed: the database is away, or refuses.
    """
    config = Config()
    config.set_main_option("script_location", str(files("migrations")))
    config.set_main_option("sqlalchemy.url", asyncpg_url(dsn).replace("%", "%%"))
    try:
        command.upgrade(config, "head")
    except (OSError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError, SQLAlchemyError) as error:
        raise SchemaFailed(f"The database was not brought up to date: {error}") from error


def asyncpg_url(dsn: str) -> str:
    """The same database for SQLAlchemy: `postgresql+asyncpg://...`."""
    for scheme in ("postgresql://", "postgres://"):
        if dsn.startswith(scheme):
            return f"postgresql+asyncpg://{dsn.removeprefix(scheme)}"
    return dsn
