"""docs/reference/cli.md names every command, and every option of those that it describes in full."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from readyroom import admin, demo, talk
from readyroom.__main__ import COMMANDS

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
TALK = [name for name, (module, _) in COMMANDS.items() if module == "readyroom.talk"]
ADMIN = [
    ["admin", "realm", "add"],
    *(["admin", holder, act] for holder in ("box", "person") for act in ("add", "list", "rotate", "revoke")),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_documented(command: str) -> None:
    assert re.search(rf"`readyroom {command}\b", PAGE)


@pytest.mark.parametrize("command", [*([name] for name in TALK), *ADMIN, ["demo"]], ids=" ".join)
def test_every_option_is_documented(command: list[str]) -> None:
    entrance = {"admin": admin.main, "demo": demo.main}.get(command[0], talk.main)
    with redirect_stdout(io.StringIO()) as shown:
        assert entrance([*command, "--help"]) == 0
    options = set(re.findall(r"--[a-z][a-z-]+", shown.getvalue())) - {"--help"}
    assert options
    assert [option for option in sorted(options) if option not in PAGE] == []
