"""Another user of the same machine: not answered by the notifier, and never taken for it."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from notifier.control.client import Control
from notifier.control.messages import Request
from notifier.control.server import serve
from notifier.paths import control_socket

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: acting as another user needs root")

STRANGER = 65534
WAIT_SECONDS = 60.0
ASK = f"""
import os, socket, sys
os.setgroups([]), os.setgid({STRANGER}), os.setuid({STRANGER})
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(b'{{"op": "status"}}\\n')
print(s.recv(100))
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody can reach; the tests' own lies in one that nobody else can enter."""
    with tempfile.TemporaryDirectory(prefix="rr-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


async def asked_by_a_stranger(path: str) -> str:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-c", ASK, path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, err = await asyncio.wait_for(child.communicate(), WAIT_SECONDS)
    return (out + err).decode()


async def test_who_is_another_user_is_not_answered(place: Path) -> None:
    asked: list[Request] = []

    async def answer(request: Request) -> dict[str, Any]:
        asked.append(request)
        return {}

    own = place / "own"
    path = control_socket(str(own))
    with structlog.testing.capture_logs() as logs:
        async with serve(path, answer):
            assert "PermissionError" in await asked_by_a_stranger(path)
            for file, mode in ((str(own), 0o755), (path, 0o666)):
                os.chmod(file, mode)  # as somebody might who does not know better
            await asked_by_a_stranger(path)
            assert asked == []
            own.chmod(0o700)
            with Control(path) as control:
                await asyncio.to_thread(control.ask, {"op": "status"})
    assert [line["event"] for line in logs] == ["control_refused_a_stranger"]
    assert len(asked) == 1


@pytest.mark.parametrize("mode", [0o700, 0o755])
def test_what_another_user_put_in_our_place_is_told_nothing(place: Path, mode: int) -> None:
    theirs = place / "theirs"
    theirs.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as false_notifier:
        false_notifier.bind(control_socket(str(theirs)))
        false_notifier.listen()
        os.chown(theirs, STRANGER, STRANGER)
        theirs.chmod(mode)
        with pytest.raises(PermissionError, match="READYROOM_RUNTIME_DIR"):
            Control(control_socket(str(theirs)))
        done = subprocess.run(
            [sys.executable, "-m", "readyroom", "hook", "prompt", "--for", "claude-code"],
            input=json.dumps({"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": "/"}),
            env={**os.environ, "READYROOM_RUNTIME_DIR": str(theirs)},
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        false_notifier.settimeout(0)
        with pytest.raises(BlockingIOError):
            false_notifier.accept()
