"""What is particular to each agent program: its hooks' words, its own sign of idleness, its catch-up line."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notifier.programs.base import Program

MODULES = {
    "claude-code": "notifier.programs.claude_code",
    "codex": "notifier.programs.codex",
    "gemini": "notifier.programs.gemini",
    "plain": "notifier.programs.plain",
}
"""Program -> its module, which holds a `PROGRAM`; imported only when asked for."""


def find(name: str) -> Program | None:
    """The program of that name; None for one that we have no words for."""
    module = MODULES.get(name)
    if module is None:
        return None
    program: Program = importlib.import_module(module).PROGRAM
    return program
