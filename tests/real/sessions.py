"""A session of Claude Code that belongs to a Readyroom: its hooks are installed, and it sits in a room."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from notifier.programs.claude_setup import CATCHUP, CATCHUP_FILE, hook_settings
from tests.real.claude import MANUAL, Claude, Home, moved_in, started
from tests.real.model import Model
from tests.real.office import Office
from tests.real.waiting import until

Way = Literal["run", "tmux"]
"""How it was started: `readyroom run -- claude`, or just `claude`, in tmux both times."""

CATCHUP_KEYS = b"\x1b[200~/catchup\x1b[201~\r"
"""All that is ever typed: the line as one paste, and Enter."""

PERMISSIONS = {"allow": ["Bash(readyroom poll:*)", "Bash(readyroom say:*)"]}
"""What docs/howto/claude-code.md allows, besides what /catchup itself may do."""


@dataclass(frozen=True)
class Session:
    """One session, and all that it touches.

    Attributes:
        agent: its handle.
        room: the room that it is in.
    """

    claude: Claude
    model: Model
    office: Office
    agent: str
    room: str

    def row(self) -> dict[str, Any]:
        """What the notifier knows of it."""
        return self.office.session(self.agent)

    def until_row(self, **facts: object) -> None:
        """Wait until the notifier knows all these facts."""
        until(
            lambda: facts.items() <= self.row().items(),
            lambda: f"{facts}, not {self.row()}:\n{self.claude.terminal.screen()}\n{self.office.log()}",
        )

    def until_sender_is_told(self, message: dict[str, Any], why: str | None) -> None:
        """Wait until the message's receipt says why it is unread; None: that it is read."""
        told = partial(self.office.why_unread, message, self.agent)
        until(lambda: told() == why, lambda: f"{why!r}, not {told()!r}")

    def until_shown(self, body: str) -> None:
        """Wait until the model has been shown a message's text as the result of its own poll."""
        until(
            lambda: self.model.was_shown(f"> {body}"),
            lambda: f"{body!r}:\n{self.claude.terminal.screen()}\n{self.office.log()}",
        )


def at_home(office: Office, program: Path, model: Model, folder: Path, **env: str) -> Home:
    """A home that belongs to a Readyroom: the program is set up as docs/howto/claude-code.md says."""
    home = moved_in(folder / "home", program, model, **office.here, **env)
    install(home)
    return home


@contextmanager
def seated(
    office: Office, model: Model, home: Home, *, way: Way, room: str, rung: str, folder: Path | None = None
) -> Iterator[Session]:
    """A session in a room that another box has started, which is woken by that rung first."""
    office.start_elsewhere(room)
    command = ("readyroom", "run", "--new", "--", "claude") if way == "run" else ("claude",)
    before = {row["agent"] for row in office.sessions()}
    with started(home, command, folder=folder) as claude:
        agent = _new_handle(office, before)
        office.join(agent, room)
        session = Session(claude, model, office, agent, room)
        session.until_row(state="idle", rung=rung)
        yield session


def _new_handle(office: Office, before: set[str]) -> str:
    found: set[str] = set()

    def new() -> set[str]:
        found.update({row["agent"] for row in office.sessions()} - before)
        return found

    until(new, lambda: f"a session:\n{office.log()}")
    assert len(found) == 1
    return found.pop()


def install(home: Home, *, without: str | None = None) -> None:
    """Set the program up as docs/howto/claude-code.md says, but for one of its events."""
    permissions = {**MANUAL["permissions"], **PERMISSIONS}
    hooks = {native: group for native, group in hook_settings()["hooks"].items() if native != without}
    home.write("settings.json", json.dumps({"permissions": permissions, "hooks": hooks}))
    home.write(CATCHUP_FILE, CATCHUP)
