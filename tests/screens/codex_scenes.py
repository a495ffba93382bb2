"""The screens of Codex."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.real.codex import DIALOG, EMPTY, FIRST, Codex, started
from tests.real.terminal import Terminal
from tests.screens.stage import Scene, Stage


@contextmanager
def codex(stage: Stage, *arguments: str, prompt: str | None = None) -> Iterator[Codex]:
    with started(stage.program, stage.model, stage.folder, ["codex", *arguments], {}) as codex:
        if prompt is not None:
            codex.prompt(prompt)
        yield codex


def idle_at_the_start(stage: Stage) -> Iterator[Terminal]:
    with codex(stage) as session:
        session.terminal.until_shown(EMPTY)
        yield session.terminal


def idle_after_a_turn(stage: Stage) -> Iterator[Terminal]:
    with codex(stage, prompt=FIRST) as session:
        session.terminal.until_shown(f"ACK {FIRST}")
        session.terminal.until_shown(EMPTY)
        yield session.terminal


def busy(stage: Stage) -> Iterator[Terminal]:
    stage.model.hold()
    with codex(stage, prompt="think about it") as session:
        session.terminal.until_shown("esc to interrupt")
        yield session.terminal
        stage.model.go_on()


def draft(stage: Stage) -> Iterator[Terminal]:
    with codex(stage) as session:
        session.draft("half a line")
        yield session.terminal


def draft_of_two_rows(stage: Stage) -> Iterator[Terminal]:
    with codex(stage) as session:
        session.terminal.until_shown(EMPTY)
        session.terminal.type("a line so long that it goes on " * 4 + "to the end")
        session.terminal.until_shown("to the end")
        yield session.terminal


def command_menu(stage: Stage) -> Iterator[Terminal]:
    with codex(stage) as session:
        session.terminal.until_shown(EMPTY)
        session.terminal.type("/")
        session.terminal.until_shown("/model")
        yield session.terminal


def permission_dialog(stage: Stage) -> Iterator[Terminal]:
    with codex(stage, prompt="TOOL touch made") as session:
        session.terminal.until_shown(DIALOG)
        yield session.terminal


def model_menu(stage: Stage) -> Iterator[Terminal]:
    with codex(stage, prompt="/model") as session:
        session.terminal.until_shown("Select Model")
        yield session.terminal


def resume_picker(stage: Stage) -> Iterator[Terminal]:
    with codex(stage, prompt=FIRST) as session:
        session.terminal.until_shown(f"ACK {FIRST}")
    with codex(stage, "resume") as session:
        session.terminal.until_shown("Resume a")
        yield session.terminal


SCENES: Sequence[tuple[Scene, str]] = (
    (idle_at_the_start, "empty"),
    (idle_after_a_turn, "empty"),
    (busy, "empty"),  # that it works is told by hooks and output, not by its composer
    (draft, "draft half a line"),
    (draft_of_two_rows, "draft " + "a line so long that it goes on " * 4 + "to the end"),
    (command_menu, "draft /"),
    (permission_dialog, "closed"),
    (model_menu, "closed"),
    (resume_picker, "closed"),
)
