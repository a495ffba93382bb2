"""The ground that the other tests stand on: the real program runs here, alone, and shows what it does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.claude import Claude, moved_in, started
from tests.real.model import Model
from tests.real.waiting import until

pytestmark = pytest.mark.real


@pytest.fixture
def claude(claude_code: Path, model: Model, folder: Path) -> Iterator[Claude]:
    with started(moved_in(folder / "home", claude_code, model)) as claude:
        yield claude


def test_it_starts_answers_and_asks_without_any_network(claude: Claude, model: Model) -> None:
    claude.prompt("good morning")
    claude.terminal.until_shown("ACK good morning")
    claude.until_status("idle")

    model.hold()
    claude.prompt("think about it")
    claude.until_status("busy")
    model.go_on()
    claude.until_status("idle")

    claude.prompt("TOOL touch made")
    claude.until_status("waiting")
    claude.terminal.until_shown("Do you want to proceed?")
    assert not (claude.home.project / "made").exists()
    claude.answer("Enter")
    claude.until_status("idle")
    assert (claude.home.project / "made").exists()
    assert model.strangers == []


def test_every_byte_that_is_typed_at_it_is_counted(claude: Claude, model: Model) -> None:
    before = claude.typed()
    claude.draft("half a line")
    assert claude.typed() == before + b"half a line"
    claude.terminal.press("Backspace", times=11)
    until(lambda: "half" not in claude.terminal.screen(), "an empty line")
    assert claude.typed() == before + b"half a line" + b"\x7f" * 11
    assert model.heard == []
