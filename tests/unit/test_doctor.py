"""What `readyroom doctor` makes of what it sees on a box."""

from __future__ import annotations

import json
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from notifier.programs.claude_setup import CATCHUP, CATCHUP_FILE, hook_settings
from notifier.programs.gemini_setup import (
    EXTENSION_FOLDER,
    HOOKS_FILE,
    RULES,
    RULES_FILE,
    extension_files,
)
from notifier.settings import Access
from readyroom import __version__
from readyroom.doctor.box import CLOCK_SECONDS, clock, daemon, folder, nerve, programs, tmux
from readyroom.doctor.findings import Finding

RECORD = Access("http://127.0.0.1:7666", SecretStr("secret"), "READYROOM_URL")
RUNNING = {
    "pid": 7,
    "version": __version__,
    "record": {"url": RECORD.url, "trouble": None, "box": "desk"},
    "nerve": {"url": RECORD.url, "trouble": None},
}


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Claude Code's own folder; the program and ours are on PATH, and nothing else."""
    for name in ("claude", "readyroom"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.touch(mode=0o755)
    home = tmp_path / "claude"
    home.mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home))
    return home


def set_up(home: Path, hooks: dict[str, Any]) -> None:
    home.joinpath("settings.json").write_text(json.dumps(hooks))
    command = home / CATCHUP_FILE
    command.parent.mkdir(exist_ok=True)
    command.write_text(CATCHUP)


def the_program() -> Finding:
    (finding,) = programs()
    assert finding.check == "claude-code"
    assert finding.state != "failed" or finding.fix
    return finding


@pytest.mark.parametrize(
    ("ahead", "state"), [(0, "ok"), (2 * CLOCK_SECONDS, "failed"), (-2 * CLOCK_SECONDS, "failed")]
)
def test_a_clock_that_is_off_is_told(ahead: float, state: str) -> None:
    assert clock(formatdate(time.time() - ahead, usegmt=True)).state == state


@pytest.mark.parametrize("told", [None, "noon"])
def test_a_record_without_a_clock_is_no_fault(told: str | None) -> None:
    assert clock(told).state == "skipped"


def test_a_folder_that_others_can_enter_is_told(tmp_path: Path) -> None:
    runtime = tmp_path / "run"
    assert folder(str(runtime)).state == "ok"
    runtime.mkdir(mode=0o700)
    assert folder(str(runtime)).state == "ok"
    runtime.chmod(0o755)
    found = folder(str(runtime))
    assert (found.state, "755" in found.detail, "chmod 700" in str(found.fix)) == ("failed", True, True)


def test_a_notifier_that_runs_is_fine() -> None:
    assert daemon(RUNNING, RECORD, "desk").state == "ok"
    assert daemon(RUNNING, RECORD, None).state == "ok"
    assert nerve(RUNNING).state == "ok"


@pytest.mark.parametrize(
    ("standing", "told"),
    [
        (None, "none answers"),
        ({**RUNNING, "version": "0.0.1"}, "0.0.1"),
        ({**RUNNING, "version": None}, "unknown"),
        ({**RUNNING, "record": {"url": "http://127.0.0.1:1", "trouble": None}}, "another record"),
        ({**RUNNING, "record": {"url": RECORD.url, "trouble": "It cannot be reached."}}, "does not reach"),
        ({**RUNNING, "record": {"url": RECORD.url, "trouble": None, "box": "build7"}}, "another box, build7"),
    ],
)
def test_a_notifier_that_cannot_wake_is_told(standing: dict[str, Any] | None, told: str) -> None:
    found = daemon(standing, RECORD, "desk")
    assert found.state == "failed"
    assert told in found.detail
    assert found.fix


def test_a_nerve_that_is_not_heard_is_told() -> None:
    found = nerve({**RUNNING, "nerve": {"url": None, "trouble": "not reached yet"}})
    assert (found.state, bool(found.fix)) == ("failed", True)
    assert nerve(None).state == "skipped"


def test_no_program_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert list(programs()) == []
    assert tmux().state == "skipped"


def test_claude_code_with_all_hooks_is_fine(claude: Path) -> None:
    set_up(claude, hook_settings("/opt/readyroom/bin/readyroom"))
    assert the_program().state == "ok"


def test_claude_code_that_was_never_set_up_is_no_fault(claude: Path) -> None:
    assert the_program().state == "skipped"
    set_up(claude, {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}})
    assert the_program().state == "skipped"


def test_a_missing_hook_is_named(claude: Path) -> None:
    settings = hook_settings()
    del settings["hooks"]["Stop"]
    settings["hooks"]["SessionEnd"] = [{"hooks": [{"type": "prompt"}]}]
    set_up(claude, settings)
    assert "Stop, SessionEnd" in the_program().detail


def test_a_missing_command_is_told(claude: Path) -> None:
    set_up(claude, hook_settings())
    claude.joinpath(CATCHUP_FILE).unlink()
    assert "/catchup" in the_program().detail


@pytest.fixture
def gemini(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Gemini CLI's folder with the extension and the rules; the program and ours are on PATH."""
    for name in ("gemini", "readyroom"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path))
    home = tmp_path / ".gemini"
    for name, text in {
        **{f"{EXTENSION_FOLDER}/{name}": text for name, text in extension_files().items()},
        RULES_FILE: RULES,
    }.items():
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return home


def of_gemini() -> tuple[str, str]:
    (finding,) = programs()
    assert finding.check == "gemini"
    return finding.state, finding.detail


def test_gemini_with_its_extension_and_rules_is_fine(gemini: Path) -> None:
    assert of_gemini() == ("ok", "found, with its hooks and its rules")
    gemini.joinpath(RULES_FILE).unlink()
    state, detail = of_gemini()
    assert state == "ok"
    assert "asks before each read" in detail


def test_gemini_without_its_extension_is_not_woken(gemini: Path) -> None:
    hooks = gemini / EXTENSION_FOLDER / HOOKS_FILE
    hooks.write_text("{")
    assert of_gemini()[0] == "failed"
    hooks.write_text('{"hooks": {}}')
    state, detail = of_gemini()
    assert state == "failed"
    assert "AfterAgent" in detail
    hooks.unlink()
    assert of_gemini()[0] == "skipped"


def test_gemini_whose_hooks_find_no_readyroom_is_told(gemini: Path) -> None:
    (gemini.parent / "bin" / "readyroom").unlink()
    state, detail = of_gemini()
    assert state == "failed"
    assert "PATH" in detail


def test_hooks_that_find_no_readyroom_are_told(claude: Path) -> None:
    set_up(claude, hook_settings())
    (claude.parent / "bin" / "readyroom").unlink()
    assert "PATH" in the_program().detail


@pytest.mark.parametrize("text", ["{", "[]", '{"hooks": 7}', '{"hooks": {"Stop": [7]}}'])
def test_settings_that_cannot_be_read_are_told(claude: Path, text: str) -> None:
    claude.joinpath("settings.json").write_text(text)
    assert the_program().state == "failed"
