"""What `--help` of the programs with a nerve leads to."""

from __future__ import annotations

from types import ModuleType

import pytest
from typer.testing import CliRunner

from readyroom import broker, serve, up

NAMES = ("READYROOM_NERVE_URL", "READYROOM_NERVE_PUBLIC_URL", "READYROOM_REDIS_URL", "SIGHUP", "settings.md")


@pytest.mark.parametrize("program", [up, serve, broker], ids=["up", "serve", "broker"])
def test_help_names_the_settings_of_the_nerve(program: ModuleType) -> None:
    said = CliRunner().invoke(program.app, ["--help"]).output
    assert [name for name in NAMES if name not in said] == []
