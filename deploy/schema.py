"""Brings a database's schema up to date: alembic, without a configuration file."""

from __future__ import annotations

from importlib.resources import files

import asyncpg
from alembic import command
from alembic.config import Config
from sqlalchemy import make_url
from sqlalchemy.exc import SQLAlchemyError

from notifier.settings import in_words


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
    try:
        config.set_main_option("sqlalchemy.url", asyncpg_url(dsn).replace("%", "%%"))
        command.upgrade(config, "head")
    except OSError as error:
        raise SchemaFailed(
            f"PostgreSQL cannot be reached at {_place(dsn)} ({in_words(error)}). Start it there, or mend "
            "READYROOM_DATABASE_URL."
        ) from error
    except (asyncpg.PostgresError, asyncpg.InterfaceError, SQLAlchemyError, ValueError) as error:
        why = str(error).partition("\n")[0]
        raise SchemaFailed(
            f"The database was not brought up to date: {why}. See READYROOM_DATABASE_URL."
        ) from error


def _place(dsn: str) -> str:
    url = make_url(dsn)
    return f"{url.host or url.query.get('host', 'localhost')}, port {url.port or 5432}"


def asyncpg_url(dsn: str) -> str:
    """The same database for SQLAlchemy, which hands asyncpg its own name for libpq's `sslmode`."""
    url = make_url(dsn).set(drivername="postgresql+asyncpg")
    if "sslmode" in url.query:
        url = url.difference_update_query(["sslmode"]).update_query_dict({"ssl": url.query["sslmode"]})
    return url.render_as_string(hide_password=False)
