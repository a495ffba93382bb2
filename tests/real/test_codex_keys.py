"""The real Codex is woken by keys where the notifier may use nothing else, and left alone where it must."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.real.codex import CATCHUP_KEYS, DIALOG, CodexSession, Way, seated
from tests.real.model import Model
from tests.real.office import Office

pytestmark = pytest.mark.real

Begin = Callable[..., CodexSession]


@pytest.fixture(params=[("run", "pty"), ("tmux", "tmux")], ids=["run", "tmux"])
def begin(
    typing_office: Office,
    codex: Path,
    model: Model,
    folder: Path,
    room: str,
    request: pytest.FixtureRequest,
) -> Iterator[Begin]:
    """Begin a session; it ends with the test."""
    way: Way
    way, rung = request.param
    with ExitStack() as stack:

        def begin(**env: str) -> CodexSession:
            seat = seated(typing_office, codex, model, folder, room=room, way=way, rung=rung, env=env)
            return stack.enter_context(seat)

        yield begin


def test_an_idle_session_is_woken_and_a_half_typed_line_is_left_alone(begin: Begin, model: Model) -> None:
    session = begin()
    typed = session.front.typed()
    session.say("the build is green")
    session.until_shown("the build is green")
    session.until_row(state="idle", unread=0, hold=None)
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


def test_a_dialog_is_never_answered_by_a_wake(begin: Begin) -> None:
    session = begin(READYROOM_HOOK_MODE="notify")
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
