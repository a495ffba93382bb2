"""Secrets that the service reads from files, and settings that will not do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import typer

from api.settings import SECRET_BYTES, Settings, read_secret
from readyroom.service import service_settings


def test_a_secret_is_read_without_its_newline(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("postgresql://db/readyroom\n")
    assert Settings(database_url_file=tmp_path / "url").database_dsn() == "postgresql://db/readyroom"


@pytest.mark.parametrize("name", ["/dev/zero", "pipe", "long", "."])
def test_a_file_that_never_ends_holds_no_secret(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "long").write_text("x" * (SECRET_BYTES + 1))
    with pytest.raises(OSError, match="a regular file of at most 4096 bytes"):
        read_secret(tmp_path / name)


def test_a_rule_of_ours_is_told_in_our_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("READYROOM_REDIS_URL", "http://redis")
    with pytest.raises(typer.Exit):
        service_settings()
    assert "READYROOM_REDIS_URL will not do: a URL of Redis" in capsys.readouterr().err
