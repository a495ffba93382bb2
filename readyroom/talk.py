"""Commands for agents and people: say, send, poll, rooms, start, join, leave, who, agents, history."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from notifier.record import Record
from readyroom.body import read_body, read_payload
from readyroom.entrance import WrongUsageError, enter
from readyroom.screen import Screen, moment
from readyroom.speaker import ask

POLL_BYTES = 32 * 1024

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)

ROOM_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?")


def room_name(given: str) -> str:
    """A room's name, seen to be one before it becomes part of a URL.

    Raises:
        WrongUsageError: it breaks the grammar.
    """
    if not ROOM_NAME.fullmatch(given):
        raise WrongUsageError(
            f"{given!r} is no name of a room: 1 to 64 of a-z, 0-9, '.', '_' and '-', beginning and ending "
            "with a letter or digit."
        )
    return given


Room = Annotated[str, typer.Argument(help="The room's name.", show_default=False, callback=room_name)]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON, one document.")]
Backfill = Annotated[
    str | None,
    typer.Option(
        help="How many earlier messages are unread to you after joining: a number (20), all or none."
    ),
]


def main(argv: list[str]) -> int:
    """Run one of the commands; `argv[0]` is its name."""
    return enter(app, argv)


Body = Annotated[
    str | None, typer.Argument(help="The text; - or nothing reads standard input.", show_default=False)
]
Type = Annotated[
    str | None, typer.Option("--type", help="What it is, such as task.request; note when left out.")
]
ReplyTo = Annotated[int | None, typer.Option(help="The id of the message that it answers.")]
ClientId = Annotated[str | None, typer.Option(help="Your own id: said twice, stored once.")]
Urgent = Annotated[bool, typer.Option("--urgent", help="Wake even where a message would be quiet.")]
Ttl = Annotated[float | None, typer.Option(help="Seconds until it is no longer delivered.")]
PayloadFile = Annotated[
    Path | None, typer.Option(help="A file with the payload, a JSON object. Its summary can be the text.")
]


@app.command()
def say(
    room: Room,
    body: Body = None,
    to: Annotated[str | None, typer.Option(help="Whom in the room it is for.")] = None,
    type_: Type = None,
    reply_to: ReplyTo = None,
    client_id: ClientId = None,
    urgent: Urgent = False,
    ttl: Ttl = None,
    payload_file: PayloadFile = None,
    as_json: AsJson = False,
) -> None:
    """Say something in a room that you are in.

    Prefer standard input: other users of the machine can read arguments in its process list.
    """
    text, payload = _content(body, payload_file)
    fields = _fields(to=to, type_=type_, reply_to=reply_to, client_id=client_id, urgent=urgent, ttl=ttl)
    _stored(ask(lambda record: record.say(room, text, payload=payload, **fields)), as_json)


@app.command()
def send(
    to: Annotated[
        str,
        typer.Argument(help="A session, label, role, box, person or everyone.", show_default=False),
    ],
    body: Body = None,
    type_: Type = None,
    reply_to: ReplyTo = None,
    client_id: ClientId = None,
    urgent: Urgent = False,
    ttl: Ttl = None,
    payload_file: PayloadFile = None,
    as_json: AsJson = False,
) -> None:
    """Write to an address, outside any room. Who comes later under a label or role is told, too.

    Prefer standard input: other users of the machine can read arguments in its process list.
    """
    text, payload = _content(body, payload_file)
    fields = _fields(to=None, type_=type_, reply_to=reply_to, client_id=client_id, urgent=urgent, ttl=ttl)
    _stored(ask(lambda record: record.send(to, text, payload=payload, **fields)), as_json)


def _content(body: str | None, payload_file: Path | None) -> tuple[str | None, dict[str, Any] | None]:
    """The text and the payload; a payload with a summary needs no text."""
    if payload_file is None:
        return read_body(body), None
    payload = read_payload(payload_file)
    return (None if body is None and "summary" in payload else read_body(body)), payload


def _fields(
    *,
    to: str | None,
    type_: str | None,
    reply_to: int | None,
    client_id: str | None,
    urgent: bool,
    ttl: float | None,
) -> dict[str, Any]:
    return {
        "type": type_,
        "in_reply_to": reply_to,
        "client_id": client_id,
        "urgent": urgent or None,
        "ttl_seconds": ttl,
        **({} if to is None else {"to": to}),
    }


def _stored(answer: dict[str, Any], as_json: bool) -> None:
    screen = Screen(as_json=as_json)
    if as_json:
        return screen.json(answer)
    readers = [f"{one['agent']} ({one['state']})" for one in answer["receipt"]["accepted"]]
    message = answer["message"]
    screen.line(f"#{message['id']} is in {message['room']}. {_waits(message['room'], readers)}")


def _waits(room: str, readers: list[str]) -> str:
    """For whom. Whoever answers to an address, and has not retired, is in its room."""
    if readers:
        return f"It waits for: {', '.join(readers)}."
    if room.startswith("@") and room != "@everyone":
        return (
            f"All who answer to {room[1:]} have retired, so nobody reads it now. "
            "When nobody can any more, `readyroom undelivered` has it."
        )
    return "It waits for: nobody yet."


@app.command()
def poll(
    wait: Annotated[float, typer.Option(min=0, max=50, help="Seconds to wait for something to arrive.")] = 0,
    limit: Annotated[int | None, typer.Option(min=1, max=1000, help="At most so many messages.")] = None,
    as_json: AsJson = False,
) -> None:
    """Read what is unread, oldest first. Each message is handed over once.

    It counts as read when it has been printed: what a crash interrupts comes again, marked.
    """
    screen = Screen(as_json=as_json)

    async def read(record: Record) -> None:
        batch = await record.poll(max_bytes=POLL_BYTES, wait_seconds=wait, limit=limit)
        screen.json(batch) if as_json else _show(screen, batch)
        screen.flush()
        if batch["lease"] is not None:
            await record.ack(batch["lease"])

    ask(read)


def _show(screen: Screen, batch: dict[str, Any]) -> None:
    for message in (message for room in batch["rooms"] for message in room["messages"]):
        screen.message(message)
    if not batch["count"]:
        screen.line(f"Nothing is unread for {batch['agent']}.")
    elif batch["more"]:
        screen.line(f"{batch['unread_left']} more unread, up to #{batch['newest_id']}. Poll again.", "bold")


@app.command()
def rooms(
    everywhere: Annotated[bool, typer.Option("--all", help="Every room of the realm.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show my rooms with what is unread in them."""
    rows = ask(lambda record: record.rooms(everywhere=everywhere))
    screen = Screen(as_json=as_json)
    if as_json:
        return screen.json({"rooms": rows})
    table = [
        (
            row["room"],
            row["unread"],
            row["members"],
            moment(row["last_message_at"]),
            "" if row["member"] else "no",
            row["title"],
        )
        for row in rows
    ]
    columns = ("room", "unread", "members", "last message", "member", "title")
    screen.table(columns, table, empty="You are in no room. `readyroom rooms --all` shows every room.")


