"""The socket of a `readyroom run` survives whatever is written to it."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from notifier.terminals.door import door
from notifier.terminals.memory import MemoryTerminal
from notifier.terminals.process import process_of


@pytest.fixture
def terminal() -> MemoryTerminal:
    return MemoryTerminal()


@pytest.fixture
async def path(terminal: MemoryTerminal) -> AsyncIterator[str]:
    with tempfile.TemporaryDirectory(prefix="rr-") as folder:
        path = str(Path(folder) / "run.sock")
        async with door(path, terminal, ring=lambda: None, hold_of=lambda _: "not in front"):
            yield path


async def asked(path: str, line: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(line)
    writer.write_eof()
    async with asyncio.timeout(60):
        answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"garbage\n",
        b"[]\n",
        b"\xff\n",
        b'{"op": "wake", "line": "/catchup"}\n',
        b'{"op": "wake", "line": "/catchup", "process": {"pid": "1", "started": 2}}\n',
        b"[" * 15_000 + b"\n",
        b"x" * 100_000,
    ],
)
async def test_a_bad_request_wakes_nobody_and_harms_nobody(
    path: str, terminal: MemoryTerminal, line: bytes
) -> None:
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, fault: faults.append(fault))
    answer = await asked(path, line)
    assert not answer or "error" in json.loads(answer)
    assert json.loads(await asked(path, b'{"op": "look"}\n'))["draft"] == "empty"
    assert (faults, terminal.composer, terminal.received) == ([], "", [])


async def test_a_process_that_is_not_in_front_is_not_typed_to(path: str, terminal: MemoryTerminal) -> None:
    ours = process_of(os.getpid())
    assert ours is not None
    process = {"pid": ours.pid, "started": ours.started}
    answer = await asked(
        path, json.dumps({"op": "wake", "line": "/catchup", "process": process}).encode() + b"\n"
    )
    assert json.loads(answer) == {"sent": False, "hold": "not in front"}
    assert (terminal.composer, terminal.received) == ("", [])


async def test_only_this_user_can_reach_it(path: str) -> None:
    assert os.stat(path).st_mode & 0o777 == 0o600
