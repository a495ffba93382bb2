"""What `up`, `serve` and `migrate` share: settings and failures in plain words, and a log file."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn, TextIO

import structlog
import typer
from pydantic import ValidationError

from api.settings import Settings
from deploy.logfile import open_log
from readyroom.screen import inert


def service_settings(*, host: str | None = None, port: int | None = None) -> Settings:
    """The environment's settings, with what the command line says in their place."""
    try:
        settings = Settings()
    except ValidationError as error:
        bad = error.errors(include_input=False, include_url=False)[0]
        fail(f"READYROOM_{'_'.join(map(str, bad['loc'])).upper()} will not do: {bad['msg']}.", status=2)
    given = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    return settings.model_copy(update=given)


def database_url(settings: Settings) -> str:
    """The database that a program without an embedded one needs; ends the command when it is not named."""
    try:
        return settings.database_dsn()
    except (OSError, ValueError) as error:
        fail(f"{error}. Name a PostgreSQL database, or use `readyroom up`, which brings its own.")


def fail(text: str, *, status: int = 1) -> NoReturn:
    """End the command with one message on standard error."""
    sys.stderr.write(f"readyroom: {inert(text)}\n")
    raise typer.Exit(status)


@contextlib.contextmanager
def write_log_file(path: Path) -> Iterator[None]:
    """Send the log to a file in the data folder for the block."""
    with (
        open_log(path) as raw,
        open(raw.fileno(), "w", buffering=1, encoding="utf-8", closefd=False) as out,
        write_log(out),
    ):
        yield


@contextlib.contextmanager
def write_log(out: TextIO) -> Iterator[None]:
    """Send the log to `out` for the block, one JSON line an event."""
    handler = logging.StreamHandler(out)
    handler.addFilter(lambda line: not _cut_off(line))
    logging.getLogger().addHandler(handler)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(file=out),
    )
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        structlog.reset_defaults()


def _cut_off(line: logging.LogRecord) -> bool:
    """Whether it only tells of a request that was waiting when the server stopped."""
    return line.exc_info is not None and isinstance(line.exc_info[1], asyncio.CancelledError)
