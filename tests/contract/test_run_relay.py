"""`readyroom run` is not noticed by the program in it, nor by the human in front of it."""

from __future__ import annotations

import hashlib
import os
import re
import select
import shlex
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from notifier.terminals.process import hold_of, process_of
from tests.contract.terminals import BARE_RUN, DEADLINE, Human, Record, program_of, tui, until

ECHO = """
import os, sys, termios, tty
tty.setraw(0)
os.write(1, b"ready")
left = int(sys.argv[1])
while left:
    data = os.read(0, 65536)
    left -= len(data)
    while data:
        data = data[os.write(1, data):]
"""
"""A raw program that gives back what it gets, and ends after so many bytes."""

SIZES = """
import os, signal, time
signal.signal(signal.SIGWINCH, lambda *_: print("%d x %d" % os.get_terminal_size(), flush=True))
print("ready", flush=True)
while True:
    time.sleep(0.02)
"""
"""`signal.pause` would miss a signal that comes just before it."""


@pytest.fixture
def socket(tmp_path: Path) -> str:
    return str(tmp_path / "run.sock")


@pytest.fixture
def humans() -> Iterator[list[Human]]:
    all_: list[Human] = []
    yield all_
    for human in all_:
        human.close()


def bare(socket: str, *command: str) -> list[str]:
    return [sys.executable, BARE_RUN, socket, *command]


def shell(humans: list[Human]) -> Human:
    human = Human(["bash", "--norc", "--noprofile", "-i"], environ={"PS1": "@ ", "HISTFILE": ""})
    humans.append(human)
    human.sees(b"@ ")
    return human


@pytest.mark.parametrize(
    ("command", "status"),
    [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143), ("kill -KILL $$", 137), ("kill -HUP $$", 129)],
)
def test_the_exit_status_is_the_programs(socket: str, command: str, status: int) -> None:
    done = subprocess.run(bare(socket, "sh", "-c", command), stdin=subprocess.DEVNULL, timeout=DEADLINE)
    assert done.returncode == status
    assert not os.path.exists(socket)


