"""docs/reference/mcp.md names every tool with exactly its arguments."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from api.mcp.arguments import MAX_BYTES, WAIT_SECONDS, input_schema
from api.mcp.tools import TOOLS

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "mcp.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| `([a-z_]+)` \| (.*?) \|", PAGE, re.MULTILINE))


def test_every_tool_has_its_row_and_no_other() -> None:
    assert list(ROWS) == list(TOOLS)


@pytest.mark.parametrize("tool", TOOLS)
def test_every_argument_is_documented(tool: str) -> None:
    assert set(re.findall(r"`([a-z_]+)`", ROWS[tool])) == set(
        input_schema(TOOLS[tool].arguments)["properties"]
    )


def test_the_bounds_are_the_documented_ones() -> None:
    assert f"(0 to {WAIT_SECONDS})" in ROWS["poll_convs"]
    assert f"(at most {MAX_BYTES}, the default)" in ROWS["poll_convs"]
