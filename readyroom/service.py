"""What `up`, `serve` and `migrate` share: settings and failures in plain words, and a log file."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
import sys
from pathlib import Path
from typing import NoReturn, TextIO

import typer
from pydantic import ValidationError

from api import logs
from api.settings import Settings
from deploy.logfile import open_log
from notifier.settings import Settings as Workstation
from notifier.settings import in_words
from readyroom.screen import inert


def service_settings(*, host: str | None = None, port: int | None = None) -> Settings:
    """The environment's settings, with what the command line says in their place."""
    try:
        settings = Settings()
    except ValidationError as error:
        bad = error.errors(include_input=False, include_url=False)[0]
        why = bad["msg"].removeprefix("Value error, ")  # pydantic's word for a rule of ours
        fail(f"READYROOM_{'_'.join(map(str, bad['loc'])).upper()} will not do: {why}.", status=2)
    given = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    return settings.model_copy(update=given)


def database_url(settings: Settings) -> str:
    """The database that a program without an embedded one needs; ends the command when it is not named."""
    try:
        return settings.database_dsn()
    except OSError as error:
        file = settings.database_url_file
        fail(f"READYROOM_DATABASE_URL_FILE: {file} cannot be read ({in_words(error)}). Name another.")
    except ValueError as error:
        fail(f"{error}. Name a PostgreSQL database, or use `readyroom up`, which brings its own.")


def nearby_database_url(settings: Settings) -> str:
    """The database that is named, or else that of the `readyroom up` which runs on this machine."""
    if settings.database_url is None and settings.database_url_file is None:
        with contextlib.suppress(OSError, ValueError, KeyError):
            up = json.loads((Workstation.load().up_dir / "up.json").read_text(encoding="utf-8"))
            return str(up["database_url"])
    return database_url(settings)


def fail(text: str, *, status: int = 1) -> NoReturn:
    """End the command with one message on standard error."""
    sys.stderr.write(f"readyroom: {inert(text)}\n")
    raise typer.Exit(status)


def log_to(out: TextIO) -> None:
    """Send the log of this process to `out`."""
    logs.configure(stream=out)
    logging.getLogger("uvicorn.error").addFilter(_was_not_cut_off)


def log_to_file(path: Path) -> None:
    """Send the log of this process to a file in the data folder."""
    log_to(io.TextIOWrapper(open_log(path), encoding="utf-8", write_through=True))


def _was_not_cut_off(line: logging.LogRecord) -> bool:
    """False for the traceback of a request that was waiting when the server stopped."""
    return line.exc_info is None or not isinstance(line.exc_info[1], asyncio.CancelledError)