@app.command()
def start(
    room: Room,
    title: Annotated[str | None, typer.Option(help="One line: what the room is for.")] = None,
    backfill: Backfill = None,
    as_json: AsJson = False,
) -> None:
    """Start a room, or join it when it exists."""
    earlier = _backfill(backfill)
    _joined(ask(lambda record: record.start(room, title=title, backfill=earlier)), as_json)


@app.command()
def join(room: Room, backfill: Backfill = None, as_json: AsJson = False) -> None:
    """Join a room. Joining again changes nothing."""
    earlier = _backfill(backfill)
    _joined(ask(lambda record: record.join(room, backfill=earlier)), as_json)


def _backfill(value: str | None) -> int | Literal["none", "all"] | None:
    match value:
        case None | "none" | "all":
            return value
        case _ if value.isdecimal():
            return int(value)
    raise WrongUsageError(f"--backfill is a number, all or none, not {value!r}.")


def _joined(answer: dict[str, Any], as_json: bool) -> None:
    screen = Screen(as_json=as_json)
    if as_json:
        return screen.json(answer)
    screen.line(f"You are in {answer['room']}; {answer['unread']} unread.")


@app.command()
def leave(room: Room, as_json: AsJson = False) -> None:
    """Leave a room."""
    ask(lambda record: record.leave(room))
    screen = Screen(as_json=as_json)
    screen.json({}) if as_json else screen.line(f"You left {room}.")


@app.command()
def who(room: Room, as_json: AsJson = False) -> None:
    """Show who is in a room, in what state, and how far each has read."""
    rows = ask(lambda record: record.members(room))
    screen = Screen(as_json=as_json)
    if as_json:
        return screen.json({"members": rows})
    table = [(_you(row), row["kind"], _state(row), row["last_read_id"], row["unread"]) for row in rows]
    screen.table(("agent", "kind", "state", "read up to", "unread"), table, empty=f"Nobody is in {room}.")


@app.command()
def agents(
    retired: Annotated[bool, typer.Option("--retired", help="Also those that are gone for good.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show everyone who can be written to."""
    rows = ask(lambda record: record.agents(retired=retired))
    screen = Screen(as_json=as_json)
    if as_json:
        return screen.json({"agents": rows})
    table = [
        (_you(row), row["kind"], _state(row), row.get("harness"), row.get("cwd"), moment(row["last_seen"]))
        for row in rows
    ]
    screen.table(("agent", "kind", "state", "program", "folder", "last seen"), table, empty="Nobody is here.")


def _state(row: dict[str, Any]) -> str:
    return f"{row['state']}, two processes" if row.get("doubled") else str(row["state"])


def _you(row: dict[str, Any]) -> str:
    return f"{row['agent']} (you)" if row.get("you") else str(row["agent"])


@app.command()
def history(
    room: Room,
    before: Annotated[int | None, typer.Option(help="Only messages with a smaller id.")] = None,
    after: Annotated[int | None, typer.Option(help="Only messages with a greater id.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, max=1000, help="The newest so many.")] = None,
    thread: Annotated[str | None, typer.Option(help="Only this thread.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what was said in a room, oldest first. Marks nothing as read."""
    rows = ask(lambda record: record.history(room, before=before, after=after, limit=limit, thread_id=thread))
    screen = Screen(as_json=as_json)
    if as_json:
        return screen.json({"messages": rows})
    for message in rows:
        screen.message(message)
    if not rows:
        screen.line(f"Nothing was said in {room}.")
