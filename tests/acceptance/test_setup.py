"""`readyroom setup` on real files: what a person has there stays, and what is ours can be taken out again."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from notifier.programs.claude_setup import ALLOW, CATCHUP, hook_settings, is_our_hook
from notifier.programs.codex_setup import RULES
from notifier.programs.gemini_setup import EXTENSION_FOLDER, RULES_FILE, extension_files
from notifier.programs.gemini_setup import RULES as GEMINI_RULES
from readyroom.changes import settings_file
from tests.acceptance.test_cli import Shell, clean

THEIRS = {
    "model": "opus",
    "hooks": {
        "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}],
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "my readyroom check"}]}],
    },
    "permissions": {"allow": ["Bash(ls:*)"], "deny": ["Read(./.env)"]},
    "statusLine": {"type": "command", "command": "grün"},
}


@pytest.fixture
def user(tmp_path: Path) -> Shell:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("readyroom", "claude", "codex"):
        (programs / name).touch(mode=0o755)
    home = tmp_path / "home"
    home.mkdir()
    return Shell({**clean(), "HOME": str(home), "PATH": str(programs)})


@pytest.fixture
def claude(user: Shell) -> Path:
    folder = Path(user.env["HOME"]) / ".claude"
    folder.mkdir()
    return folder


def test_a_home_without_settings_gets_them_and_loses_them_again(user: Shell, claude: Path) -> None:
    shown = user.run("setup", "claude-code", "--yes").stdout
    assert "+++" in shown
    assert "readyroom run -- claude" in shown
    kept = json.loads((claude / "settings.json").read_text())
    assert kept == {**hook_settings(), "permissions": {"allow": list(ALLOW)}}
    assert (claude / "commands" / "catchup.md").read_text() == CATCHUP
    assert "is set up" in user.run("setup", "claude-code", "--yes").stdout
    user.run("setup", "claude-code", "--remove", "--yes")
    assert [path for path in claude.rglob("*") if path.is_file()] == []
    assert "has nothing of ours" in user.run("setup", "claude-code", "--remove", "--yes").stdout


def test_a_persons_own_settings_stay_as_they_are(user: Shell, claude: Path) -> None:
    file = claude / "settings.json"
    before = json.dumps(THEIRS, indent=4, ensure_ascii=False) + "\n"
    file.write_text(before)
    file.chmod(0o640)
    user.run("setup", "claude-code", "--yes")
    with_ours = json.loads(file.read_text())
    assert with_ours["permissions"] == {"allow": ["Bash(ls:*)", *ALLOW], "deny": ["Read(./.env)"]}
    assert with_ours["hooks"]["Stop"][0] == THEIRS["hooks"]["Stop"][0]  # type: ignore[index]
    assert len(with_ours["hooks"]["Stop"]) == 2
    user.run("setup", "claude-code", "--remove", "--yes")
    assert file.read_text() == before
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_link_stays_one(user: Shell, claude: Path, tmp_path: Path) -> None:
    kept_elsewhere = tmp_path / "dotfiles.json"
    kept_elsewhere.write_text("{}")
    (claude / "settings.json").symlink_to(kept_elsewhere)
    user.run("setup", "claude-code", "--yes")
    assert (claude / "settings.json").is_symlink()
    assert "readyroom hook stop" in kept_elsewhere.read_text()


def test_hooks_of_an_earlier_version_are_replaced(user: Shell, claude: Path) -> None:
    old = {
        "hooks": {
            "Gone": [{"hooks": [{"type": "command", "command": "/x/readyroom hook gone --for claude-code"}]}]
        }
    }
    (claude / "settings.json").write_text(json.dumps(old))
    user.run("setup", "claude-code", "--yes")
    assert json.loads((claude / "settings.json").read_text())["hooks"] == hook_settings()["hooks"]


@pytest.mark.parametrize("options", [("--dry-run",), ("--dry-run", "--yes"), ("--remove", "--dry-run")])
def test_a_dry_run_shows_and_writes_nothing(user: Shell, claude: Path, options: tuple[str, ...]) -> None:
    file = claude / "settings.json"
    file.write_text(json.dumps(hook_settings()))
    assert "Nothing is written" in user.run("setup", "claude-code", *options).stdout
    assert file.read_text() == json.dumps(hook_settings())
    assert not (claude / "commands").exists()


def test_nobody_is_written_for_who_was_not_asked(user: Shell, claude: Path) -> None:
    assert "--yes" in user.run("setup", "claude-code", status=2).stderr
    assert list(claude.iterdir()) == []


@pytest.mark.parametrize(
    "text",
    [
        "{ // mine\n}",
        '{"hooks": []}',
        '{"hooks": {"Stop": {}}}',
        '{"hooks": {"Stop": [{"matcher": ""}]}}',
        '{"hooks": {"Stop": [{"hooks": [{"command": 7}]}]}}',
        '{"permissions": {"allow": "all"}}',
        '{"model": "a", "model": "b"}',
        "[]",
        "\udcff",
    ],
)
def test_what_is_no_such_settings_file_is_left_alone(user: Shell, claude: Path, text: str) -> None:
    file = claude / "settings.json"
    file.write_bytes(before := text.encode(errors="surrogateescape"))
    said = user.run("setup", "claude-code", "--yes", status=1).stderr
    assert str(file) in said
    assert file.read_bytes() == before
    assert [path.name for path in claude.iterdir()] == ["settings.json"]


def test_a_command_that_somebody_has_changed_is_not_removed(user: Shell, claude: Path) -> None:
    user.run("setup", "claude-code", "--yes")
    (claude / "commands" / "catchup.md").write_text("mine")
    user.run("setup", "claude-code", "--remove", "--yes")
    assert (claude / "commands" / "catchup.md").read_text() == "mine"


def test_codex_gets_its_rules(user: Shell) -> None:
    rules = Path(user.env["HOME"]) / ".codex" / "rules" / "readyroom.rules"
    user.run("setup", "codex", "--yes")
    assert rules.read_text() == RULES
    user.run("setup", "codex", "--remove", "--yes")
    assert not rules.exists()


def test_gemini_gets_an_extension_and_a_rule(user: Shell) -> None:
    folder = Path(user.env["HOME"]) / ".gemini"
    (folder / "extensions").mkdir(parents=True)
    (folder / "extensions" / "mine.json").touch()
    user.run("setup", "gemini", "--yes")
    assert (folder / RULES_FILE).read_text() == GEMINI_RULES
    for path, text in extension_files().items():
        assert (folder / EXTENSION_FOLDER / path).read_text() == text
    user.run("setup", "gemini", "--remove", "--yes")
    assert sorted(path.name for path in folder.rglob("*")) == ["extensions", "mine.json"]


def test_a_program_that_we_do_not_know_is_refused(user: Shell) -> None:
    assert "claude-code" in user.run("setup", "emacs", status=2).stderr


names = st.sampled_from(("Stop", "PreToolUse", "SessionStart", "Mine"))
handlers = st.fixed_dictionaries({"type": st.just("command"), "command": st.text(max_size=8)})
groups = st.fixed_dictionaries(
    {"hooks": st.lists(handlers, min_size=1, max_size=2)}, optional={"matcher": st.text()}
)
some_settings = st.fixed_dictionaries(
    {},
    optional={
        "model": st.text(),
        "env": st.dictionaries(st.text(), st.text(), max_size=2),
        "hooks": st.dictionaries(names, st.lists(groups, min_size=1, max_size=2), min_size=1),
        "permissions": st.fixed_dictionaries({"allow": st.lists(st.text(), min_size=1, max_size=3)}),
    },
)


@given(theirs=some_settings, indent=st.sampled_from((1, 2, 4)), newline=st.booleans())
@settings(max_examples=60, deadline=None)
def test_whatever_stands_there_is_the_same_after_setting_up_and_removing(
    tmp_path_factory: pytest.TempPathFactory, theirs: dict[str, Any], indent: int, newline: bool
) -> None:
    file = tmp_path_factory.mktemp("home") / "settings.json"
    before = json.dumps(theirs, indent=indent, ensure_ascii=False) + "\n" * newline
    file.write_text(before, encoding="utf-8")

    def change(*, remove: bool) -> None:
        hooks = hook_settings()["hooks"]
        settings_file(file, hooks=hooks, is_ours=is_our_hook, allow=ALLOW, remove=remove).make()

    change(remove=False)
    there = json.loads(file.read_text(encoding="utf-8"))
    for event, own in hook_settings()["hooks"].items():
        assert all(group in there["hooks"][event] for group in own)
    for event, own in theirs.get("hooks", {}).items():
        assert there["hooks"][event][: len(own)] == own
    change(remove=True)
    if theirs:
        assert file.read_text(encoding="utf-8") == before
    else:
        assert not file.exists()
