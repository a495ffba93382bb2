"""`readyroom prune`: deletes what is older than it is to be kept."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import asdict
from typing import Annotated

import structlog
import typer

from api.db import Database
from api.errors import NoSuchThing, RecordDown
from api.services.retention import Pruned, Retention
from readyroom.entrance import enter
from readyroom.screen import Screen
from readyroom.service import fail, nearby_database_url, service_settings

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def main(argv: list[str]) -> int:
    """Run once; 1 when the database is away, or there is no such realm."""
    return enter(app, argv[1:], name="readyroom prune")


@app.command()
def prune(
    realm: Annotated[str | None, typer.Option(help="Only this realm.")] = None,
    keep_days: Annotated[
        int | None,
        typer.Option(min=1, max=36_500, help="Keep so many days this time, whatever the settings say."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Answer in JSON, one document.")] = False,
) -> None:
    """Delete messages that are older than they are to be kept. Safe beside a record that runs.

    Over the database that READYROOM_DATABASE_URL names, or that of the `readyroom up` which runs here.
    READYROOM_KEEP_DAYS, or a realm's own keep_days, says how long messages are kept; where neither does, they
    are kept for ever.
    """
    settings = service_settings()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # stdout is the answer's
    dsn = nearby_database_url(settings)
    try:
        done = asyncio.run(_pruned(dsn, settings.keep_days, realm, keep_days))
    except NoSuchThing:
        fail(f"There is no realm {realm}. `readyroom admin realm list` shows those that there are.")
    except RecordDown:
        fail("The database does not answer. What was deleted until now is deleted; try again.")
    screen = Screen(as_json=as_json)
    if as_json:
        return screen.json({"realms": [{**asdict(one), "before": one.before.isoformat()} for one in done]})
    rows = [(one.realm, f"{one.before:%Y-%m-%dT%H:%M:%SZ}", one.deleted, one.expired) for one in done]
    screen.table(
        ("realm", "older than", "deleted", "sender is told first"),
        rows,
        empty="Everything is kept for ever: set READYROOM_KEEP_DAYS, a realm's keep_days, or --keep-days.",
    )


async def _pruned(
    dsn: str, default_days: int | None, realm: str | None, keep_days: int | None
) -> list[Pruned]:
    db = Database(dsn, hot=1, cold=1)
    try:
        return await Retention(db, keep_days=default_days).prune(realm=realm, keep_days=keep_days)
    finally:
        await db.close()
