"""How a command of the program ends: exit status 0, 1 (failed) or 2 (wrong usage), errors in plain words."""

from __future__ import annotations

import json
import sys

import typer

from notifier.record import RecordError
from notifier.settings import SettingsError
from readyroom.commands import in_commands
from readyroom.screen import inert
from readyroom.streams import let_go_of_output


class WrongUsageError(Exception):
    """The command was called in a way that cannot work; the text says how it can."""


class CommandFailed(Exception):
    """The command came to nothing; the text says what to do."""


def enter(app: typer.Typer, argv: list[str], *, name: str = "readyroom") -> int:
    """Run one command line and return its exit status. Never shows a traceback for a foreseen failure."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        app(args=argv, prog_name=name)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except RecordError as error:
        _tell(error.code, in_commands(error), as_json="--json" in argv)
        return 1
    except SettingsError as error:
        _tell("settings", str(error), as_json="--json" in argv)
        return 1
    except WrongUsageError as error:
        _tell("usage", str(error), as_json="--json" in argv)
        return 2
    except CommandFailed as error:
        _tell("failed", str(error), as_json="--json" in argv)
        return 1
    except OSError as error:
        let_go_of_output()
        where, what = error.filename or "standard output", error.strerror or str(error)
        _tell("output", f"{where}: {what.lower()}.", as_json="--json" in argv)
        return 1
    return 0


def _tell(code: str, detail: str, *, as_json: bool) -> None:
    text = json.dumps({"code": code, "detail": detail}) if as_json else f"readyroom: {inert(detail)}"
    sys.stderr.write(f"{text}\n")
