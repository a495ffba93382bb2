"""What docs/howto/claude-code.md tells to copy is what the program means, and what is tested."""

from __future__ import annotations

import json
import re
from pathlib import Path

from notifier.programs.claude_setup import CATCHUP, CATCHUP_FILE, hook_settings
from tests.real.claude_sessions import PERMISSIONS
from tests.real.npm import CLAUDE_CODE

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "claude-code.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_the_blocks_to_copy_are_the_programs_own() -> None:
    hooks, command, permissions = BLOCKS
    assert json.loads(hooks[1]) == hook_settings()
    assert command == ("markdown", CATCHUP)
    assert json.loads(permissions[1]) == {"permissions": PERMISSIONS}
    assert f"~/.claude/{CATCHUP_FILE}" in PAGE


def test_the_version_is_the_one_that_the_tests_install() -> None:
    assert f"Claude Code {CLAUDE_CODE} " in PAGE
