"""Captures the corpus anew and shows what has changed: `python -m tests.screens.capture [PROGRAM [VERSION]]`.

Without a program it is all of them, without a version the pinned one. Another version gets a folder of its
own beside the others, and is compared with the newest of them. Look at the differences, and at each new file,
before they are taken: the verdicts on their first lines are what a human expects, not what the notifier says.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.real import npm
from tests.real.conftest import short_folder
from tests.real.model import served
from tests.real.terminal import Terminal, tmux
from tests.real.waiting import until
from tests.screens import claude_scenes, codex_scenes, gemini_scenes
from tests.screens.screens import FOLDER, Kept
from tests.screens.stage import Scene, Stage

SOMEWHERE = "/home/newcomer"
"""What stands in the files in place of the folder that a scene was played in."""


@dataclass(frozen=True)
class Program:
    """A real program: how to get it, the pinned version, and its scenes with what is in the composer."""

    installed: Callable[[str], Path]
    version: str
    scenes: Sequence[tuple[Scene, str]]


PROGRAMS = {
    "claude-code": Program(npm.claude_code, npm.CLAUDE_CODE, claude_scenes.SCENES),
    "codex": Program(npm.codex, npm.CODEX, codex_scenes.SCENES),
    "gemini": Program(npm.gemini, npm.GEMINI, gemini_scenes.SCENES),
}


def capture(scene: Scene, expected: str, program: Path) -> Kept:
    """Play one scene, and keep its screen once it has come to rest."""
    with short_folder() as folder, served() as model:
        playing = scene(Stage(program, folder, model))
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


def main(name: str, version: str) -> None:
    """Capture every scene of a program, and print the differences."""
    others = sorted((FOLDER / name).glob("*"), key=lambda folder: [int(n) for n in folder.name.split(".")])
    folder = FOLDER / name / version
    known = folder if folder in others or not others else others[-1]
    program = PROGRAMS[name].installed(version)
    folder.mkdir(parents=True, exist_ok=True)
    for scene, expected in PROGRAMS[name].scenes:
        file = f"{scene.__name__.replace('_', '-')}.txt"
        before = (known / file).read_text(encoding="utf-8") if (known / file).exists() else ""
        kept = capture(scene, expected, program)
        (folder / file).write_text(str(kept), encoding="utf-8")
        wrong = "" if kept.judged(name) == expected else f": JUDGED {kept.judged(name)!r}, not {expected!r}"
        print(f"{name}: {file}{wrong}")
        after = str(kept).splitlines()
        for line in difflib.unified_diff(before.splitlines(), after, known.name, version, lineterm="", n=0):
            print(f"  {line!r}")


if __name__ == "__main__":
    for each in sys.argv[1:2] or PROGRAMS:
        main(each, sys.argv[2] if len(sys.argv) > 2 else PROGRAMS[each].version)
