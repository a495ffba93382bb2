"""What docs/howto/gemini.md tells to copy is what is tested."""

from __future__ import annotations

import re
from pathlib import Path

from notifier.programs.gemini_setup import EXTENSION_FOLDER, RULES, RULES_FILE
from tests.real.npm import GEMINI

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "gemini.md").read_text(encoding="utf-8")


def test_the_block_to_copy_is_the_programs_own() -> None:
    assert re.findall(r"^```toml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE) == [RULES]
    assert f"~/.gemini/{RULES_FILE}" in PAGE
    assert f"~/.gemini/{EXTENSION_FOLDER}" in PAGE


def test_the_version_is_the_one_that_the_tests_install() -> None:
    assert f"Gemini CLI {GEMINI} " in PAGE
