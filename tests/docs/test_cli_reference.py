"""docs/reference/cli.md names every command, and every option of those that it describes in full."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from readyroom import admin, connect, demo, doctor, look, prune, setup, talk, webhook
from readyroom.__main__ import COMMANDS

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
TALK = {name: talk for name, (module, _) in COMMANDS.items() if module == "readyroom.talk"}
LOOK = {name: look for name, (module, _) in COMMANDS.items() if module == "readyroom.look"}
ADMIN = [
    ["admin", "realm", "add"],
    *(["admin", "realm", act] for act in ("list", "keep", "listeners", "revoke")),
    *(["admin", act] for act in ("invite", "invites", "uninvite", "dead-letters", "audit")),
    *(
        ["admin", holder, act]
        for holder in ("box", "person", "nerve-token")
        for act in ("add", "list", "rotate", "revoke")
    ),
    *(["admin", holder, "remove"] for holder in ("box", "person")),
]


WEBHOOK = [["webhook", act] for act in ("add", "list", "rotate", "remove")]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_documented(command: str) -> None:
    assert re.search(rf"`readyroom {command}\b", PAGE)


@pytest.mark.parametrize(
    "command",
    [
        *([name] for name in {**TALK, **LOOK}),
        *ADMIN,
        *WEBHOOK,
        ["connect"],
        ["demo"],
        ["doctor"],
        ["prune"],
        ["setup"],
    ],
    ids=" ".join,
)
def test_every_option_is_documented(command: list[str]) -> None:
    module = {
        "admin": admin,
        "connect": connect,
        "demo": demo,
        "doctor": doctor,
        "prune": prune,
        "setup": setup,
        "webhook": webhook,
        **TALK,
        **LOOK,
    }[command[0]]
    with redirect_stdout(io.StringIO()) as shown:
        assert module.main([*command, "--help"]) == 0
    options = set(re.findall(r"--[a-z][a-z-]+", shown.getvalue())) - {"--help"}
    assert options
    assert [option for option in sorted(options) if option not in PAGE] == []
