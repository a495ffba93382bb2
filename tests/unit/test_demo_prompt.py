"""The scripted agent's prompt line, on a real pseudo-terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import ptyprocess
import pytest

PROGRAM = """
from readyroom.demo.prompt import Prompt
with Prompt() as prompt:
    while (line := prompt.read()) is not None:
        print("GOT", ascii(line), flush=True)
"""


@pytest.fixture
def terminal() -> Iterator[ptyprocess.PtyProcess]:
    process = ptyprocess.PtyProcess.spawn([sys.executable, "-c", PROGRAM])
    read_until(process, b"> ")
    yield process
    process.close(force=True)


def read_until(process: ptyprocess.PtyProcess, wanted: bytes) -> bytes:
    shown = b""
    while wanted not in shown:
        shown += process.read(1024)
    return shown


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (b"hello\r", "hello"),
        (b"\x1b[200~/catchup\x1b[201~\r", "/catchup"),
        (b"\x1b[200~a\nb\x1b[201~c\r", "a\\nbc"),
        (b"abx\x7fc\r", "abc"),
        (b"\x7fa\xe2\x82\xacx\x7f\x7fb\r", "ab"),
        (b"a\x1b[A\x1bOP\x1b[1;5Cb\r", "ab"),
        (b"\r", ""),
    ],
)
def test_it_submits_what_was_typed_or_pasted(keys: bytes, line: str, terminal: ptyprocess.PtyProcess) -> None:
    terminal.write(keys)
    assert f"GOT '{line}'".encode() in read_until(terminal, b"'\r\n")


def test_keys_that_come_in_pieces_are_put_together(terminal: ptyprocess.PtyProcess) -> None:
    for piece in (b"a\x1b", b"[20", b"0~b\xe2", b"\x82\xac\x1b[201", b"~\r"):
        terminal.write(piece)
    assert b"GOT 'ab\\u20ac'" in read_until(terminal, b"'\r\n")


def test_it_asks_for_bracketed_paste_and_gives_the_terminal_back(terminal: ptyprocess.PtyProcess) -> None:
    terminal.write(b"\x04")
    assert b"\x1b[?2004l" in read_until(terminal, b"\x1b[?2004l")
    assert terminal.wait() == 0
