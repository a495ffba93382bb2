"""What docs/howto/codex.md tells to copy is what is tested."""

from __future__ import annotations

import re
from pathlib import Path

from notifier.programs.codex_setup import RULES, RULES_FILE
from tests.real.npm import CODEX

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "codex.md").read_text(encoding="utf-8")


def test_the_block_to_copy_is_the_programs_own() -> None:
    assert re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE) == [RULES]
    assert f"~/.codex/{RULES_FILE}" in PAGE


def test_the_version_is_the_one_that_the_tests_install() -> None:
    assert f"Codex {CODEX} " in PAGE
