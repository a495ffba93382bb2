"""docs/reference/bench.md describes every scenario and every option of the bench."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from bench.__main__ import SCENARIOS, main

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "bench.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_scenario_has_its_part(scenario: str) -> None:
    assert f"\n## `{scenario}`: " in PAGE


def test_every_option_is_documented() -> None:
    app = typer.Typer(add_completion=False)
    app.command()(main)
    options = set(re.findall(r"--[a-z][a-z-]+", CliRunner().invoke(app, ["--help"]).output))
    assert {"--wakes", "--no-keep"} <= options
    rows = re.findall(r"^\| `(--[a-z-]+)", PAGE, re.MULTILINE)
    assert sorted(options - {"--help", "--keep"}) == sorted(rows)
