"""A session of the real Claude Code is who it was, whatever becomes of its conversation."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.real.claude_sessions import ClaudeSession, at_home, seated
from tests.real.model import Model
from tests.real.office import Office
from tests.real.waiting import until

pytestmark = pytest.mark.real

Begin = Callable[..., ClaudeSession]


@pytest.fixture
def begin(office: Office, claude_code: Path, model: Model, folder: Path, room: str) -> Iterator[Begin]:
    """Begin a session, of one user and in one folder; it ends with the test."""
    home = at_home(office, claude_code, model, folder)
    with ExitStack() as stack:

        def begin(*arguments: str, beside: str = "") -> ClaudeSession:
            terminal = home.path / f"terminal{beside}"
            terminal.mkdir()
            seat = seated(
                office,
                model,
                home,
                way="tmux",
                room=room + beside,
                rung="native",
                folder=terminal,
                arguments=arguments,
            )
            return stack.enter_context(seat)

        yield begin


def reads(session: ClaudeSession, body: str) -> None:
    """It is woken for what is said in its room, and reads it under its handle."""
    session.say(body)
    session.until_shown(body)
    session.until_row(state="idle", unread=0)


def test_it_is_who_it_was_after_its_conversation_was_compacted(begin: Begin) -> None:
    session = begin()
    session.front.prompt("good morning")
    session.front.terminal.until_shown("ACK good morning")
    session.front.prompt("/compact")
    session.front.terminal.until_shown("Compacted")
    session.front.until_status("idle")
    reads(session, "after compaction")


def test_a_fork_beside_it_is_another(begin: Begin) -> None:
    first = begin()
    first.front.prompt("good morning")
    first.front.terminal.until_shown("ACK good morning")
    fork = begin("--continue", "--fork-session", beside="-fork")
    assert fork.agent != first.agent
    reads(fork, "for the fork")
    assert first.row()["wakes"] == 0
    reads(first, "for the first")


def test_its_subagent_is_handed_none_of_its_mail(begin: Begin, model: Model) -> None:
    session = begin()
    model.hold("agent launched")
    model.hold("TOOL pwd\n")
    session.front.draft(f"CALL Agent {json.dumps({'description': 'look', 'prompt': 'TOOL pwd'})}")
    session.front.terminal.press("Enter")
    until(lambda: model.was_shown("agent launched") and model.was_told("TOOL pwd\n"), session.scene)
    session.say("for the parent", urgent=True)
    session.until_row(unread=1)
    model.go_on("TOOL pwd\n")
    project = str(session.front.home.project)
    until(lambda: model.was_shown(project), session.scene)
    assert model.times_told("> for the parent") == 0
    model.go_on("agent launched")
    until(lambda: model.times_told("> for the parent") == 1, session.scene)
    session.until_row(state="idle", unread=0)
