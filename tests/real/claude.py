"""Claude Code as a newcomer's machine would run it, with a made-up key and every first question answered."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.real.model import Model
from tests.real.shell import exported, make_folders, put_on_path
from tests.real.terminal import Terminal, opened
from tests.real.waiting import until

KEY = "sk-ant-" + "made-up-" * 5
PROMPT = "\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT} "
"""What its composer shows before a line."""
_SAID_BY_TERMINAL = re.compile(rb"\x1b\[\?[\d;]*c|\x1bP.*?\x1b\\")
"""What it is and which version, when a program asks."""
MANUAL: dict[str, dict[str, Any]] = {"permissions": {"defaultMode": "default"}}
"""Ask before a command is run; the program's own default lets a model decide."""


@dataclass(frozen=True)
class Home:
    """A user of the program: a home folder, a project in it, and the environment of a shell there."""

    path: Path
    env: dict[str, str]

    @property
    def project(self) -> Path:
        """Where the program is started."""
        return self.path / "project"

    @property
    def typed(self) -> Path:
        """A copy of every byte that was typed at the program."""
        return self.path / "typed"

    def write(self, name: str, text: str) -> None:
        """Put a file into the program's own folder."""
        file = self.path / ".claude" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def moved_in(path: Path, program: Path, model: Model, **env: str) -> Home:
    """A home where `claude` is found, talks to the stand-in, asks nothing at its start and calls nobody."""
    home = Home(path, {**exported(path, found_in=path / "bin"), **_program(path, model), **env})
    make_folders(path)
    home.write("settings.json", json.dumps(MANUAL))
    (path / ".claude.json").write_text(json.dumps(_answered(home)), encoding="utf-8")
    put_on_path(path / "bin", program, name="claude", typed=home.typed)
    return home


@dataclass(frozen=True)
class Claude:
    """One session of the program in a terminal."""

    home: Home
    terminal: Terminal

    def status(self) -> str | None:
        """What the program says of itself: `idle`, `busy`, `waiting`; None before it says anything."""
        kept = self._registry()
        return None if kept is None else kept.get("status")

    def typed(self) -> bytes:
        """Every byte that has reached the program's input, but for what a terminal says by itself."""
        return _SAID_BY_TERMINAL.sub(b"", self.home.typed.read_bytes())

    def until_status(self, status: str) -> None:
        """Wait until the program says so."""
        until(
            lambda: self.status() == status,
            lambda: f"{status}, not {self.status()}:\n{self.terminal.screen()}",
        )

    def prompt(self, text: str) -> None:
        """Give the program a line as a human does, once it is idle."""
        self.until_status("idle")
        self.draft(text)
        self.terminal.press("Enter")

    def draft(self, text: str) -> None:
        """Type a line into the composer and leave it there."""
        self.terminal.type(text)
        self.terminal.until_shown(PROMPT + text)

    def dialog(self) -> str:
        """What the open dialog shows, from its title on."""
        return self.terminal.screen().rpartition("\n Bash command")[2]

    def answer(self, key: str) -> None:
        """Close the open dialog with a key; one that comes too soon after it opened is lost on it."""
        self.until_status("waiting")
        until(lambda: self._closes(key), lambda: f"the dialog's end:\n{self.terminal.screen()}")

    def _closes(self, key: str) -> bool:
        self.terminal.press(key)
        end = time.monotonic() + 1
        while self.status() == "waiting" and time.monotonic() < end:
            time.sleep(0.02)
        return self.status() != "waiting"

    def _registry(self) -> dict[str, Any] | None:
        for file in (self.home.path / ".claude" / "sessions").glob("*.json"):
            try:
                kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            except (OSError, ValueError):  # it is being written
                return None
            return kept
        return None


@contextmanager
def started(
    home: Home, command: Sequence[str] = ("claude",), *, folder: Path | None = None
) -> Iterator[Claude]:
    """Run the program, or a command that runs it, until the block ends; its terminal is kept in `folder`."""
    with opened(folder or home.path, command, env=home.env, cwd=home.project) as terminal:
        claude = Claude(home, terminal)
        claude.until_status("idle")
        yield claude


def _program(path: Path, model: Model) -> dict[str, str]:
    """Calls to anywhere but the stand-in would come to it as to a proxy, and are held against the program."""
    return {
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": KEY,
        "HTTP_PROXY": model.url,
        "HTTPS_PROXY": model.url,
        "NO_PROXY": "127.0.0.1",
        "CLAUDE_CODE_TMPDIR": str(path / "tmp"),
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
    }


def _answered(home: Home) -> dict[str, Any]:
    """The program's questions at its first start: look and login, the key, the folder, the mode."""
    return {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
        "projects": {str(home.project): {"hasTrustDialogAccepted": True}},
        "hasSeenAutoDefaultNotice": True,
        "hasSeenAutoDefaultNudge": True,
    }
