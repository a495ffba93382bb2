"""Commands that look and move nothing: message, undelivered, search, tail, export."""

from __future__ import annotations

import asyncio
import sys
from enum import StrEnum
from typing import Annotated, Any

import typer

from notifier.record import Record, RecordError, RecordUnreachable
from readyroom.entrance import enter
from readyroom.exporting import exported
from readyroom.screen import Screen, inert, moment
from readyroom.speaker import ask

WAIT_SECONDS = 25
PAUSE_SECONDS = 1.0

WHY = {"expired": "it expired unread", "retired": "whoever it was for has gone without reading it"}
"""Why a message stayed undelivered, in plain words."""

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)

Room = Annotated[str, typer.Argument(help="The room's name.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON, one document.")]


class Format(StrEnum):
    """What an export is written in."""

    md = "md"
    jsonl = "jsonl"


def main(argv: list[str]) -> int:
    """Run one of the commands; `argv[0]` is its name."""
    return enter(app, argv)


@app.command()
def message(
    message_id: Annotated[int, typer.Argument(metavar="ID", min=1, help="The message's id.")],
    as_json: AsJson = False,
) -> None:
    """Show one message, who has read it and when, and who has not and why."""
    answer = ask(lambda record: record.message(message_id))
    screen = Screen(as_json=as_json)
    if as_json:
        return screen.json(answer)
    screen.message(answer["message"])
    receipt = answer["receipt"]
    rows = [(one["agent"], moment(one["at"]), "") for one in receipt["read_by"]]
    rows += [(one["agent"], "", one["why"]) for one in receipt["unread_by"]]
    screen.table(("reader", "read", "not read, because"), rows, empty="It is for nobody who is here.")


@app.command()
def undelivered(as_json: AsJson = False) -> None:
    """Show what nobody took of what you said, and why."""
    rows = ask(lambda record: record.undelivered())
    screen = Screen(as_json=as_json)
    if as_json:
        return screen.json({"messages": rows})
    for row in rows:
        screen.message(row)
        screen.line(f"Undelivered: {WHY.get(row['why'], row['why'])}.")
    if not rows:
        screen.line("Nothing stayed undelivered.")


@app.command()
def search(
    words: Annotated[list[str], typer.Argument(help="All of them must be there.", show_default=False)],
    room: Annotated[str | None, typer.Option(help="Only this room.")] = None,
    sender: Annotated[str | None, typer.Option(help="Only this sender's.")] = None,
    type_: Annotated[str | None, typer.Option("--type", help="Only this type.")] = None,
    since: Annotated[
        str | None, typer.Option(help="Only since this moment, such as 2026-11-30T16:00:00Z.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, max=200, help="At most so many (20).")] = None,
    as_json: AsJson = False,
) -> None:
    """Find messages by their words, best first. The words that were sought stand between ⟦ and ⟧."""
    filters = {"room": room, "sender": sender, "type": type_, "since": since, "limit": limit}

    async def found(record: Record) -> list[dict[str, Any]]:
        rows = await record.search(" ".join(words), **filters)
        if not rows:
            await _see_that_they_exist(record, room, sender)
        return rows

    rows = ask(found)
    if not as_json:
        rows = [{**row, "body": row["highlight"] or row["body"]} for row in rows]
    _show(rows, "Nothing was found.", as_json)


async def _see_that_they_exist(record: Record, room: str | None, sender: str | None) -> None:
    """Say what is wrong with a room or a sender in which nothing could ever be found."""
    if room is not None and not room.startswith("@"):
        await record.history(room, limit=1)
    if sender is not None and sender not in {row["agent"] for row in await record.agents(retired=True)}:
        raise RecordError(f"There is no agent {sender}. `readyroom agents --retired` shows all of them.")


def _show(rows: list[dict[str, Any]], empty: str, as_json: bool) -> None:
    screen = Screen(as_json=as_json)
    if as_json:
        return screen.json({"messages": rows})
    for row in rows:
        screen.message(row)
    if not rows:
        screen.line(empty)


@app.command()
def tail(
    room: Annotated[
        str | None, typer.Argument(help="Only this room; all of mine when left out.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON document a line and message.")] = False,
) -> None:
    """Follow what others say, as it comes, until Ctrl-C. Marks nothing as read."""
    screen = Screen(as_json=as_json)
    try:
        ask(lambda record: _follow(record, room, screen))
    except KeyboardInterrupt:
        return


async def _follow(record: Record, room: str | None, screen: Screen) -> None:
    if room is not None:
        await record.history(room, limit=1)  # says what is wrong with a room that cannot be followed
    cursor = (await record.feed("newest"))["next_cursor"]
    sys.stderr.write(f"Following {inert(room or 'my rooms')}; Ctrl-C ends it.\n")
    sys.stderr.flush()
    while True:
        try:
            answer = await record.feed(cursor, wait_seconds=WAIT_SECONDS)
        except RecordUnreachable as lost:
            sys.stderr.write(f"readyroom: {inert(lost.detail)} Still trying.\n")
            await asyncio.sleep(PAUSE_SECONDS)
            continue
        for one in answer["messages"]:
            if room in (None, one["room"]):
                screen.json(one) if screen.as_json else screen.message(one)
        screen.flush()
        cursor = answer["next_cursor"]


@app.command()
def export(
    room: Room,
    format_: Annotated[
        Format, typer.Option("--format", help="Markdown to read, or a JSON document a line and message.")
    ] = Format.md,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format jsonl.")] = False,
) -> None:
    """Write all that was said in a room, oldest first, to standard output. Marks nothing as read."""
    jsonl = as_json or format_ is Format.jsonl
    ask(lambda record: exported(record, room, sys.stdout, jsonl=jsonl))
