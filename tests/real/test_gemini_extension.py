"""The extension in the repository is one that the real Gemini CLI takes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from notifier.programs.gemini_setup import EXTENSION_FOLDER, extension_files
from tests.real.need import need

pytestmark = pytest.mark.real

EXTENSION = Path(__file__).parents[2] / "gemini-extension"
COMMAND_SECONDS = 100.0


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A user's home with settings of their own."""
    settings = tmp_path / ".gemini" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"general": {"vimMode": true}} // mine\n', encoding="utf-8")
    return tmp_path


def extensions(program: Path, home: Path, *words: str, answer: str = "") -> str:
    """What `gemini extensions` says; an answer is given to what it asks."""
    done = subprocess.run(
        [need("node"), str(program), "extensions", *words],
        env={"HOME": str(home), "PATH": os.environ["PATH"]},
        cwd=home,
        input=answer,
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout + done.stderr


def test_it_is_valid(gemini_cli: Path, home: Path) -> None:
    assert "successfully validated" in extensions(gemini_cli, home, "validate", str(EXTENSION))


def test_it_is_installed_and_gone_again_and_the_settings_stay(gemini_cli: Path, home: Path) -> None:
    before = (home / ".gemini" / "settings.json").read_bytes()
    extensions(gemini_cli, home, "install", str(EXTENSION), "--consent", answer="y\n")
    there = home / ".gemini" / EXTENSION_FOLDER
    for name, text in extension_files().items():
        assert (there / name).read_text(encoding="utf-8") == text
    assert "readyroom" in extensions(gemini_cli, home, "list")
    extensions(gemini_cli, home, "uninstall", "readyroom")
    assert not there.exists()
    assert (home / ".gemini" / "settings.json").read_bytes() == before
