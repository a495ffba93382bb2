"""`readyroom setup`: writes our part of an agent program's settings, once it was shown, or takes it out."""

from __future__ import annotations

import difflib
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from notifier.programs import claude_setup, codex_setup, gemini_setup
from readyroom.changes import Change, own_file, settings_file
from readyroom.entrance import WrongUsageError, enter
from readyroom.screen import Screen

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

Program = Literal["claude-code", "codex", "gemini"]

STYLES = {"+": "green", "-": "red", "@": "cyan"}
START = {"claude-code": "claude", "codex": "codex", "gemini": "gemini"}


def main(argv: list[str]) -> int:
    """Set up; 1 when that fails."""
    return enter(app, argv[1:], name="readyroom setup")


@app.command()
def setup(
    program: Annotated[Program, typer.Argument(help="The agent program.", show_default=False)],
    remove: Annotated[bool, typer.Option("--remove", help="Take our entries out, and nothing else.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the changes; write nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Write hooks, the command /catchup and the leave to read and answer into an agent program's settings.

    Gemini CLI gets an extension. Codex gets its hooks from `readyroom run`, and only the leave from here.

    The changes are shown first, as a diff, and a person is asked. What stands there stays; done twice, it
    changes nothing. A file that cannot be read as what it should be is left alone.
    """
    screen = Screen(as_json=False)
    changes = [change for change in planned(program, remove=remove) if change.before != change.after]
    if not changes:
        screen.line(f"Nothing to do: {program} {'has nothing of ours' if remove else 'is set up'}.")
        return
    for change in changes:
        _show(screen, change)
    if dry_run or not (yes or _is_wanted()):
        screen.line("Nothing is written.")
        return
    for change in changes:
        change.make()
    screen.line(f"Done: {', '.join(str(change.path) for change in changes)}", "bold green")
    if not remove:
        _say_how_to_start(screen, program)


def planned(program: Program, *, remove: bool) -> list[Change]:
    """What would change in this user's files.

    Raises:
        CommandFailed: a file there is not what it should be.
    """
    match program:
        case "claude-code":
            folder = _folder("CLAUDE_CONFIG_DIR", ".claude")
            return [
                settings_file(
                    folder / "settings.json",
                    hooks=claude_setup.hook_settings(_command())["hooks"],
                    is_ours=claude_setup.is_our_hook,
                    allow=claude_setup.ALLOW,
                    remove=remove,
                ),
                own_file(folder / claude_setup.CATCHUP_FILE, claude_setup.CATCHUP, remove=remove),
            ]
        case "codex":
            folder = _folder("CODEX_HOME", ".codex")
            return [own_file(folder / codex_setup.RULES_FILE, codex_setup.RULES, remove=remove)]
        case "gemini":
            folder = _folder("GEMINI_CLI_HOME", "") / ".gemini"
            extension = folder / gemini_setup.EXTENSION_FOLDER
            files = gemini_setup.extension_files(_command())
            return [
                own_file(folder / gemini_setup.RULES_FILE, gemini_setup.RULES, remove=remove),
                *(
                    own_file(extension / path, files[path], remove=remove)
                    for path in sorted(files, reverse=True)
                ),
            ]


def _folder(variable: str, usual: str) -> Path:
    given = os.environ.get(variable, "").strip()
    return Path(given).expanduser() if given else Path.home() / usual


def _command() -> str:
    """How a hook calls us: by name where that is found, else by our own path."""
    beside = Path(sys.executable).with_name("readyroom")
    if shutil.which("readyroom") or not beside.exists():
        return "readyroom"
    return shlex.quote(str(beside))


def _show(screen: Screen, change: Change) -> None:
    before, after = ((text or "").splitlines() for text in (change.before, change.after))
    was, will = (
        str(change.path) if text is not None else "/dev/null" for text in (change.before, change.after)
    )
    for line in difflib.unified_diff(before, after, was, will, lineterm=""):
        screen.line(line, "bold" if line.startswith(("+++", "---")) else STYLES.get(line[:1], ""))


def _is_wanted() -> bool:
    """Ask.

    Raises:
        WrongUsageError: nobody is there to ask.
    """
    if not sys.stdin.isatty():
        raise WrongUsageError("Nobody is there to ask. --yes writes it, --dry-run only shows it.")
    return typer.confirm("Write this?", default=False)


def _say_how_to_start(screen: Screen, program: Program) -> None:
    if shutil.which("readyroom") is None:
        beside = Path(sys.executable).with_name("readyroom")
        screen.line(
            f"readyroom is not on PATH, where agents look for it: ln -s {beside} ~/.local/bin/", "yellow"
        )
    if shutil.which(START[program]) is None:
        screen.line(f"{START[program]} is not on PATH here.", "yellow")
    screen.line(f"Sessions that run keep their old settings. Start one: readyroom run -- {START[program]}")
