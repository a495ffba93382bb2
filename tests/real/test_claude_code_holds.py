"""Whatever a human opened or began to write in the real Claude Code, no key reaches it; then a wake comes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.real.claude import PROMPT, Claude
from tests.real.claude_sessions import CATCHUP_KEYS, ClaudeSession, Way, at_home, seated
from tests.real.model import Model
from tests.real.office import Office
from tests.real.terminal import Terminal
from tests.real.waiting import until

pytestmark = pytest.mark.real

RESPONSE_SECONDS = 3.0
"""A key that has had no effect after this time was lost on a program that was not ready for it."""


@dataclass(frozen=True)
class Kind:
    """Something that stands in a wake's way.

    Attributes:
        begin: brings it about.
        shows: what the screen shows of it, and of nothing else.
        holds: why the wake is held, one of these by how much the rung can see.
        end: the keys that do away with it.
    """

    begin: Callable[[Claude], None]
    shows: str
    holds: tuple[str, ...]
    end: str


def _command(name: str) -> Callable[[Claude], None]:
    def begin(claude: Claude) -> None:
        claude.draft(name)
        claude.terminal.press("Enter")

    return begin


def _keys(keys: str) -> Callable[[Claude], None]:
    return lambda claude: claude.terminal.type(keys)


def _two_lines(claude: Claude) -> None:
    claude.draft("first\\")
    claude.terminal.press("Enter")
    claude.terminal.type("second")


NOT_EMPTY = ("draft", "composer not known")
ESCAPE, ERASE, ERASE_ALL = "\x1b", "\x7f", "\x7f" * 20
KINDS = {
    "the models": Kind(_command("/model"), "Enter to save", ("dialog open",), ESCAPE),
    "earlier points": Kind(_keys(ESCAPE * 2), "Restore the code", ("dialog open",), ESCAPE),
    "the transcript": Kind(_keys("\x0f"), "Showing detailed transcript", NOT_EMPTY, ESCAPE),
    "the history": Kind(_keys("\x12"), "Filter history", NOT_EMPTY, ESCAPE),
    "a paste": Kind(_keys("\x1b[200~pasted\x1b[201~"), f"{PROMPT}pasted", ("draft",), ERASE_ALL),
    "two lines": Kind(_two_lines, "  second", ("draft",), ERASE_ALL),
    "a shell line": Kind(_keys("!"), "! for shell mode", NOT_EMPTY, ERASE),
    "half a command": Kind(_keys("/mo"), f"{PROMPT}/mo", ("draft",), ERASE_ALL),
}


@pytest.mark.parametrize(("way", "rung"), [("run", "pty"), ("tmux", "tmux")])
def test_a_wake_waits_for_each_kind_of_dialog_and_draft(
    typing_office: Office, claude_code: Path, model: Model, folder: Path, room: str, way: Way, rung: str
) -> None:
    home = at_home(typing_office, claude_code, model, folder)
    with seated(typing_office, model, home, way=way, room=room, rung=rung) as session:
        session.front.prompt("good morning")
        session.front.terminal.until_shown("ACK good morning")
        speaker = typing_office.newcomer(room)
        for name, kind in KINDS.items():
            session.until_row(state="idle", unread=0, hold=None)
            session.front.until_status("idle")
            _waits(session, speaker, name, kind)


def _waits(session: ClaudeSession, speaker: str, name: str, kind: Kind) -> None:
    front = session.front
    kind.begin(front)
    front.terminal.until_shown(kind.shows)
    typed = front.typed()
    session.office.say_as(speaker, session.room, f"said before {name}.")
    until(lambda: session.row()["hold"] in kind.holds, session.scene)
    assert (name, front.typed()) == (name, typed)
    assert kind.shows in front.terminal.screen()
    until(lambda: _ends(front.terminal, kind), front.terminal.screen)
    session.until_shown(f"said before {name}.")
    sent = front.typed().removeprefix(typed)
    assert sent.endswith(CATCHUP_KEYS)
    assert set(sent.removesuffix(CATCHUP_KEYS).decode()) == set(kind.end)


def _ends(terminal: Terminal, kind: Kind) -> bool:
    terminal.type(kind.end)
    end = time.monotonic() + RESPONSE_SECONDS
    while kind.shows in terminal.screen() and time.monotonic() < end:
        time.sleep(0.05)
    return kind.shows not in terminal.screen()
