"""A session of Codex that belongs to a Readyroom, in a room."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from notifier.programs.codex import PROGRAM
from notifier.programs.codex_setup import RULES, RULES_FILE, for_session
from tests.real.model import Model
from tests.real.office import Office
from tests.real.session import Session, handles, new_handle
from tests.real.shell import exported, make_folders, put_on_path
from tests.real.terminal import Terminal, opened

PROMPT = "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "
"""What its composer shows before a line."""
EMPTY = f"{PROMPT}Ask Codex to do anything"
DIALOG = "Would you like to run the following command?"
FIRST = "good morning"
"""The first prompt of each session: Codex calls no hook before it."""
CATCHUP_KEYS = f"\x1b[200~{PROGRAM.catchup}\x1b[201~\r".encode()
"""All that is ever typed: the line as one paste, and Enter."""
_SAID_BY_TERMINAL = re.compile(rb"\x1b\[[\d;?>]*[cRuIO]|\x1b[P\]].*?(?:\x1b\\|\x07)|\x1b\[[IO]", re.DOTALL)

Way = Literal["run", "tmux"]
"""How it was started: by `readyroom run`, or with the same hooks and a server of its own but without it."""


@dataclass(frozen=True)
class Codex:
    """One session of the program in a terminal.

    Attributes:
        home: the user's home folder; `.codex` in it is Codex's.
        typed_log: a copy of every byte that was typed at the program.
    """

    home: Path
    typed_log: Path
    terminal: Terminal

    @property
    def project(self) -> Path:
        """Where it was started."""
        return self.home / "project"

    def typed(self) -> bytes:
        """Every byte that has reached its input, but for what a terminal says by itself."""
        return _SAID_BY_TERMINAL.sub(b"", self.typed_log.read_bytes())

    def prompt(self, text: str) -> None:
        """Give the program a line as a human does."""
        self.draft(text)
        self.terminal.press("Enter")

    def draft(self, text: str) -> None:
        """Type a line into the composer and leave it there."""
        self.terminal.until_shown(EMPTY)
        self.terminal.type(text)
        self.terminal.until_shown(PROMPT + text)


CodexSession = Session[Codex]


@contextmanager
def started(
    program: Path, model: Model, folder: Path, command: Sequence[str], env: Mapping[str, str]
) -> Iterator[Codex]:
    """Run the program, or a command that runs it; several may share one home and one project."""
    home, place = folder / "home", folder / f"s{len(list(folder.glob('s*')))}"
    place.mkdir()
    found_in = place / "bin"
    shell = {
        **exported(home, found_in=found_in),
        "CODEX_HOME": str(home / ".codex"),
        "OPENAI_API_KEY": "made-up",
        **env,
    }
    _move_in(home, model)
    put_on_path(found_in, program, name="codex", typed=place / "typed")
    with opened(place, command, env=shell, cwd=home / "project") as terminal:
        yield Codex(home, place / "typed", terminal)


@contextmanager
def seated(
    office: Office,
    program: Path,
    model: Model,
    folder: Path,
    *,
    room: str,
    way: Way = "run",
    rung: str = "native",
    arguments: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> Iterator[CodexSession]:
    """A session in a room, idle after its first turn, which is woken by that rung first."""
    office.start_elsewhere(room)
    before = handles(office)
    run = ("readyroom", "run", "--room", room, "--", "codex", *arguments)
    command = run if way == "run" else for_session(("codex", *arguments))
    with started(program, model, folder, command, {**office.here, **(env or {})}) as codex:
        codex.prompt(FIRST)
        agent = new_handle(office, before)
        if way == "tmux":
            office.join(agent, room)
        session = Session(codex, model, office, agent, room)
        session.until_row(state="idle", rung=rung)
        codex.terminal.until_shown(EMPTY)
        yield session


def _move_in(home: Path, model: Model) -> None:
    """Codex's folder with what docs/howto/codex.md says."""
    make_folders(home, ".codex/rules")
    (home / ".codex" / "config.toml").write_text(_config(home, model), encoding="utf-8")
    profile = f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH\n"
    (home / ".profile").write_text(profile, encoding="utf-8")  # it runs commands in a login shell
    (home / ".codex" / RULES_FILE).write_text(RULES, encoding="utf-8")


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
