"""Where the notifier and those who talk to it meet."""

from __future__ import annotations

from pathlib import Path

import platformdirs
import pytest

from notifier.paths import runtime_dir


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A user's environment with folders of their own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return {"XDG_RUNTIME_DIR": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}


def test_a_user_has_one_meeting_place(environ: dict[str, str], tmp_path: Path) -> None:
    assert runtime_dir(environ) == str(tmp_path / "readyroom")


def test_two_data_folders_of_one_user_have_two(environ: dict[str, str], tmp_path: Path) -> None:
    one = runtime_dir({**environ, "READYROOM_DATA_DIR": str(tmp_path / "one")})
    two = runtime_dir({**environ, "READYROOM_DATA_DIR": str(tmp_path / "two")})
    again = runtime_dir({**environ, "READYROOM_DATA_DIR": str(tmp_path / "two" / ".." / "one")})
    assert len({one, two, runtime_dir(environ)}) == 3
    assert again == one


def test_naming_the_usual_data_folder_changes_nothing(environ: dict[str, str]) -> None:
    usual = str(platformdirs.user_data_path("readyroom"))
    assert runtime_dir({**environ, "READYROOM_DATA_DIR": usual}) == runtime_dir(environ)


@pytest.mark.parametrize("value", ["", "  ", "${READYROOM_DATA_DIR}"])
def test_an_unset_variable_counts_as_absent(environ: dict[str, str], value: str) -> None:
    assert runtime_dir({**environ, "READYROOM_DATA_DIR": value}) == runtime_dir(environ)


def test_a_folder_that_is_named_is_taken(environ: dict[str, str], tmp_path: Path) -> None:
    named = {**environ, "READYROOM_RUNTIME_DIR": str(tmp_path / "here"), "READYROOM_DATA_DIR": "/elsewhere"}
    assert runtime_dir(named) == str(tmp_path / "here")
