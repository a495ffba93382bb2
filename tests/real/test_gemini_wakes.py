"""The real Gemini CLI is woken when it is idle, and not touched when it is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.real.gemini import CATCHUP_KEYS, DIALOG, EMPTY, GeminiSession, Way, seated
from tests.real.model import Model
from tests.real.office import Office
from tests.real.waiting import until

pytestmark = pytest.mark.real

INSERTING, COMMANDING = "Press 'Esc' for NORMAL mode.", "Press 'i' for INSERT mode."
Begin = Callable[..., GeminiSession]
WAYS = pytest.mark.parametrize("way", ["run", "tmux"])


@pytest.fixture
def begin(office: Office, gemini_cli: Path, model: Model, folder: Path, room: str) -> Iterator[Begin]:
    """Begin a session; it ends with the test."""
    with ExitStack() as stack:

        def begin(way: Way = "run", *, beside: str = "", **env: str) -> GeminiSession:
            seat = seated(office, gemini_cli, model, folder, room=room + beside, way=way, env=env)
            return stack.enter_context(seat)

        yield begin


@WAYS
def test_an_idle_session_is_woken_and_a_half_typed_line_is_left_alone(
    begin: Begin, way: Way, model: Model
) -> None:
    session = begin(way)
    typed = session.front.typed()
    session.say("the build is green")
    session.until_shown("the build is green")
    session.until_row(state="idle", unread=0, hold=None)
    assert session.row()["last_wake"] == {
        "rung": "pty" if way == "run" else "tmux",
        "outcome": "read",
        "reason": None,
    }
    assert session.front.typed() == typed + CATCHUP_KEYS

    session.front.draft("half a line")
    typed = session.front.typed()
    session.say("there is news")
    session.until_row(state="idle", hold="draft", unread=1)
    assert session.front.typed() == typed
    session.front.terminal.press("Backspace", times=11)
    session.until_shown("there is news")
    assert session.front.typed() == typed + b"\x7f" * 11 + CATCHUP_KEYS
    assert not model.was_told("half a line")


@WAYS
def test_a_session_in_a_window_behind_another_is_woken(begin: Begin, way: Way) -> None:
    session = begin(way)
    session.front.leave()
    typed = session.front.typed()
    session.say("the build is green")
    session.until_shown("the build is green")
    session.until_row(state="idle", unread=0, hold=None)
    assert session.front.typed() == typed + CATCHUP_KEYS


@WAYS
def test_a_dialog_is_never_answered_by_a_wake(begin: Begin, way: Way) -> None:
    session = begin(way, READYROOM_HOOK_MODE="notify")
    session.front.prompt("TOOL touch made")
    session.front.terminal.until_shown(DIALOG)
    session.until_row(state="waiting")
    typed = session.front.typed()
    session.say("there is news")
    session.until_row(state="waiting", hold="dialog open", unread=1)
    assert session.front.typed() == typed

    session.front.terminal.press("Escape")
    session.until_shown("there is news")
    assert session.front.typed() == typed + b"\x1b" + CATCHUP_KEYS
    assert not (session.front.project / "made").exists()


def test_a_command_that_a_human_allows_is_run_and_nothing_was_typed(begin: Begin) -> None:
    session = begin()
    session.front.prompt("TOOL touch made")
    session.front.terminal.until_shown(DIALOG)
    session.until_row(state="waiting")
    typed = session.front.typed()
    session.say("there is news")
    session.until_row(state="waiting", unread=1)
    session.front.terminal.press("Enter")
    session.until_handed("there is news")
    session.until_row(state="idle", unread=0)
    assert session.front.typed() == typed + b"\r"
    assert (session.front.project / "made").exists()


def test_a_menu_holds_a_wake(begin: Begin) -> None:
    session = begin()
    session.front.prompt("/model")
    session.front.terminal.until_shown("Select Model")
    typed = session.front.typed()
    session.say("there is news")
    session.until_row(hold="composer not known", unread=1)
    assert session.front.typed() == typed
    session.front.terminal.press("Escape")
    session.until_shown("there is news")
    assert session.front.typed() == typed + b"\x1b" + CATCHUP_KEYS


def test_vi_keys_hold_a_wake_only_where_letters_are_commands(
    office: Office, gemini_cli: Path, model: Model, folder: Path, room: str
) -> None:
    vi = {"general": {"vimMode": True, "enableAutoUpdate": False}}
    with seated(office, gemini_cli, model, folder, room=room, settings=vi, empty=INSERTING) as session:
        session.say("the build is green")
        session.until_shown("the build is green")
        session.until_row(state="idle", unread=0)
        session.front.terminal.until_shown(INSERTING)
        session.front.terminal.press("Escape")
        session.front.terminal.until_shown(COMMANDING)
        typed = session.front.typed()
        session.say("there is news")
        session.until_row(hold="draft", unread=1)
        assert session.front.typed() == typed
        session.front.terminal.type("i")
        session.until_shown("there is news")
        assert session.front.typed() == typed + b"i" + CATCHUP_KEYS


def test_a_resumed_session_is_who_it_was(
    office: Office, gemini_cli: Path, model: Model, folder: Path, room: str
) -> None:
    with seated(office, gemini_cli, model, folder, room=room) as first:
        first.front.prompt("good morning")
        first.front.terminal.until_shown("ACK good morning")
        first.until_row(state="idle")
    until(lambda: first.row().get("state") == "offline", first.office.log)
    resume = ("--resume", "latest")
    with seated(office, gemini_cli, model, folder, room=room, arguments=resume) as resumed:
        assert resumed.agent == first.agent
        resumed.say("for the one")
        resumed.until_shown("for the one")
        resumed.until_row(state="idle", unread=0)


def test_shell_mode_holds_a_wake(begin: Begin) -> None:
    session = begin()
    session.front.terminal.type("!")
    session.front.terminal.until_gone(EMPTY)
    typed = session.front.typed()
    session.say("there is news")
    session.until_row(hold="draft", unread=1)
    assert session.front.typed() == typed


def test_what_is_said_during_a_turn_is_handed_over_at_its_end(begin: Begin, model: Model) -> None:
    session = begin()
    model.hold()
    session.front.prompt("think about it")
    session.until_row(state="busy")
    typed = session.front.typed()
    session.say("one more thing")
    session.until_row(state="busy", hold="busy", unread=1)
    model.go_on()
    session.until_handed("one more thing")
    session.until_row(state="idle", unread=0)
    assert session.front.typed() == typed


def test_a_turn_is_kept_going_twice_and_no_more(begin: Begin, model: Model) -> None:
    session = begin()
    model.hold()
    session.front.prompt("think about it")
    session.until_row(state="busy")
    for number in (1, 2, 3):
        session.say(f"news {number}")
        session.until_row(unread=1)
        thoughts = len(model.heard)
        model.go_on()
        model.hold()
        until(lambda: len(model.heard) > thoughts, session.scene)  # noqa: B023
    model.go_on()
    session.until_shown("news 3")
    assert [model.was_handed(f"> news {number}") for number in (1, 2, 3)] == [True, True, False]
    session.until_row(state="idle", unread=0)


def test_an_interrupted_turn_is_over(begin: Begin, model: Model) -> None:
    session = begin()
    model.hold()
    session.front.prompt("think about it")
    session.until_row(state="busy")
    until(lambda: model.was_told("think about it"), session.scene)
    session.front.terminal.press("Escape")
    session.until_row(state="idle")
    model.go_on()
    typed = session.front.typed()
    session.say("there is news")
    session.until_shown("there is news")
    assert session.front.typed() == typed + CATCHUP_KEYS


def test_two_sessions_in_one_folder_never_cross(begin: Begin) -> None:
    one, two = begin(), begin(beside="-too")
    assert one.agent != two.agent
    for session, other in ((one, two), (two, one)):
        session.say(f"for {session.agent}")
        session.until_shown(f"for {session.agent}")
        session.until_row(unread=0, state="idle")
        assert f"for {session.agent}" not in other.front.terminal.screen()
    assert one.row()["last_wake"] == two.row()["last_wake"]
    assert (one.row()["wakes"], two.row()["wakes"]) == (1, 1)


def test_what_is_urgent_reaches_a_turn_with_its_tools_results(begin: Begin, model: Model) -> None:
    session = begin()
    model.hold()
    session.front.prompt(f"TOOL readyroom say {session.room} working")
    session.until_row(state="busy")
    message = session.say("stop that", urgent=True)
    session.until_row(state="busy", urgent=1)
    model.go_on()
    session.until_handed("stop that")
    (handed,) = (heard for heard in model.heard if "> stop that" in heard.reminders)
    assert handed.result, "it came with the tool's result"
    session.until_row(state="idle", unread=0)
    session.until_sender_is_told(message, None)
    assert session.row()["last_wake"] is None


def test_ten_messages_within_a_second_are_one_wake(begin: Begin, model: Model) -> None:
    session = begin()
    speaker = session.office.newcomer(session.room)
    for number in range(10):
        session.office.say_as(speaker, session.room, f"news {number}.")
    session.until_row(state="idle", unread=0, hold=None)
    assert session.row()["wakes"] == 1
    assert [model.times_told(f"> news {number}.") for number in range(10)] == [1] * 10


def test_catchup_is_a_command_that_the_mcp_server_brings(begin: Begin, model: Model) -> None:
    session = begin()
    session.front.prompt("/catchup")
    until(lambda: model.was_told("poll_convs"), session.scene)


def test_the_mcp_server_is_called_without_a_question_under_the_sessions_own_handle(
    begin: Begin, model: Model
) -> None:
    session = begin()
    session.front.prompt("CALL mcp_readyroom_poll_convs")
    until(lambda: model.was_shown(session.agent), session.scene)
    session.until_row(state="idle")


def test_it_is_woken_after_clear_under_its_name(begin: Begin) -> None:
    session = begin()
    session.front.prompt("good morning")
    session.front.terminal.until_shown("ACK good morning")
    session.front.prompt("/clear")
    session.front.terminal.until_gone("ACK good morning")
    session.say("after clear")
    session.until_shown("after clear")
    session.until_row(state="idle", unread=0)
