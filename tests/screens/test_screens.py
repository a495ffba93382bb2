"""What the notifier reads off screens of real programs is what a human sees there."""

from __future__ import annotations

from pathlib import Path

import pytest

from notifier.terminals.composer import Screen, composed
from notifier.terminals.emulator import Emulator
from tests.screens.screens import FOLDER, Kept

FILES = sorted(FOLDER.glob("*/*/*.txt"))
CLOSED = [file for file in FILES if Kept.read(file).expected != "empty"]
ROWS, COLUMNS = 40, 110


def named(file: Path) -> str:
    return str(file.relative_to(FOLDER).with_suffix(""))


@pytest.mark.parametrize("file", FILES, ids=named)
def test_a_screen_is_judged_as_what_it_is(file: Path) -> None:
    kept = Kept.read(file)
    assert kept.judged(file.parts[-3]) == kept.expected


@pytest.mark.parametrize("file", FILES, ids=named)
def test_a_screen_that_is_printed_at_a_pseudo_terminal_is_judged_alike(file: Path) -> None:
    kept = Kept.read(file)
    emulator = Emulator(ROWS, COLUMNS)
    shown = kept.shown.rstrip("\n").replace("\n", "\r\n")
    emulator.feed(f"{shown}\x1b[{kept.row + 1};{kept.column + 1}H".encode())
    assert kept.seen(emulator.screen(), file.parts[-3]) == kept.expected


@pytest.mark.parametrize("file", CLOSED, ids=named)
def test_a_screen_that_is_cut_short_is_never_taken_for_an_empty_composer_of_another(file: Path) -> None:
    """While it is being drawn from the top, a dialog or a draft is at no moment an empty composer."""
    kept = Kept.read(file)
    lines = kept.shown.split("\n")
    for end in range(len(lines)):
        screen = Screen.read("\n".join(lines[:end]), column=kept.column, row=kept.row)
        assert composed(screen, file.parts[-3]) != ""


def test_the_corpus_has_every_kind_of_screen() -> None:
    kinds = {Kept.read(file).expected.partition(" ")[0] for file in FILES}
    assert kinds == {"empty", "draft", "unknown", "closed"}
