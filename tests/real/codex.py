"""A session of Codex that belongs to a Readyroom: started by `readyroom run`, in a room."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from notifier.programs.codex_setup import RULES, RULES_FILE
from tests.real.model import Model
from tests.real.office import Office
from tests.real.terminal import Terminal, opened
from tests.real.waiting import until

PROMPT = "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "
"""What its composer shows before a line."""
EMPTY = f"{PROMPT}Ask Codex to do anything"
DIALOG = "Would you like to run the following command?"
FIRST = "good morning"
"""The first prompt of each session: Codex calls no hook before it."""
_SAID_BY_TERMINAL = re.compile(rb"\x1b\[[\d;?>]*[cRuIO]|\x1b[P\]].*?(?:\x1b\\|\x07)|\x1b\[[IO]", re.DOTALL)


@dataclass(frozen=True)
class Codex:
    """One session, and all that it touches.

    Attributes:
        home: the user's home folder; `.codex` in it is Codex's.
        typed_log: a copy of every byte that was typed at the program.
        agent: its handle.
        room: the room that it is in.
    """

    home: Path
    typed_log: Path
    terminal: Terminal
    office: Office
    model: Model
    agent: str
    room: str

    @property
    def project(self) -> Path:
        """Where it was started."""
        return self.home / "project"

    def typed(self) -> bytes:
        """Every byte that has reached its input, but for what a terminal says by itself."""
        return _SAID_BY_TERMINAL.sub(b"", self.typed_log.read_bytes())

    def row(self) -> dict[str, Any]:
        """What the notifier knows of it."""
        return self.office.session(self.agent)

    def until_row(self, **facts: object) -> None:
        """Wait until the notifier knows all these facts."""
        until(
            lambda: facts.items() <= self.row().items(), lambda: f"{facts}, not {self.row()}\n{self.scene()}"
        )

    def until_shown(self, body: str, *, seconds: float = 40) -> None:
        """Wait until the model has been shown a message's text as the result of its own poll."""
        until(lambda: self.model.was_shown(f"> {body}"), lambda: f"{body!r}\n{self.scene()}", seconds=seconds)

    def prompt(self, text: str) -> None:
        """Give the program a line as a human does."""
        self.draft(text)
        self.terminal.press("Enter")

    def draft(self, text: str) -> None:
        """Type a line into the composer and leave it there."""
        self.terminal.until_shown(EMPTY)
        self.terminal.type(text)
        self.terminal.until_shown(PROMPT + text)

    def scene(self) -> str:
        """What a failure is understood by."""
        return f"{self.terminal.screen()}\n{self.office.log()}\n{self.model.heard[-3:]}"


@contextmanager
def seated(
    office: Office, program: Path, model: Model, folder: Path, *, room: str, **env: str
) -> Iterator[Codex]:
    """A session in a room, idle after its first turn; several may share one home and one project."""
    home, name = folder / "home", f"s{len(list(folder.glob('s*')))}"
    place = folder / name
    place.mkdir()
    shell = {**_shell(home, place), **office.here, **env}
    _move_in(home, place, program, model)
    office.start_elsewhere(room)
    before = {row["agent"] for row in office.sessions()}
    command = ("readyroom", "run", "--new", "--room", room, "--", "codex")
    with opened(place, command, env=shell, cwd=home / "project") as terminal:
        terminal.until_shown(EMPTY)
        until(lambda: {row["agent"] for row in office.sessions()} - before, office.log)
        (agent,) = {row["agent"] for row in office.sessions()} - before
        codex = Codex(home, place / "typed", terminal, office, model, agent, room)
        codex.prompt(FIRST)
        codex.until_row(state="idle", rung="native")
        terminal.until_shown(EMPTY)
        yield codex


def _shell(home: Path, place: Path) -> dict[str, str]:
    places = (str(place / "bin"), str(Path(sys.executable).parent), os.environ["PATH"])
    return {
        "HOME": str(home),
        "CODEX_HOME": str(home / ".codex"),
        "XDG_RUNTIME_DIR": str(home / "run"),
        "TMPDIR": str(home / "tmp"),
        "PATH": os.pathsep.join(places),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "SHELL": "/bin/bash",
        "OPENAI_API_KEY": "made-up",
    }


def _move_in(home: Path, place: Path, program: Path, model: Model) -> None:
    """Codex's folder with what docs/howto/codex.md says, and a command `codex` whose typed bytes are kept."""
    for private in ("run", "tmp", ".codex/rules", "project"):
        (home / private).mkdir(mode=0o700, parents=True, exist_ok=True)
    (home / ".codex" / "config.toml").write_text(_config(home, model), encoding="utf-8")
    profile = f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH\n"
    (home / ".profile").write_text(profile, encoding="utf-8")  # it runs commands in a login shell
    (home / ".codex" / RULES_FILE).write_text(RULES, encoding="utf-8")
    counted = (sys.executable, "-I", str(Path(__file__).with_name("counted.py")), str(place / "typed"))
    command = place / "bin" / "codex"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.join([*counted, str(program)])} "$@"\n', encoding="utf-8")
    command.chmod(0o700)


def _config(home: Path, model: Model) -> str:
    return f"""\
model = "stand-in"
model_provider = "here"
approval_policy = "on-request"
sandbox_mode = "read-only"
check_for_update_on_startup = false

[model_providers.here]
name = "here"
base_url = {json.dumps(f"{model.url}/v1")}
env_key = "OPENAI_API_KEY"
wire_api = "responses"

[projects.{json.dumps(str(home / "project"))}]
trust_level = "trusted"
"""
