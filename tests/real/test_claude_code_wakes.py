"""The real Claude Code is woken by keys when it is idle, and not touched when it is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.real.claude import PROMPT
from tests.real.claude_sessions import CATCHUP_KEYS, ClaudeSession, Way, at_home, seated
from tests.real.model import Model
from tests.real.office import Office
from tests.real.waiting import until

pytestmark = pytest.mark.real

Begin = Callable[..., ClaudeSession]


@pytest.fixture
def begin(typing_office: Office, claude_code: Path, model: Model, folder: Path, room: str) -> Iterator[Begin]:
    """Begin a session; it ends with the test."""
    with ExitStack() as stack:

        def begin(way: Way, **env: str) -> ClaudeSession:
            home = at_home(typing_office, claude_code, model, folder, **env)
            rung = "pty" if way == "run" else "tmux"
            return stack.enter_context(seated(typing_office, model, home, way=way, room=room, rung=rung))

        yield begin


@pytest.fixture(params=["run", "tmux"])
def way(request: pytest.FixtureRequest) -> Way:
    chosen: Way = request.param
    return chosen


def test_an_idle_session_is_woken_reads_and_answers(begin: Begin, way: Way, model: Model) -> None:
    session = begin(way)
    before = session.front.typed()
    message = session.say("the build is green")
    session.until_shown("the build is green")
    assert session.front.typed() == before + CATCHUP_KEYS
    assert model.was_told("/catchup")
    session.until_row(state="idle", unread=0, hold=None)
    assert session.row()["last_wake"]["outcome"] == "read"
    session.until_sender_is_told(message, None)

    session.front.prompt(f"TOOL echo thanks | readyroom say {session.room}")
    until(lambda: len(session.office.senders(session.room)) == 2, session.front.terminal.screen)
    assert session.office.senders(session.room) == [message["sender"], session.agent]


def test_a_dialog_is_never_answered_by_a_wake(begin: Begin, way: Way) -> None:
    session = begin(way, READYROOM_HOOK_MODE="notify")
    claude = session.front
    claude.prompt("TOOL touch made")
    claude.until_status("waiting")
    claude.terminal.until_shown("Do you want to proceed?")
    typed, dialog = claude.typed(), claude.dialog()

    for number in range(1, 4):
        message = session.say(f"news {number}")
        session.until_row(state="waiting", hold="dialog open", unread=number)
    session.until_sender_is_told(message, "held: permission dialog open")
    assert [row["hold"] for row in session.office.status()["sessions"] if row["dialog"]] == ["dialog open"]
    assert claude.typed() == typed
    assert claude.dialog() == dialog
    assert not (claude.home.project / "made").exists()

    claude.answer("Enter")
    session.until_shown("news 3")
    assert (claude.home.project / "made").exists()
    assert claude.typed().removeprefix(typed).lstrip(b"\r") == CATCHUP_KEYS


def test_a_dialog_that_is_dismissed_lets_the_wake_go(begin: Begin, way: Way) -> None:
    session = begin(way)
    claude = session.front
    claude.prompt("TOOL touch made")
    claude.until_status("waiting")
    session.say("never mind")
    session.until_row(state="waiting", hold="dialog open")
    claude.answer("Escape")
    session.until_shown("never mind")
    assert not (claude.home.project / "made").exists()


@pytest.mark.parametrize("ending", ["erased", "submitted"])
def test_a_half_typed_line_is_left_alone(begin: Begin, way: Way, ending: str) -> None:
    session = begin(way, READYROOM_HOOK_MODE="notify")
    claude = session.front
    claude.draft("half a line")
    typed = claude.typed()

    message = session.say("there is news")
    session.until_row(state="idle", hold="draft", draft=True, unread=1)
    session.until_sender_is_told(message, "held: someone is typing")
    assert claude.typed() == typed
    claude.terminal.until_shown("half a line")

    if ending == "erased":
        claude.terminal.press("Backspace", times=11)
    else:
        claude.terminal.press("Enter")
    session.until_shown("there is news")
    assert session.model.was_told("half a line") == (ending == "submitted")
    assert claude.typed().removeprefix(typed).lstrip(b"\r\x7f") == CATCHUP_KEYS


def test_a_prompt_that_an_interrupt_puts_back_is_left_alone(begin: Begin, way: Way, model: Model) -> None:
    session = begin(way)
    claude = session.front
    model.hold()
    claude.prompt("think about it")
    claude.until_status("busy")
    until(lambda: model.was_told("think about it"), "the prompt")
    claude.terminal.press("Escape")
    claude.until_status("idle")
    claude.terminal.until_shown(PROMPT + "think about it")
    model.go_on()
    typed = claude.typed()

    session.say("there is news")
    session.until_row(state="idle", hold="draft", unread=1)
    assert claude.typed() == typed
    claude.terminal.press("Backspace", times=14)
    session.until_shown("there is news")
    assert claude.typed() == typed + b"\x7f" * 14 + CATCHUP_KEYS


def test_what_is_urgent_reaches_a_turn_with_its_tools_results(begin: Begin, way: Way, model: Model) -> None:
    session = begin(way)
    model.hold()
    session.front.prompt(f"TOOL readyroom say {session.room} working")
    session.front.until_status("busy")
    typed = session.front.typed()
    message = session.say("stop that", urgent=True)
    session.until_row(state="busy", urgent=1)
    model.go_on()
    until(lambda: model.was_told("> stop that"), session.front.terminal.screen)
    (told,) = (heard for heard in model.heard if "> stop that" in heard.told)
    assert told.result, "it came with the tool's result"
    session.until_row(state="idle", unread=0)
    session.until_sender_is_told(message, None)
    assert session.front.typed() == typed


def test_what_is_said_during_a_turn_is_handed_over_at_its_end(begin: Begin, way: Way, model: Model) -> None:
    session = begin(way)
    model.hold()
    session.front.prompt("think about it")
    session.front.until_status("busy")
    typed = session.front.typed()
    session.say("one more thing")
    session.until_row(state="busy", hold="busy", unread=1)
    model.go_on()
    session.until_handed("one more thing")
    session.until_row(state="idle", unread=0)
    assert session.front.typed() == typed