def test_a_pipe_a_file_and_nothing_at_all_will_do_for_standard_input(socket: str, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_bytes(b"one\ntwo\nno line feed")
    with text.open("rb") as file:
        from_file = subprocess.run(bare(socket, "cat"), stdin=file, capture_output=True, timeout=DEADLINE)
    from_pipe = subprocess.run(
        bare(socket, "cat"), input=text.read_bytes(), capture_output=True, timeout=DEADLINE
    )
    for done in (from_file, from_pipe):
        assert (done.returncode, done.stdout) == (0, b"one\r\ntwo\r\nno line feed")
    nothing = subprocess.run(
        bare(socket, "sh", "-c", "tty; exit 3"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=DEADLINE,
    )
    assert nothing.returncode == 3
    assert nothing.stdout.startswith(b"/dev/")


def test_much_output_comes_whole_and_in_order(socket: str, humans: list[Human]) -> None:
    human = Human(bare(socket, "seq", "1", "200000"))
    humans.append(human)
    assert human.wait() == 0
    expected = "".join(f"{number}\r\n" for number in range(1, 200001)).encode()
    until(lambda: len(human.shown) >= len(expected), "all of it")
    assert hashlib.sha256(human.shown).digest() == hashlib.sha256(expected).digest()


def test_a_megabyte_both_ways_at_once_neither_blocks_nor_loses(socket: str, humans: list[Human]) -> None:
    data = os.urandom(1_000_000)
    human = Human(bare(socket, sys.executable, "-c", ECHO, str(len(data))))
    humans.append(human)
    human.sees(b"ready")
    rest = data
    while rest:
        rest = rest[os.write(human.fd, rest[:4096]) :]
    until(lambda: len(human.shown) >= len(data) + 5, "all of it back", within=60)
    assert human.shown[5:] == data
    assert human.wait() == 0


def test_keys_of_every_kind_reach_the_program_unchanged(
    socket: str, humans: list[Human], tmp_path: Path
) -> None:
    record = Record(tmp_path / "record")
    human = Human(bare(socket, *tui(record, "--mute")))
    humans.append(human)
    human.sees(b"> ")
    keys = b"".join(
        (
            bytes(code for code in range(256) if code not in (4, 26)),
            b"\x1b[A\x1bOP\x1b[1;5C\x1b[97;5u\x1b[13;2u\x1b[57441;2:3u\x1b[27;5;99~",
            b"\x1b[200~pasted \r\n text\x1b[201~\x1b[<0;10;10M\x1b[<0;10;10m\x1b[I\x1b[O\x1b[12;1R",
        )
    )
    human.type(keys)
    until(lambda: record.bytes == keys, "the keys")


def test_a_resize_reaches_the_program(socket: str, humans: list[Human]) -> None:
    human = Human(bare(socket, sys.executable, "-c", SIZES))
    humans.append(human)
    human.sees(b"ready")
    for rows, columns in ((41, 123), (24, 80), (25, 80)):
        human.resize(rows, columns)
        human.sees(f"{columns} x {rows}".encode())


def test_the_program_finds_the_terminal_as_the_human_left_it(socket: str, humans: list[Human]) -> None:
    human = shell(humans)
    human.type(b"stty erase ^H susp ^Y; stty -g\r")
    human.sees(b":", times=10)
    before = modes(human.shown)
    human.type(shlex.join(bare(socket, "stty", "-g")).encode() + b"\r")
    until(lambda: len(all_modes(human.shown)) == 2, "the modes inside")
    assert all_modes(human.shown)[1] == before


def test_ctrl_c_reaches_the_program_and_not_us(socket: str, humans: list[Human]) -> None:
    human = shell(humans)
    script = "trap 'echo interrupted; exit 9' INT; echo ready; while :; do sleep 0.01; done"
    human.type(shlex.join(bare(socket, "sh", "-c", script)).encode() + b"; echo status=$?\r")
    human.sees(b"ready\r\n")
    human.type(b"\x03")
    human.sees(b"interrupted")
    human.sees(b"status=9")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1])
def test_a_signal_to_run_goes_to_the_program(
    socket: str, humans: list[Human], number: signal.Signals
) -> None:
    name = number.name.removeprefix("SIG")
    script = f"trap 'echo caught; exit 5' {name}; echo ready; while :; do sleep 0.01; done"
    human = Human(bare(socket, "sh", "-c", script))
    humans.append(human)
    human.sees(b"ready")
    os.kill(human.pid, number)
    human.sees(b"caught")
    assert human.wait() == 5


def test_suspending_the_program_suspends_run_and_fg_brings_both_back(
    socket: str, humans: list[Human], tmp_path: Path
) -> None:
    record = Record(tmp_path / "record")
    human = shell(humans)
    human.type(b"stty -g\r")
    human.sees(b":", times=10)
    human.type(shlex.join(bare(socket, *tui(record))).encode() + b"\r")
    process = program_of(record)
    human.sees(b"\x1b[?2004h> ")
    for round_ in (1, 2):
        human.type(b"\x1a")
        human.sees(b"Stopped", times=round_)
        assert hold_of(process, tty=None) == "suspended"
        human.type(b"stty -g\r")
        until(lambda: len(all_modes(human.shown)) == round_ + 1, "the modes in the shell")  # noqa: B023
        human.type(b"fg\r")
        until(lambda: hold_of(process, tty=None) is None, "fg")
        human.type(b"%d" % round_)
        until(lambda: record.bytes.endswith(b"%d" % round_), "keys after fg")  # noqa: B023
    human.type(b"\x04")
    until(lambda: not os.path.exists(socket), "the end of run")
    human.type(b"echo status=$?; stty -g\r")
    human.sees(b"status=0")
    until(lambda: len(all_modes(human.shown)) == 4, "the modes at the end")
    assert len(set(all_modes(human.shown))) == 1


