"""Captures the corpus anew: `python -m tests.screens.capture [VERSION]`, and shows what has changed.

Without a version it is the pinned one. Another version gets a folder of its own beside the others, and is
compared with the newest of them. Look at the differences, and at each new file, before they are taken: the
verdicts on their first lines are what a human expects, not what the notifier says.
"""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.real import npm
from tests.real.claude import PROMPT, Claude, Home, moved_in, started
from tests.real.conftest import short_folder
from tests.real.model import Model, served
from tests.real.terminal import Terminal, opened, tmux
from tests.real.waiting import until
from tests.screens.screens import FOLDER, Kept

PROGRAM = "claude-code"
SOMEWHERE = "/home/newcomer"
"""What stands in the files in place of the folder that a scene was played in."""


@dataclass(frozen=True)
class Stage:
    """A home with the program, and its model."""

    home: Home
    model: Model

    def forget(self, *answers: str) -> None:
        """Have the program ask some of its first questions again."""
        file = self.home.path / ".claude.json"
        kept = json.loads(file.read_text(encoding="utf-8"))
        for answer in answers:
            kept.pop(answer)
        file.write_text(json.dumps(kept), encoding="utf-8")


Scene = Callable[[Stage], Iterator[Terminal]]
"""Brings a screen about, and yields the terminal that shows it."""


@contextmanager
def claude(stage: Stage, prompt: str | None = None) -> Iterator[Claude]:
    with started(stage.home) as claude:
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
    stage.forget("projects")
    with unready(stage, "trust") as terminal:
        yield terminal


def first_start(stage: Stage) -> Iterator[Terminal]:
    stage.forget("hasCompletedOnboarding", "theme")
    with unready(stage, "Dark mode") as terminal:
        yield terminal


@contextmanager
def unready(stage: Stage, text: str) -> Iterator[Terminal]:
    """The program before it has a session."""
    with opened(stage.home.path, ["claude"], env=stage.home.env, cwd=stage.home.project) as terminal:
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


def capture(scene: Scene, expected: str, program: Path) -> Kept:
    """Play one scene, and keep its screen once it has come to rest."""
    with short_folder() as folder, served() as model:
        playing = scene(Stage(moved_in(folder / "home", program, model), model))
        terminal = next(playing)
        kept = at_rest(terminal, expected, str(folder))
        for _ in playing:
            raise AssertionError("a scene shows one screen")
    return kept


def at_rest(terminal: Terminal, expected: str, folder: str) -> Kept:
    """What is shown when two looks agree on all but the rows above the last ones, which may count time."""
    before = ""

    def rests() -> bool:
        nonlocal before
        before, after = tmux(terminal.socket, "capture-pane", "-p").rstrip()[-200:], before
        return before == after

    until(rests, "a screen that rests")
    shown = tmux(terminal.socket, "capture-pane", "-p", "-e")
    column, row = map(int, tmux(terminal.socket, "display-message", "-p", "#{cursor_x} #{cursor_y}").split())
    return Kept(expected, column, row, shown.replace(folder, SOMEWHERE))


def main(version: str) -> None:
    """Capture every scene, and print the differences."""
    others = sorted((FOLDER / PROGRAM).glob("*"), key=lambda folder: [int(n) for n in folder.name.split(".")])
    folder = FOLDER / PROGRAM / version
    known = folder if folder in others or not others else others[-1]
    program = npm.claude_code(version)
    folder.mkdir(parents=True, exist_ok=True)
    for scene, expected in SCENES:
        file = f"{scene.__name__.replace('_', '-')}.txt"
        before = (known / file).read_text(encoding="utf-8") if (known / file).exists() else ""
        kept = capture(scene, expected, program)
        (folder / file).write_text(str(kept), encoding="utf-8")
        wrong = (
            "" if kept.judged(PROGRAM) == expected else f": JUDGED {kept.judged(PROGRAM)!r}, not {expected!r}"
        )
        print(f"{file}{wrong}")
        after = str(kept).splitlines()
        for line in difflib.unified_diff(before.splitlines(), after, known.name, version, lineterm="", n=0):
            print(f"  {line!r}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else npm.CLAUDE_CODE)
