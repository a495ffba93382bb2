"""`readyroom webhook`: https addresses that are told when something happens in a room."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from notifier.record import Record
from readyroom.entrance import WrongUsageError, enter
from readyroom.screen import Screen, inert, moment
from readyroom.secret_file import new_file
from readyroom.speaker import ask

URL_CHARACTERS = 2000

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)

Webhook = Annotated[str, typer.Argument(metavar="ID", help="The id that `list` shows.", show_default=False)]
SecretFile = Annotated[
    Path | None, typer.Option(help="Write the secret into this new file (mode 600) and do not show it.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON, one document.")]


def main(argv: list[str]) -> int:
    """Run one command."""
    return enter(app, argv[1:], name="readyroom webhook")


@app.command()
def add(
    url: Annotated[
        str,
        typer.Argument(help="The https address; - reads it from standard input.", show_default=False),
    ],
    secret_file: SecretFile = None,
    as_json: AsJson = False,
) -> None:
    """Have an address told of what I hear, without a word of what was said.

    Prefer standard input where the address itself is a secret: other users of the machine can read arguments.
    """
    address = sys.stdin.readline(URL_CHARACTERS + 1).strip() if url == "-" else url
    if not address:
        raise WrongUsageError("There is no address.")
    _secret(lambda record: record.add_webhook(address), secret_file, as_json)


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """Show my webhooks, and how each is doing."""
    rows = ask(lambda record: record.webhooks())
    screen = Screen(as_json=as_json)
    if as_json:
        return screen.json({"webhooks": rows})
    table = [
        (row["webhook"], row["state"], row["url"], row["failure"], moment(row["old_secret_until"]))
        for row in rows
    ]
    columns = ("webhook", "state", "address", "last failure", "old secret signs until")
    screen.table(columns, table, empty="You have no webhook.")


@app.command()
def rotate(
    webhook: Webhook,
    overlap: Annotated[
        float | None,
        typer.Option(
            min=0, help="Seconds that the old secret signs, too; a day when left out, 0 ends it now."
        ),
    ] = None,
    secret_file: SecretFile = None,
    as_json: AsJson = False,
) -> None:
    """Give a webhook another secret. For a time both sign, so that its receiver misses nothing."""
    _secret(lambda record: record.rotate_webhook(webhook, overlap_seconds=overlap), secret_file, as_json)


@app.command()
def remove(webhook: Webhook, as_json: AsJson = False) -> None:
    """Remove a webhook; nothing more is sent to it."""
    ask(lambda record: record.remove_webhook(webhook))
    screen = Screen(as_json=as_json)
    screen.json({}) if as_json else screen.line(f"Webhook {webhook} is removed.")


def _secret(
    make: Callable[[Record], Awaitable[dict[str, Any]]], secret_file: Path | None, as_json: bool
) -> None:
    """Have a secret made, and show it once or put it where only this user reads it."""
    with new_file(secret_file) if secret_file else nullcontext() as file:
        made = ask(make)
        if file is not None:
            file.write(f"{made['secret']}\n")
            made = {**made, "secret": None, "secret_file": str(secret_file)}
    if as_json:
        return Screen(as_json=True).json(made)
    until = (
        f" The old one signs until {moment(made['old_secret_until'])}." if "old_secret_until" in made else ""
    )
    sys.stderr.write(f"Webhook {inert(made['webhook'])}, its secret is shown once.{until}\n")
    Screen(as_json=False).line(made["secret"] or made["secret_file"])
