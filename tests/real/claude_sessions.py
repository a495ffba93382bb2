"""A session of Claude Code that belongs to a Readyroom: its hooks are installed, and it sits in a room."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from notifier.programs.claude_setup import CATCHUP, CATCHUP_FILE, hook_settings
from tests.real.claude import MANUAL, Claude, Home, moved_in, started
from tests.real.model import Model
from tests.real.office import Office
from tests.real.session import Session, handles, new_handle

Way = Literal["run", "tmux"]
"""How it was started: `readyroom run -- claude`, or just `claude`, in tmux both times."""

CATCHUP_KEYS = b"\x1b[200~/catchup\x1b[201~\r"
"""All that is ever typed: the line as one paste, and Enter."""

PERMISSIONS = {"allow": ["Bash(readyroom poll:*)", "Bash(readyroom say:*)"]}
"""What docs/howto/claude-code.md allows, besides what /catchup itself may do."""


ClaudeSession = Session[Claude]


def at_home(office: Office, program: Path, model: Model, folder: Path, **env: str) -> Home:
    """A home that belongs to a Readyroom: the program is set up as docs/howto/claude-code.md says."""
    home = moved_in(folder / "home", program, model, **office.here, **env)
    install(home)
    return home


@contextmanager
def seated(
    office: Office,
    model: Model,
    home: Home,
    *,
    way: Way,
    room: str,
    rung: str,
    folder: Path | None = None,
    arguments: Sequence[str] = (),
) -> Iterator[ClaudeSession]:
    """A session in a room that another box has started, which is woken by that rung first."""
    office.start_elsewhere(room)
    before_it = ("readyroom", "run", "--new", "--") if way == "run" else ()
    command = (*before_it, "claude", *arguments)
    before = handles(office)
    with started(home, command, folder=folder) as claude:
        agent = new_handle(office, before)
        office.join(agent, room)
        session = Session(claude, model, office, agent, room)
        session.until_row(state="idle", rung=rung)
        yield session


def install(home: Home, *, without: str | None = None) -> None:
    """Set the program up as docs/howto/claude-code.md says, but for one of its events."""
    permissions = {**MANUAL["permissions"], **PERMISSIONS}
    hooks = {native: group for native, group in hook_settings()["hooks"].items() if native != without}
    home.write("settings.json", json.dumps({"permissions": permissions, "hooks": hooks}))
    home.write(CATCHUP_FILE, CATCHUP)
