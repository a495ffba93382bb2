"""`readyroom demo`: it works, it measures, and nothing is left of it, however it ends."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

DEMO = [sys.executable, "-m", "readyroom", "demo"]
BORROWED = Path("/var/lib/readyroom")
"""Where PostgreSQL's cluster lies when root runs the demo."""


@pytest.fixture
def traces(tmp_path: Path) -> Iterator[Path]:
    """A folder for temporary files; after the test there is no file, no process and no cluster left."""
    before = clusters()
    folder = tmp_path / "t"
    folder.mkdir(mode=0o755)
    yield folder
    assert list(folder.iterdir()) == []
    wait_for("every process to end", lambda: not processes_of(folder))
    assert clusters() == before


def clusters() -> set[str]:
    return set(os.listdir(BORROWED)) if BORROWED.is_dir() else set()


def processes_of(folder: Path) -> list[psutil.Process]:
    """Live processes that were started with this temporary folder."""

    def belongs(process: psutil.Process) -> bool:
        try:
            return process.environ().get("TMPDIR") == str(folder) and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False

    return [process for process in psutil.process_iter() if belongs(process)]


def wait_for(what: str, look: Callable[[], object], within: float = 60) -> None:
    end = time.monotonic() + within
    while not look():
        assert time.monotonic() < end, f"waited {within} s in vain for {what}"
        time.sleep(0.05)


def environment(traces: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(traces), "HOME": str(traces.parent), "TERM": "xterm"}


def start(traces: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*DEMO, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(traces),
    )


@pytest.mark.parametrize("nerve", ["on", "off"])
def test_one_asks_the_other_is_woken_and_answers(nerve: str, traces: Path) -> None:
    out, err = (demo := start(traces, "--json", "--nerve", nerve)).communicate(timeout=110)
    assert demo.returncode == 0, err
    legs = json.loads(out)
    assert list(legs) == ["desk → lab", "lab → desk"]
    for steps in legs.values():
        assert (steps["commit → nudge"] is None) == (nerve == "off")
        assert all(step is None or 0 < step < 60_000 for step in steps.values())
        assert sum(step for name, step in steps.items() if step and name != "commit → read") == pytest.approx(
            steps["commit → read"]
        )
    for line in ("[message from desk-agent-asker#1]", "[message from lab-agent-answerer#1]", "> Python 3."):
        assert line in err


def test_without_a_terminal_it_prints_the_lines_and_a_table(traces: Path) -> None:
    out, err = (demo := start(traces)).communicate(timeout=110)
    assert (demo.returncode, err) == (0, "")
    assert " desk │ " in out
    assert "nudge → keys" in out
    assert "\x1b" not in out


def test_on_a_terminal_it_shows_two_panes_and_then_the_table(traces: Path) -> None:
    ours, theirs = pty.openpty()
    demo = subprocess.Popen(DEMO, stdin=theirs, stdout=theirs, stderr=theirs, env=environment(traces))
    os.close(theirs)
    shown = read_all(ours, within=110)
    os.close(ours)
    assert demo.wait(10) == 0, shown
    assert b"lab-agent-answerer#1 is ready" in shown
    assert b"\x1b[?1049h" in shown, "tmux took the screen"
    assert b"nudge" in shown[shown.rindex(b"\x1b[?1049l") :], "and gave it back before the table"


def read_all(fd: int, *, within: float) -> bytes:
    """What is printed to a terminal until nobody holds its other end."""
    shown, end = b"", time.monotonic() + within
    while select.select([fd], [], [], max(0.0, end - time.monotonic()))[0]:
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    return shown


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stopped_half_way_it_leaves_nothing(number: signal.Signals, traces: Path) -> None:
    demo = start(traces)
    wait_for("a notifier", lambda: list(traces.glob("readyroom-demo-*/desk/notifier.log")))
    demo.send_signal(number)
    _, err = demo.communicate(timeout=60)
    assert demo.returncode == 1
    assert "Traceback" not in err


def test_a_part_that_dies_ends_it_with_a_sentence(traces: Path) -> None:
    demo = start(traces)
    wait_for("the second notifier", lambda: list(traces.glob("readyroom-demo-*/lab/notifier.log")))
    next(process for process in processes_of(traces) if process.cmdline()[-1:] == ["notifier"]).kill()
    _, err = demo.communicate(timeout=60)
    assert demo.returncode == 1
    assert "ended with status -9" in err
    assert "Traceback" not in err
