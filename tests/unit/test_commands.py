"""What the record says of its API becomes what the command line can do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import api
from notifier.record import Refused
from notifier.settings import SettingsError, read_token
from readyroom.commands import in_commands

SOURCES = [*Path(api.__file__).parent.glob("*.py"), *(Path(api.__file__).parent / "services").glob("*.py")]
CALLS = sorted(
    {
        call.replace("{room}", "api")
        for source in SOURCES
        for call in re.findall(r"(?:GET|PUT|POST|DELETE) /v1/[^\s\"`.]+", source.read_text(encoding="utf-8"))
        if "``" not in call
    }
)


def test_the_record_speaks_of_calls() -> None:
    assert len(CALLS) >= 5


@pytest.mark.parametrize("call", CALLS)
def test_each_call_that_the_record_names_has_its_command(call: str) -> None:
    told = in_commands(Refused("x", f"Do it with {call}.", {"room": "api", "realm": "lab"}))
    assert "/v1" not in told
    assert "`readyroom " in told


def test_what_a_fact_holds_is_taken_as_it_is() -> None:
    refused = Refused("room_not_found", "Start it with POST /v1/rooms.", {"room": r"{realm}\\1"})
    assert in_commands(refused) == r"Start it with `readyroom start {realm}\\1`."


@pytest.mark.parametrize("kind", ["folder", "binary", "gone"])
def test_a_token_file_that_cannot_be_read_is_told_in_words(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "token"
    if kind == "folder":
        path.mkdir()
    elif kind == "binary":
        path.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError) as told:
        read_token(path)
    assert "Errno" not in str(told.value)
    assert str(path) in str(told.value)
