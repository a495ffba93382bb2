"""The screens of Gemini CLI."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from tests.real.gemini import DIALOG, EMPTY, PROMPT, Gemini, started
from tests.real.terminal import Terminal
from tests.screens.stage import Scene, Stage

FIRST = "good morning"
LONG = "a line so long that it goes on " * 4 + "to the end"
VI = {"general": {"vimMode": True, "enableAutoUpdate": False}}
CONTROL_R, CONTROL_Y = "\x12", "\x19"


@contextmanager
def gemini(
    stage: Stage,
    *arguments: str,
    prompt: str | None = None,
    typed: str | None = None,
    settings: Mapping[str, object] | None = None,
) -> Iterator[Gemini]:
    command = ["gemini", *arguments]
    with started(stage.program, stage.model, stage.folder, command, settings=settings) as gemini:
        gemini.terminal.until_shown(EMPTY)
        if prompt is not None:
            gemini.prompt(prompt)
        if typed is not None:
            gemini.terminal.type(typed)
        yield gemini


def idle_at_the_start(stage: Stage) -> Iterator[Terminal]:
    with gemini(stage) as session:
        yield session.terminal


def idle_after_a_turn(stage: Stage) -> Iterator[Terminal]:
    with gemini(stage, prompt=FIRST) as session:
        session.terminal.until_shown(f"ACK {FIRST}")
        session.terminal.until_shown(EMPTY)
        yield session.terminal


def idle_in_few_colours(stage: Stage) -> Iterator[Terminal]:
    with started(stage.program, stage.model, stage.folder, env={"COLORTERM": ""}) as session:
        session.terminal.until_shown(EMPTY)
        yield session.terminal


def idle_without_colours(stage: Stage) -> Iterator[Terminal]:
    with started(stage.program, stage.model, stage.folder, env={"NO_COLOR": "1"}) as session:
        session.terminal.until_shown(EMPTY)
        yield session.terminal


def idle_on_the_alternate_screen(stage: Stage) -> Iterator[Terminal]:
    with gemini(stage, settings={"ui": {"useAlternateBuffer": True}}, prompt=FIRST) as session:
        session.terminal.until_shown(f"ACK {FIRST}")
        session.terminal.until_shown(EMPTY)
        yield session.terminal


def idle_and_asking_for_nothing(stage: Stage) -> Iterator[Terminal]:
    with gemini(stage, typed=CONTROL_Y) as session:
        session.terminal.until_shown("YOLO")
        yield session.terminal


def idle_in_insert_mode(stage: Stage) -> Iterator[Terminal]:
    with started(stage.program, stage.model, stage.folder, settings=VI) as session:
        session.terminal.until_shown("Press 'Esc' for NORMAL mode.")
        yield session.terminal


def idle_in_normal_mode(stage: Stage) -> Iterator[Terminal]:
    with started(stage.program, stage.model, stage.folder, settings=VI) as session:
        session.terminal.until_shown("Press 'Esc' for NORMAL mode.")
        session.terminal.press("Escape")
        session.terminal.until_shown("Press 'i' for INSERT mode.")
        yield session.terminal


def idle_in_a_window_behind_another(stage: Stage) -> Iterator[Terminal]:
    with gemini(stage, prompt=FIRST) as session:
        session.terminal.until_shown(f"ACK {FIRST}")
        session.terminal.until_shown(EMPTY)
        session.leave()
        yield session.terminal


def draft_in_a_window_behind_another(stage: Stage) -> Iterator[Terminal]:
    with gemini(stage, prompt=FIRST) as session:
        session.terminal.until_shown(f"ACK {FIRST}")
        session.draft("half a line")
        session.leave()
        yield session.terminal


def shell_with_the_keys(stage: Stage) -> Iterator[Terminal]:
    with gemini(stage, prompt="TOOL sleep 60") as session:
        session.terminal.until_shown(DIALOG)
        session.terminal.press("Enter")
        session.terminal.until_shown("Tab to focus")
        session.terminal.type("\t")
        session.terminal.until_shown("to unfocus")
        yield session.terminal


def busy(stage: Stage) -> Iterator[Terminal]:
    stage.model.hold()
    with gemini(stage, prompt="think about it") as session:
        session.terminal.until_shown("esc to cancel")
        yield session.terminal
        stage.model.go_on()


def busy_with_a_line_queued(stage: Stage) -> Iterator[Terminal]:
    stage.model.hold()
    with gemini(stage, prompt="think about it") as session:
        session.terminal.until_shown("esc to cancel")
        session.prompt("and then")
        session.terminal.until_shown("Queued")
        yield session.terminal
        stage.model.go_on()


def draft(stage: Stage) -> Iterator[Terminal]:
    with gemini(stage) as session:
        session.draft("half a line")
        yield session.terminal


def draft_of_two_rows(stage: Stage) -> Iterator[Terminal]:
    with gemini(stage, typed=LONG) as session:
        session.terminal.until_shown("to the end")
        yield session.terminal


def draft_like_the_placeholder(stage: Stage) -> Iterator[Terminal]:
    with gemini(stage) as session:
        session.terminal.type(EMPTY.removeprefix(f"{PROMPT}  "))
        session.terminal.until_shown(PROMPT + EMPTY.removeprefix(f"{PROMPT}  "))
        yield session.terminal


def draft_of_blanks(stage: Stage) -> Iterator[Terminal]:
    with gemini(stage, typed="   ") as session:
        session.terminal.until_gone("Type your message")
        yield session.terminal


def command_menu(stage: Stage) -> Iterator[Terminal]:
    with gemini(stage, typed="/") as session:
        session.terminal.until_shown("about")
        yield session.terminal


def file_menu(stage: Stage) -> Iterator[Terminal]:
    (stage.folder / "home" / "project").mkdir(parents=True)
    (stage.folder / "home" / "project" / "notes.md").touch()
    with gemini(stage, typed="@no") as session:
        session.terminal.until_shown("notes.md")
        yield session.terminal


def shell_mode(stage: Stage) -> Iterator[Terminal]:
    with gemini(stage, typed="!") as session:
        session.terminal.until_shown(" !  ")
        yield session.terminal


def history_search(stage: Stage) -> Iterator[Terminal]:
    with gemini(stage, typed=CONTROL_R) as session:
        session.terminal.until_shown("(r:)")
        yield session.terminal


def permission_dialog(stage: Stage) -> Iterator[Terminal]:
    with gemini(stage, prompt="TOOL touch made") as session:
        session.terminal.until_shown(DIALOG)
        yield session.terminal


def permission_dialog_on_the_alternate_screen(stage: Stage) -> Iterator[Terminal]:
    alternate = {"ui": {"useAlternateBuffer": True}}
    with gemini(stage, settings=alternate, prompt="TOOL touch made") as session:
        session.terminal.until_shown(DIALOG)
        yield session.terminal


def question_dialog(stage: Stage) -> Iterator[Terminal]:
    choice = {"question": "Which one?", "header": "Choice", "type": "choice"}
    options = [{"label": "This", "description": "one"}, {"label": "That", "description": "other"}]
    asked = json.dumps({"questions": [{**choice, "options": options}]})
    with gemini(stage) as session:
        session.terminal.type(f"CALL ask_user {asked}")
        session.terminal.until_shown('"other"}]}]}')
        session.terminal.press("Enter")
        session.terminal.until_shown("Enter to select")
        yield session.terminal


def edit_dialog(stage: Stage) -> Iterator[Terminal]:
    given = json.dumps({"file_path": "notes.md", "content": "one line"})
    with gemini(stage, prompt=f"CALL write_file {given}") as session:
        session.terminal.until_shown("Apply this change?")
        yield session.terminal


def after_a_refusal(stage: Stage) -> Iterator[Terminal]:
    with gemini(stage, prompt="TOOL touch made") as session:
        session.terminal.until_shown(DIALOG)
        session.terminal.press("Escape")
        session.terminal.until_shown(EMPTY)
        yield session.terminal


def _menu(stage: Stage, *, command: str, shown: str) -> Iterator[Terminal]:
    with gemini(stage, prompt=command) as session:
        session.terminal.until_shown(shown)
        yield session.terminal


def model_menu(stage: Stage) -> Iterator[Terminal]:
    yield from _menu(stage, command="/model", shown="Select Model")


def settings_menu(stage: Stage) -> Iterator[Terminal]:
    yield from _menu(stage, command="/settings", shown="Vim Mode")


def theme_menu(stage: Stage) -> Iterator[Terminal]:
    yield from _menu(stage, command="/theme", shown="Select Theme")


def login_menu(stage: Stage) -> Iterator[Terminal]:
    yield from _menu(stage, command="/auth", shown="How would you like to authenticate")


def resume_picker(stage: Stage) -> Iterator[Terminal]:
    with gemini(stage, prompt=FIRST) as session:
        session.terminal.until_shown(f"ACK {FIRST}")
    with gemini(stage, prompt="/resume") as session:
        session.terminal.until_shown("Sessions")
        yield session.terminal


def trust_prompt(stage: Stage) -> Iterator[Terminal]:
    with started(stage.program, stage.model, stage.folder, trusted=False) as session:
        session.terminal.until_shown("Do you trust")
        yield session.terminal


def first_start(stage: Stage) -> Iterator[Terminal]:
    unknown: dict[str, object] = {"security": {}}
    env = {"GEMINI_API_KEY": ""}
    with started(stage.program, stage.model, stage.folder, env=env, settings=unknown) as session:
        session.terminal.until_shown("How would you like to authenticate")
        yield session.terminal


SCENES: Sequence[tuple[Scene, str]] = (
    (idle_at_the_start, "empty"),
    (idle_after_a_turn, "empty"),
    (idle_in_few_colours, "empty"),
    (idle_without_colours, "empty"),
    (idle_on_the_alternate_screen, "empty"),
    (idle_and_asking_for_nothing, "empty"),
    (idle_in_insert_mode, "empty"),
    (idle_in_normal_mode, "unknown"),
    (idle_in_a_window_behind_another, "empty"),
    (draft_in_a_window_behind_another, "draft half a line"),
    (shell_with_the_keys, "unknown"),
    (busy, "empty"),  # that it works is told by hooks and output, not by its composer
    (busy_with_a_line_queued, "empty"),
    (draft, "draft half a line"),
    (draft_of_two_rows, f"draft {LONG}"),
    (draft_like_the_placeholder, "draft Type your message or @path/to/file"),
    (draft_of_blanks, "unknown"),
    (command_menu, "draft /"),
    (file_menu, "draft @no"),
    (shell_mode, "unknown"),
    (history_search, "unknown"),
    (permission_dialog, "unknown"),
    (permission_dialog_on_the_alternate_screen, "unknown"),
    (question_dialog, "unknown"),
    (edit_dialog, "unknown"),
    (after_a_refusal, "empty"),
    (model_menu, "unknown"),
    (settings_menu, "unknown"),
    (theme_menu, "unknown"),
    (login_menu, "unknown"),
    (resume_picker, "unknown"),
    (trust_prompt, "unknown"),
    (first_start, "unknown"),
)
