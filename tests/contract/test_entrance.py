"""The program in bad surroundings: plain words and an exit status, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from readyroom.__main__ import COMMANDS

READYROOM = [sys.executable, "-m", "readyroom"]
DEADLINE = 60
CTRL_C = """
import os, signal, sys
from importlib.abc import MetaPathFinder

wanted = sys.argv[1]

class Interrupts(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == wanted:
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
sys.meta_path.insert(0, Interrupts())
from readyroom.__main__ import COMMANDS, main
sys.argv = ["readyroom", next(name for name, (module, _) in COMMANDS.items() if module == wanted)]
main()
"""


def call(
    arguments: list[str], home: Path, *, shell: str | None = None, **given: str
) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("READYROOM_", "XDG_"))}
    command = [*READYROOM, *arguments]
    return subprocess.run(
        ["sh", "-c", f'"$@" {shell}', "sh", *command] if shell else command,
        env={**kept, "HOME": str(home), "READYROOM_RUNTIME_DIR": str(home / "run"), **given},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


@pytest.mark.parametrize("arguments", [["poll"], ["rooms"], ["--help"], ["up"], ["status"]])
def test_a_closed_output_is_said_in_plain_words(arguments: list[str], tmp_path: Path) -> None:
    ended = call(arguments, tmp_path, shell=">&-")
    assert (ended.returncode, ended.stderr) == (
        1,
        "readyroom: standard output is closed. Send it to a file, or to /dev/null.\n",
    )


@pytest.mark.parametrize("arguments", [["poll"], ["--help"]])
def test_all_streams_may_be_closed(arguments: list[str], tmp_path: Path) -> None:
    assert call(arguments, tmp_path, shell="<&- >&- 2>&-").returncode == 1


def test_a_hook_never_fails_for_want_of_output(tmp_path: Path) -> None:
    for shell in (">&-", "<&- >&- 2>&-", ">/dev/full"):
        ended = call(["hook", "stop", "--for", "plain"], tmp_path, shell=shell)
        assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.long
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="NOT RUN: only Linux has /dev/full")
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["poll", "--help"], ["up", "--help"]])
def test_a_full_disk_is_said_in_plain_words(arguments: list[str], tmp_path: Path) -> None:
    ended = call(arguments, tmp_path, shell=">/dev/full")
    assert ended.returncode == 1
    assert ended.stderr.endswith("standard output: no space left on device.\n")
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("module", sorted({module for module, _ in COMMANDS.values()}))
def test_ctrl_c_while_it_starts_ends_it_silently(module: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", CTRL_C, module],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=DEADLINE,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, b"", b"")


@pytest.mark.long
def test_a_url_that_is_none_is_said_in_plain_words(tmp_path: Path) -> None:
    for command in ("rooms", "broker"):
        ended = call([command], tmp_path, READYROOM_URL="http://[::1")
        assert ended.returncode in (1, 2)
        assert ended.stderr.startswith("readyroom: 'http://[::1' is no URL of a record")


@pytest.mark.long
def test_a_token_file_that_never_ends_is_said_in_plain_words(tmp_path: Path) -> None:
    given = {"READYROOM_URL": "http://127.0.0.1:9", "READYROOM_TOKEN_FILE": "/dev/zero"}
    rooms = call(["rooms"], tmp_path, **given)
    broker = call(["broker"], tmp_path, READYROOM_NERVE_TOKEN_FILE="/dev/zero", **given)
    serve = call(["serve"], tmp_path, READYROOM_DATABASE_URL_FILE="/dev/zero", **given)
    for ended in (rooms, broker, serve):
        assert ended.returncode == 1
        assert "a regular file of at most 4096 bytes" in ended.stderr
        assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    "room", ["../../admin/realms", "..", "r\n1", "Room", "@work3", "", "\x1b[2J", "x" * 65]
)
@pytest.mark.parametrize("command", ["say", "start", "join", "leave", "who", "history"])
def test_what_is_no_rooms_name_never_becomes_a_url(
    command: str,
    room: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["readyroom", command, room])
    from readyroom.__main__ import main

    with pytest.raises(SystemExit) as end:
        main()
    said = capfd.readouterr().err
    assert end.value.code == 2
    assert said.startswith(f"readyroom: {room!r} is no name of a room: 1 to 64 of a-z")
    assert said.count("\n") == 1
