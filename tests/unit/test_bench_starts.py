"""What the bench makes of the times of small programs."""

from __future__ import annotations

import sys

import pytest

from bench.load import LoadFailed
from bench.starts import BARE, Program, Starts


def test_a_ratio_compares_what_ran_in_the_same_round() -> None:
    measured = Starts({BARE: [0.01, 0.1, 0.02], "hook": [0.03, 0.2, 0.05]}, {})
    assert measured.ratios() == {BARE: 1, "hook": pytest.approx(2.5)}


def test_a_program_is_given_its_input_and_its_environment() -> None:
    words = "import os, sys; sys.exit(sys.stdin.read() != os.environ['SAID'])"
    assert Program([sys.executable, "-c", words], {"SAID": "{}"}, b"{}").seconds() > 0


def test_a_program_that_fails_gives_no_figure() -> None:
    with pytest.raises(LoadFailed, match="status 3: no such room"):
        Program(
            [sys.executable, "-c", "import sys; print('no such room', file=sys.stderr); sys.exit(3)"], {}
        ).seconds()
