# ruff: noqa: RUF001 - the prompts of real programs look like other characters
"""The emulator shows what a real terminal shows. tmux is the judge."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from notifier.terminals.composer import composed
from notifier.terminals.emulator import Emulator
from notifier.terminals.keys import Keys
from notifier.terminals.output import Output
from notifier.terminals.pty import judged
from tests.contract.terminals import TmuxServer, needs_tmux, until

ROWS, COLUMNS = 12, 40
CASES = {
    "lines that scroll": "".join(f"line {n}\r\n" for n in range(30)),
    "a long line wraps": "x" * 100 + "\r\nend",
    "wide characters wrap whole": "日本" * 15 + "|",
    "a composer drawn anew": "> old\r\x1b[K> \x1b[2mhint\x1b[0m\r\x1b[2C",
    "up and down": "one\r\ntwo\r\nthree\x1b[2A\rONE\x1b[B\rTWO\x1b[1GT",
    "places": "\x1b[5;10Hhere\x1b[Htop\x1b[8dthere\x1b[3GX",
    "erasing": "abcdef\x1b[3D\x1b[K\r\n123456\x1b[3D\x1b[1K\r\nxyz\x1b[2K!",
    "erasing the screen": "a\r\nb\r\nc\r\nd\x1b[2A\x1b[J\x1b[1Jx",
    "characters in and out": "abcdef\x1b[4D\x1b[2P\x1b[2@XY\x1b[2X",
    "lines in and out": "1\r\n2\r\n3\r\n4\x1b[2A\r\x1b[Lnew\r\x1b[2B\x1b[M",
    "a scrolling region": "\x1b[2;5r" + "".join(f"\r\nr{n}" for n in range(9)) + "\x1b[r\x1b[12;1Hbottom",
    "reverse line feeds": "one\r\ntwo\x1bM\x1bM\x1bMzero",
    "the other screen and back": "home\r\n\x1b[?1049h\x1b[Hvim\x1b[?1049lback",
    "saved places": "ab\x1b7cdef\x1b8XY\x1b[s\r\nnext\x1b[uZ",
    "tabs and backspaces": "a\tb\tc\b\bd",
    "what is not for the screen": "\x1b]0;title\x07\x1b[?2004h\x1b[>1u\x1b[?25lA\x1bP+q\x1b\\B\x1b(BC",
    "repeated characters": "=\x1b[10b|",
}


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TmuxServer]:
    server = TmuxServer(tmp_path_factory.mktemp("judge") / "tmux.sock")
    server.ask("new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), "exec cat")
    server.ask("set-option", "-g", "status", "off")
    server.ask("resize-window", "-x", str(COLUMNS), "-y", str(ROWS))
    yield server
    server.kill()


@needs_tmux
@pytest.mark.parametrize("text", CASES.values(), ids=CASES)
def test_what_is_shown(judge: TmuxServer, tmp_path: Path, text: str) -> None:
    assert shown(text) == by_tmux(judge, tmp_path, text)


@needs_tmux
def test_it_makes_no_difference_how_output_is_cut(judge: TmuxServer) -> None:
    chance = random.Random(1)
    for text in CASES.values():
        data, emulator = text.encode(), Emulator(ROWS, COLUMNS)
        while data:
            size = chance.randint(1, 5)
            emulator.feed(data[:size])
            emulator.screen()
            data = data[size:]
        assert rows(emulator) == shown(text)


def test_of_very_much_output_the_end_is_right() -> None:
    emulator = Emulator(ROWS, COLUMNS)
    for number in range(100_000):
        emulator.feed(b"line %d\r\n" % number)
    assert rows(emulator)[-2] == "line 99999"


def test_a_resize_keeps_what_stands_around_the_cursor() -> None:
    emulator = Emulator(4, 20)
    emulator.feed(b"one\r\ntwo\r\nthree\r\n> four")
    emulator.resize(2, 10)
    assert rows(emulator) == ["three", "> four"]
    emulator.resize(5, 20)
    assert rows(emulator) == ["three", "> four", "", "", ""]


@pytest.mark.parametrize(
    ("program", "keys", "printed", "draft"),
    {
        "Escape left the composer empty": ("plain", b"\x1b", b"\r\n> ", "empty"),
        "an arrow brought an old prompt back": ("plain", b"\x1b[A", b"\r> old", "draft"),
        "a hidden answer to a question": ("plain", b"secret", b"\rPassword: ", "draft"),
        "nothing is known": ("plain", b"\x1b", b"\r\nsomething", "draft"),
        "keys alone know of a draft": ("plain", b"abc", b"", "draft"),
        "the screen alone knows of a draft": ("plain", b"", b"\r> left over", "draft"),
        "a key that answered a dialog": (
            "claude-code",
            b"1",
            ("\r\n" + "─" * 20 + "\r\n❯ \r\n" + "─" * 20).encode(),
            "empty",
        ),
        "the same without a composer": ("claude-code", b"1", b"\r\nworking", "draft"),
    }.values(),
)
def test_keys_and_screen_judge_together(program: str, keys: bytes, printed: bytes, draft: str) -> None:
    emulator, typed = Emulator(ROWS, COLUMNS), Keys()
    emulator.feed(b"> ")
    typed.feed(keys, 1.0)
    emulator.feed(printed)
    assert judged(program, keys=typed.draft, shown=composed(emulator.screen(), program)) == draft


@pytest.mark.parametrize("program", ["claude-code", "codex", "gemini"])
def test_a_screen_without_the_composer_of_a_known_program_is_not_idle(program: str) -> None:
    """A menu, a dialog, something new: although no key was pressed since Enter."""
    emulator, typed = Emulator(ROWS, COLUMNS), Keys()
    emulator.feed(b"\r\nDo you want to proceed?\r\n  1. Yes\r\n")
    typed.feed(b"go\r", 1.0)
    assert judged(program, keys=typed.draft, shown=composed(emulator.screen(), program)) == "unknown"


@pytest.mark.parametrize(
    "form", ["\x1b[%sH", "\x1b[?%sh", "\x1b[%sm", "\x1b[38;5;%sm", "\x1b[%s@", "\x1b[%sb"]
)
def test_a_number_of_any_length_is_survived(form: str) -> None:
    data = (form % ("9" * 5000) + "after").encode()
    output = Output()
    output.feed(data, 1.0)
    assert (output.bracketed, output.alternate) == (False, False)
    assert any("after" in row for row in shown(data.decode()))


def shown(text: str) -> list[str]:
    emulator = Emulator(ROWS, COLUMNS)
    emulator.feed(text.encode())
    return rows(emulator)


def rows(emulator: Emulator) -> list[str]:
    return ["".join(cell.text for cell in row).rstrip() for row in emulator.screen().rows]


def by_tmux(server: TmuxServer, folder: Path, text: str) -> list[str]:
    (folder / "text").write_bytes(text.encode())
    done = folder / "done"
    server.ask("respawn-pane", "-k", f"stty -opost -echo; cat {folder / 'text'}; touch {done}; exec cat")
    until(done.exists, "the output")
    seen: list[list[str]] = []

    def at_rest() -> bool:
        answer = subprocess.run(
            ["tmux", "-S", server.socket, "capture-pane", "-p"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
        seen.append([line.rstrip() for line in answer.stdout.split("\n")[:ROWS]])
        return len(seen) > 2 and seen[-1] == seen[-2] == seen[-3]

    until(at_rest, "a screen at rest")
    return seen[-1]