def test_a_program_that_leaves_suspending_to_the_kernel_can_be_suspended(
    socket: str, humans: list[Human]
) -> None:
    human = shell(humans)
    human.type(shlex.join(bare(socket, "cat")).encode() + b"\r")
    human.sees(b"\r\n")
    until(lambda: os.path.exists(socket), "cat")
    human.type(b"before\r")
    human.sees(b"before\r\nbefore\r\n")
    human.type(b"\x1a")
    until(lambda: b"@ " in human.shown.partition(b"Stopped")[2], "the shell's prompt")
    human.type(b"fg\r")
    human.type(b"after\r")
    human.sees(b"after\r\nafter\r\n")
    human.type(b"\x04")
    until(lambda: not os.path.exists(socket), "cat's end")
    human.type(b"echo status=$?\r")
    human.sees(b"status=0")


@pytest.mark.parametrize("end", ["exit", "killed", "terminated", "not there"])
def test_the_humans_terminal_is_given_back_however_it_ends(
    socket: str, humans: list[Human], tmp_path: Path, end: str
) -> None:
    record = Record(tmp_path / "record")
    human = shell(humans)
    human.type(b"stty -g\r")
    human.sees(b":", times=10)
    command = ["/nonexistent"] if end == "not there" else tui(record)
    human.type(shlex.join(bare(socket, *command)).encode() + b"; echo status=$?\r")
    if end != "not there":
        process = program_of(record)
        human.sees(b"\x1b[?2004h> ")
        if end == "exit":
            human.type(b"\x04")
        elif end == "killed":
            os.kill(process.pid, signal.SIGKILL)
        else:
            os.kill(run_of(process.pid), signal.SIGTERM)
    until(lambda: re.search(rb"status=\d", human.shown) is not None, "the status, not its command's echo")
    human.type(b"stty -g\r")
    until(lambda: len(all_modes(human.shown)) == 2, "the modes afterwards")
    assert len(set(all_modes(human.shown))) == 1


def test_when_run_is_killed_the_program_is_hung_up_and_nothing_stays(
    socket: str, humans: list[Human], tmp_path: Path
) -> None:
    record = Record(tmp_path / "record")
    human = Human(bare(socket, *tui(record)))
    humans.append(human)
    human.sees(b"> ")
    process = program_of(record)
    leader = process_of(parent_of(process.pid))
    assert leader is not None
    os.kill(human.pid, signal.SIGKILL)
    until(lambda: hold_of(process, tty=None) == "process gone", "the program's end")
    until(lambda: hold_of(leader, tty=None) == "process gone", "the leader's end")


def test_a_key_is_not_noticeably_later(socket: str, humans: list[Human]) -> None:
    plain = round_trips(humans, [sys.executable, "-c", ECHO, "1000000"])
    through = round_trips(humans, bare(socket, sys.executable, "-c", ECHO, "1000000"))
    added = statistics.median(through) - statistics.median(plain)
    print(
        f"a key there and back: {statistics.median(plain):.2f} ms plain, "
        f"{statistics.median(through):.2f} ms through run (p99 {sorted(through)[-3]:.2f} ms)"
    )
    assert added < 20


def round_trips(humans: list[Human], command: list[str]) -> list[float]:
    """Milliseconds from a key to its echo, 200 times."""
    human = Human(command, reading=False)
    humans.append(human)
    seen = b""
    while b"ready" not in seen:
        seen += os.read(human.fd, 4096)
    times = []
    for _ in range(200):
        begun = time.perf_counter()
        human.type(b"x")
        assert select.select([human.fd], [], [], DEADLINE)[0]
        os.read(human.fd, 4096)
        times.append((time.perf_counter() - begun) * 1000)
    return times


def all_modes(shown: bytes) -> list[bytes]:
    return re.findall(rb"(?:[0-9a-f]+:){30,}[0-9a-f]+", shown)


def modes(shown: bytes) -> bytes:
    return all_modes(shown)[-1]


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def run_of(pid: int) -> int:
    return parent_of(parent_of(pid))
