"""`readyroom status`: what this box's notifier knows of its sessions."""

from __future__ import annotations

import json
import os
import sys
from typing import Annotated, Any

import typer

from notifier.control.client import Control
from notifier.errors import NotRunning
from notifier.paths import control_socket, runtime_dir
from readyroom.entrance import enter
from readyroom.screen import Screen

ANSWER_SECONDS = 5.0
COLUMNS = ("AGENT", "PROGRAM", "STATE", "UNREAD", "RUNG", "LAST WAKE", "HELD BY")

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def main(argv: list[str]) -> int:
    """Show it; 1 when no notifier runs."""
    return enter(app, argv[1:], name="readyroom status")


@app.command()
def status(
    as_json: Annotated[bool, typer.Option("--json", help="Answer in JSON, one document.")] = False,
) -> None:
    """What the notifier knows: each session's state, unread messages, last wake and its proof, and holds."""
    path = control_socket(runtime_dir(os.environ))
    try:
        with Control(path, connect_within=ANSWER_SECONDS, answer_within=ANSWER_SECONDS) as control:
            answer = control.ask({"op": "status"})
    except (OSError, ValueError):
        _say_that_none_runs(NotRunning(path), as_json=as_json)
        raise typer.Exit(1) from None
    screen = Screen(as_json=as_json)
    if as_json:
        screen.json({"running": True, **{name: value for name, value in answer.items() if name != "ok"}})
    else:
        _show(screen, answer)


def _say_that_none_runs(error: NotRunning, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps({"running": False, "sessions": [], "detail": str(error)}) + "\n")
    else:
        sys.stderr.write(f"readyroom: {error}\n")


def _show(screen: Screen, answer: dict[str, Any]) -> None:
    screen.line(f"notifier  runs (process {answer['pid']}, version {answer.get('version') or 'unknown'})")
    for part in ("record", "nerve"):
        told = answer[part]
        screen.line(f"{part:<8}  {told['url'] or 'not known yet'}: {told['trouble'] or 'ok'}")
    screen.table(COLUMNS, map(_row, answer["sessions"]), empty="No session is known on this box.")


def _row(session: dict[str, Any]) -> tuple[object, ...]:
    wake = session["last_wake"]
    shared = f", also process {session['second_process']}" if session["second_process"] else ""
    return (
        session["agent"],
        session["program"],
        f"{session['state']}{_in_front(session)}{shared}",
        session["unread"],
        session["rung"] or "none",
        f"{wake['outcome']} ({wake['rung']}, {_ago(session['woken_seconds_ago'])})" if wake else "",
        session["hold"] or "",
    )


def _in_front(session: dict[str, Any]) -> str:
    """What keys would meet there."""
    if session["dialog"]:
        return ", a dialog is open"
    return ", a draft is typed" if session["draft"] else ""


def _ago(seconds: float) -> str:
    """How long ago, in words that fit a table."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit} ago"
    return f"{seconds // 1:.0f} s ago"
