"""The screens of Claude Code."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.real.claude import PROMPT, Claude, Home, moved_in, started
from tests.real.terminal import Terminal, opened
from tests.real.waiting import until
from tests.screens.stage import Scene, Stage


def _home(stage: Stage) -> Home:
    return moved_in(stage.folder / "home", stage.program, stage.model)


@contextmanager
def claude(stage: Stage, prompt: str | None = None) -> Iterator[Claude]:
    with started(_home(stage)) as claude:
        if prompt is not None:
            claude.prompt(prompt)
        yield claude


def idle_at_the_start(stage: Stage) -> Iterator[Terminal]:
    with claude(stage) as session:
        session.terminal.until_shown(PROMPT)
        yield session.terminal


def idle_after_a_turn(stage: Stage) -> Iterator[Terminal]:
    with claude(stage, "good morning") as session:
        session.terminal.until_shown("ACK good morning")
        session.until_status("idle")
        yield session.terminal


def busy(stage: Stage) -> Iterator[Terminal]:
    stage.model.hold()
    with claude(stage, "think about it") as session:
        session.until_status("busy")
        session.terminal.until_shown("esc to interrupt")
        yield session.terminal
        stage.model.go_on()


def draft(stage: Stage) -> Iterator[Terminal]:
    with claude(stage) as session:
        session.draft("half a line")
        yield session.terminal


def draft_of_two_rows(stage: Stage) -> Iterator[Terminal]:
    with claude(stage) as session:
        session.terminal.type("a line so long that it goes on " * 4 + "to the end")
        session.terminal.until_shown("to the end")
        yield session.terminal


def draft_put_back(stage: Stage) -> Iterator[Terminal]:
    stage.model.hold()
    with claude(stage, "think about it") as session:
        session.until_status("busy")
        until(lambda: stage.model.was_told("think about it"), "the prompt")
        session.terminal.press("Escape")
        session.until_status("idle")
        session.terminal.until_shown(PROMPT + "think about it")
        yield session.terminal
        stage.model.go_on()


def command_menu(stage: Stage) -> Iterator[Terminal]:
    with claude(stage) as session:
        session.terminal.type("/")
        session.terminal.until_shown("/add-dir")
        yield session.terminal


def permission_dialog(stage: Stage) -> Iterator[Terminal]:
    with claude(stage, "TOOL touch made") as session:
        session.until_status("waiting")
        session.terminal.until_shown("Do you want to proceed?")
        yield session.terminal


def model_menu(stage: Stage) -> Iterator[Terminal]:
    with claude(stage, "/model") as session:
        session.until_status("waiting")
        session.terminal.until_shown("Select model")
        yield session.terminal


def transcript(stage: Stage) -> Iterator[Terminal]:
    with claude(stage, "good morning") as session:
        session.terminal.until_shown("ACK good morning")
        session.until_status("idle")
        session.terminal.type("\x0f")
        session.terminal.until_shown("Showing detailed transcript")
        yield session.terminal


def trust_prompt(stage: Stage) -> Iterator[Terminal]:
    with unready(stage, "trust", forgotten=("projects",)) as terminal:
        yield terminal


def first_start(stage: Stage) -> Iterator[Terminal]:
    with unready(stage, "Dark mode", forgotten=("hasCompletedOnboarding", "theme")) as terminal:
        yield terminal


@contextmanager
def unready(stage: Stage, text: str, *, forgotten: Sequence[str]) -> Iterator[Terminal]:
    """The program before it has a session; some of its first questions it asks again."""
    home = _home(stage)
    file = home.path / ".claude.json"
    kept = json.loads(file.read_text(encoding="utf-8"))
    for answer in forgotten:
        kept.pop(answer)
    file.write_text(json.dumps(kept), encoding="utf-8")
    with opened(home.path, ["claude"], env=home.env, cwd=home.project) as terminal:
        terminal.until_shown(text)
        yield terminal


SCENES: Sequence[tuple[Scene, str]] = (
    (idle_at_the_start, "empty"),
    (idle_after_a_turn, "empty"),
    (busy, "empty"),  # that it works is told by hooks, registry and output, not by its composer
    (draft, "draft half a line"),
    (draft_of_two_rows, "draft " + "a line so long that it goes on " * 4 + "to the end"),
    (draft_put_back, "draft think about it"),
    (command_menu, "draft /"),
    (permission_dialog, "unknown"),
    (model_menu, "unknown"),
    (transcript, "unknown"),
    (trust_prompt, "unknown"),
    (first_start, "unknown"),
)
