"""`readyroom migrate`: the database's schema, brought up to date."""

from __future__ import annotations

import typer

from deploy.schema import SchemaFailed, upgrade
from readyroom.entrance import enter
from readyroom.service import database_url, fail, service_settings

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def main(argv: list[str]) -> int:
    """Run once; 1 when the database cannot be brought up to date."""
    return enter(app, argv[1:], name="readyroom migrate")


@app.command()
def migrate() -> None:
    """Apply what READYROOM_DATABASE_URL lacks. Safe to repeat, and to run several times at once."""
    dsn = database_url(service_settings())
    try:
        upgrade(dsn)
    except SchemaFailed as error:
        fail(str(error))
    typer.echo("The schema is up to date.")
