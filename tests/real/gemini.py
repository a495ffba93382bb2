"""A session of Gemini CLI that belongs to a Readyroom, in a room."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from notifier.programs.gemini import PROGRAM
from notifier.programs.gemini_setup import EXTENSION_FOLDER, RULES, RULES_FILE, extension_files
from notifier.terminals.composer import Screen, composed, same_text
from tests.real.model import Model
from tests.real.need import need
from tests.real.office import Office
from tests.real.session import Session, handles, new_handle
from tests.real.shell import exported, make_folders, put_on_path
from tests.real.terminal import Terminal, opened, tmux
from tests.real.waiting import until

PROMPT = " > "
"""What its composer shows before a line."""
EMPTY = f"{PROMPT}  Type your message or @path/to/file"
AFTER_KEY_SECONDS = 0.1
DIALOG = "Allow execution of"
CATCHUP_KEYS = f"\x1b[200~{PROGRAM.catchup}\x1b[201~\r".encode()
"""All that is ever typed: the line as one paste, and Enter."""
_SAID_BY_TERMINAL = re.compile(
    rb"\x1b\[[\d;?>]*[cRuyIOt]|\x1b[P\]].*?(?:\x1b\\|\x07)|\x1b\[[IO]|\x1b\[\?\d+u|\x1b\[>\d*;?\d*m",
    re.DOTALL,
)

Way = Literal["run", "tmux"]
"""How it was started: by `readyroom run`, or plainly."""


@dataclass(frozen=True)
class Gemini:
    """One session of the program in a terminal.

    Attributes:
        home: the user's home folder; `.gemini` in it is Gemini CLI's.
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
        until(lambda: self._sends(text), lambda: f"{text!r} to be sent:\n{self.terminal.screen()}")

    def draft(self, text: str) -> None:
        """Type a line into the composer and leave it there."""
        self.terminal.until_shown(EMPTY)
        self.terminal.type(text)
        self.terminal.until_shown(PROMPT + text)

    def leave(self) -> None:
        """Have another window in front: the program is told so, and draws no cursor."""
        tmux(self.terminal.socket, "send-keys", "-l", "\x1b[O")
        until(lambda: b"\x1b[O" in self.typed_log.read_bytes(), "the word to arrive")
        until(lambda: not self._has_block(), lambda: f"no cursor:\n{self.terminal.screen()}")

    def _has_block(self) -> bool:
        return "\x1b[7m" in tmux(self.terminal.socket, "capture-pane", "-p", "-e")

    def _sends(self, text: str) -> bool:
        """Press Enter; one that comes too soon makes a new line, or takes up what a menu suggests."""
        time.sleep(AFTER_KEY_SECONDS)
        self.terminal.press("Enter")
        end = time.monotonic() + 2
        while self._holds(text) and time.monotonic() < end:
            time.sleep(0.02)
        return not self._holds(text)

    def _holds(self, text: str) -> bool:
        socket = self.terminal.socket
        column, row = map(int, tmux(socket, "display-message", "-p", "#{cursor_x} #{cursor_y}").split())
        shown = tmux(socket, "capture-pane", "-p", "-e")
        return same_text(composed(Screen.read(shown, column=column, row=row), "gemini"), text)


GeminiSession = Session[Gemini]


@contextmanager
def started(
    program: Path,
    model: Model,
    folder: Path,
    command: Sequence[str] = ("gemini",),
    env: Mapping[str, str] | None = None,
    *,
    settings: Mapping[str, object] | None = None,
    trusted: bool = True,
) -> Iterator[Gemini]:
    """Run the program, or a command that runs it; several may share one home and one project."""
    home, place = folder / "home", folder / f"s{len(list(folder.glob('s*')))}"
    place.mkdir()
    found_in = place / "bin"
    shell = {**exported(home, found_in=found_in), **_variables(model), **(env or {})}
    _move_in(home, settings or {}, trusted=trusted)
    put_on_path(found_in, Path(need("node")), str(program), name="gemini", typed=place / "typed")
    with opened(place, command, env=shell, cwd=home / "project") as terminal:
        yield Gemini(home, place / "typed", terminal)


@contextmanager
def seated(
    office: Office,
    program: Path,
    model: Model,
    folder: Path,
    *,
    room: str,
    way: Way = "run",
    arguments: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    settings: Mapping[str, object] | None = None,
    empty: str = EMPTY,
) -> Iterator[GeminiSession]:
    """A session in a room, idle at its start."""
    office.start_elsewhere(room)
    before = handles(office)
    run = ("readyroom", "run", "--room", room, "--", "gemini", *arguments)
    command = run if way == "run" else ("gemini", *arguments)
    here = {**office.here, **(env or {})}
    with started(program, model, folder, command, here, settings=settings) as gemini:
        agent = new_handle(office, before)
        if way == "tmux":
            office.join(agent, room)
        session = Session(gemini, model, office, agent, room)
        session.until_row(state="idle", rung="pty" if way == "run" else "tmux")
        gemini.terminal.until_shown(empty)
        yield session


def _variables(model: Model) -> dict[str, str]:
    """Calls to anywhere but the stand-in would come to it as to a proxy, and are held against the program."""
    return {
        "GOOGLE_GEMINI_BASE_URL": model.url,
        "GEMINI_API_KEY": "made-up",
        "HTTP_PROXY": model.url,
        "HTTPS_PROXY": model.url,
        "NO_PROXY": "127.0.0.1",
        "COLORTERM": "truecolor",
    }


def _move_in(home: Path, settings: Mapping[str, object], *, trusted: bool) -> None:
    """Gemini CLI's folder with what docs/howto/gemini.md says, and its first questions answered."""
    make_folders(home, ".gemini/policies")
    ours = home / ".gemini"
    given = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "privacy": {"usageStatisticsEnabled": False},
        "model": {"name": "gemini-2.5-flash"},
        **settings,
    }
    (ours / "settings.json").write_text(json.dumps(given), encoding="utf-8")
    (ours / RULES_FILE).write_text(RULES, encoding="utf-8")
    trust = {str(home / "project"): "TRUST_FOLDER"} if trusted else {}
    (ours / "trustedFolders.json").write_text(json.dumps(trust), encoding="utf-8")
    for name, text in extension_files().items():
        file = ours / EXTENSION_FOLDER / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
