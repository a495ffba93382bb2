"""The real Claude Code is woken by its own file-change hook: no key is typed, and nothing is in its way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.real import npm
from tests.real.claude import PROMPT, Home
from tests.real.claude_sessions import CATCHUP_KEYS, ClaudeSession, Way, at_home, install, seated
from tests.real.model import Model
from tests.real.office import Office
from tests.real.waiting import until

pytestmark = pytest.mark.real

Begin = Callable[..., ClaudeSession]


@pytest.fixture
def home(office: Office, claude_code: Path, model: Model, folder: Path) -> Home:
    return at_home(office, claude_code, model, folder)


@pytest.fixture
def begin(office: Office, model: Model, home: Home, room: str) -> Iterator[Begin]:
    """Begin a session; it ends with the test."""
    with ExitStack() as stack:

        def begin(way: Way = "tmux", *, beside: str = "", **env: str) -> ClaudeSession:
            terminal = home.path / f"terminal{beside}"
            terminal.mkdir()
            home.env.update(env)
            seat = seated(office, model, home, way=way, room=room + beside, rung="native", folder=terminal)
            return stack.enter_context(seat)

        yield begin


@pytest.mark.parametrize("way", ["run", "tmux"])
def test_an_idle_session_begins_a_turn_and_reads(begin: Begin, way: Way, model: Model) -> None:
    session = begin(way)
    before = session.front.typed()
    message = session.say("the build is green")
    session.until_shown("the build is green")
    session.until_row(state="idle", unread=0, hold=None)
    assert session.row()["last_wake"] == {"rung": "native", "outcome": "read", "reason": None}
    session.until_sender_is_told(message, None)
    assert session.front.typed() == before
    assert model.native_wakes() == 1


def test_a_half_typed_line_stays_and_is_no_reason_to_wait(begin: Begin, model: Model) -> None:
    session = begin()
    claude = session.front
    claude.draft("half a line")
    typed = claude.typed()
    session.say("there is news")
    session.until_shown("there is news")
    session.until_row(state="idle", unread=0)
    claude.terminal.until_shown(PROMPT + "half a line")
    assert claude.typed() == typed
    assert not model.was_told("half a line")

    claude.terminal.press("Enter")
    until(lambda: model.was_told("half a line"), claude.terminal.screen)


def test_a_dialog_is_left_alone_and_the_wake_comes_when_it_is_closed(begin: Begin, model: Model) -> None:
    session = begin(READYROOM_HOOK_MODE="notify")
    claude = session.front
    claude.prompt("TOOL touch made")
    claude.until_status("waiting")
    claude.terminal.until_shown("Do you want to proceed?")
    typed, dialog = claude.typed(), claude.dialog()

    message = session.say("there is news")
    session.until_row(state="waiting", hold="dialog open", unread=1)
    session.until_sender_is_told(message, "held: permission dialog open")
    assert (claude.typed(), claude.dialog()) == (typed, dialog)
    assert not (claude.home.project / "made").exists()

    claude.answer("Enter")
    session.until_shown("there is news")
    assert (claude.home.project / "made").exists()
    assert claude.typed().removeprefix(typed).strip(b"\r") == b""
    assert model.native_wakes() == 1


def test_what_is_said_during_a_turn_wakes_at_its_end(begin: Begin, model: Model) -> None:
    session = begin(READYROOM_HOOK_MODE="notify")
    model.hold()
    session.front.prompt("think about it")
    session.front.until_status("busy")
    session.say("one more thing")
    session.until_row(state="busy", hold="busy", unread=1)
    assert model.native_wakes() == 0
    model.go_on()
    session.until_shown("one more thing")
    session.until_row(state="idle", unread=0)
    assert model.native_wakes() == 1


def test_a_turn_that_was_interrupted_is_over_and_the_prompt_that_was_put_back_stays(
    begin: Begin, model: Model
) -> None:
    session = begin()
    claude = session.front
    model.hold()
    claude.prompt("think about it")
    claude.until_status("busy")
    until(lambda: model.was_told("think about it"), session.scene)
    claude.terminal.press("Escape")
    claude.until_status("idle")
    claude.terminal.until_shown(PROMPT + "think about it")
    model.go_on()
    typed = claude.typed()
    session.say("there is news")
    session.until_shown("there is news")
    session.until_row(state="idle", unread=0)
    claude.terminal.until_shown(PROMPT + "think about it")
    assert claude.typed() == typed


def test_ten_messages_within_a_second_are_one_wake_and_nobody_goes_on_waiting(
    begin: Begin, model: Model
) -> None:
    session = begin()
    message = session.say("first")
    session.until_shown("first")
    session.until_row(state="idle", unread=0)

    for number in range(10):
        session.office.say_as(message["sender"], session.room, f"news {number}")
    session.until_row(state="idle", unread=0, hold=None)
    assert model.native_wakes() == 2
    assert session.row()["wakes"] == 2
    until(lambda: not _hooks(session), lambda: f"the end of {_hooks(session)}")


def test_it_is_woken_after_clear_and_after_its_folder_has_changed(begin: Begin, model: Model) -> None:
    session = begin()
    claude = session.front
    (claude.home.project / "sub").mkdir()
    claude.prompt("good morning")
    claude.terminal.until_shown("ACK good morning")
    claude.prompt("/clear")
    until(lambda: "ACK" not in claude.terminal.screen(), claude.terminal.screen)
    session.say("after clear")
    session.until_shown("after clear")

    claude.prompt("TOOL cd sub && pwd")
    session.until_row(cwd=str(claude.home.project / "sub"))
    session.until_row(state="idle", unread=0)
    session.say("after cd")
    session.until_shown("after cd")
    session.until_row(state="idle", unread=0)
    assert model.native_wakes() == 2
    assert session.row()["last_wake"]["rung"] == "native"


def test_two_sessions_in_one_folder_are_woken_each_for_its_own(begin: Begin, model: Model) -> None:
    first, second = begin(), begin(beside="-too")
    second.say("for the second")
    second.until_shown("for the second")
    second.until_row(state="idle", unread=0)
    assert (first.row()["wakes"], second.row()["wakes"]) == (0, 1)
    first.say("for the first")
    first.until_shown("for the first")
    first.until_row(state="idle", unread=0)
    assert (first.row()["wakes"], second.row()["wakes"]) == (1, 1)
    assert model.native_wakes() == 2


@pytest.mark.parametrize(("way", "rung"), [("run", "pty"), ("tmux", "tmux")])
def test_where_no_hook_takes_it_up_the_next_rung_types(
    begin: Begin, home: Home, way: Way, rung: str, model: Model
) -> None:
    install(home, without="FileChanged")
    session = begin(way)
    before = session.front.typed()
    session.say("the build is green")
    session.until_shown("the build is green")
    session.until_row(state="idle", unread=0)
    assert session.row()["last_wake"] == {"rung": rung, "outcome": "read", "reason": None}
    assert session.front.typed() == before + CATCHUP_KEYS
    assert model.native_wakes() == 0


def test_the_oldest_version_that_watches_is_woken(
    office: Office, model: Model, folder: Path, room: str
) -> None:
    home = at_home(office, npm.claude_code(npm.CLAUDE_CODE_THAT_WATCHES), model, folder)
    with seated(office, model, home, way="run", room=room, rung="native") as session:
        before = session.front.typed()
        session.office.say_elsewhere(room, "the build is green")
        session.until_shown("the build is green")
        assert session.front.typed() == before
        session.until_row(state="idle", unread=0)


def _hooks(session: ClaudeSession) -> list[str]:
    """The hooks of this session's home that run."""
    mine = f"HOME={session.front.home.path}\0".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes()
            if b"\0hook\0" in line and mine in (process / "environ").read_bytes():
                found.append(line.decode())
        except OSError:
            continue
    return found
