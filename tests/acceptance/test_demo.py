"""`readyroom demo`: it works, it measures, and nothing is left of it, however it ends."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

DEMO = [sys.executable, "-m", "readyroom", "demo"]
RUN_SECONDS = 110.0


@dataclass
class Traces:
    """A folder for temporary files, and where PostgreSQL's cluster lay when that was elsewhere."""

    folder: Path
    clusters: set[str] = field(default_factory=set)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*DEMO, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment(),
        )

    def environment(self) -> dict[str, str]:
        home = self.folder.parent
        return {**os.environ, "TMPDIR": str(self.folder), "HOME": str(home), "TERM": "xterm"}

    def finish(self, demo: subprocess.Popen[str]) -> tuple[str, str]:
        def ended() -> bool:
            self.note_clusters()
            return demo.poll() is not None

        wait_for("the demo to end", ended, RUN_SECONDS)
        return demo.communicate()

    def note_clusters(self) -> None:
        """Root's PostgreSQL can't live in root's own folders; a file says where it does."""
        for location in self.folder.glob("*/record/postgres.location"):
            try:
                self.clusters.add(location.read_text().strip())
            except FileNotFoundError:
                continue

    def processes(self) -> list[psutil.Process]:
        return [process for process in psutil.process_iter() if self._started_here(process)]

    def _started_here(self, process: psutil.Process) -> bool:
        try:
            ours = process.environ().get("TMPDIR") == str(self.folder)
            return ours and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False


@pytest.fixture
def traces(tmp_path: Path) -> Iterator[Traces]:
    """After the test there is no file, no process and no cluster left."""
    traces = Traces(tmp_path / "t")
    traces.folder.mkdir()
    yield traces
    assert list(traces.folder.iterdir()) == []
    wait_for("every process to end", lambda: not traces.processes())
    assert [cluster for cluster in traces.clusters if Path(cluster).exists()] == []


def wait_for(what: str, look: Callable[[], object], within: float = 60) -> None:
    end = time.monotonic() + within
    while not look():
        assert time.monotonic() < end, f"waited {within} s in vain for {what}"
        time.sleep(0.02)


def test_one_asks_the_other_is_woken_and_answers(traces: Traces) -> None:
    out, err = traces.finish(demo := traces.start("--json"))
    assert demo.returncode == 0, err
    legs = json.loads(out)["legs"]
    assert [(leg["from"], leg["to"]) for leg in legs] == [("desk", "lab"), ("lab", "desk")]
    for leg in legs:
        nudge, keys, read, whole = (value for name, value in leg.items() if name.endswith("_ms"))
        assert min(nudge, keys, read) > 0
        assert nudge + keys + read == pytest.approx(whole, abs=0.5)
        assert whole < 60_000
    for line in ("[message from desk-agent-asker#1]", "[message from lab-agent-answerer#1]", "> Python 3."):
        assert line in err


@pytest.mark.long
def test_without_the_nerve_the_re_check_finds_it(traces: Traces) -> None:
    out, err = traces.finish(demo := traces.start("--nerve", "off"))
    assert (demo.returncode, err) == (0, "")
    assert " desk │ [message from lab-agent-answerer#1]" in out
    nudges = next(line for line in out.splitlines() if "commit → nudge" in line)
    assert nudges.count("no nudge") == 2
    assert "commit → keys" in out
    assert "\x1b" not in out


@pytest.mark.long
@pytest.mark.skipif(
    shutil.which("tmux") is None, reason="tmux is not installed: its half of the demo is untested"
)
@pytest.mark.parametrize("deeper", ["", "long" * 20], ids=["usual", "long"])
def test_on_a_terminal_it_shows_two_panes_and_then_the_table(traces: Traces, deeper: str) -> None:
    traces.folder /= deeper
    traces.folder.mkdir(exist_ok=True)
    ours, theirs = pty.openpty()
    demo = subprocess.Popen(DEMO, stdin=theirs, stdout=theirs, stderr=theirs, env=traces.environment())
    os.close(theirs)
    shown = read_all(ours, within=RUN_SECONDS, meanwhile=traces.note_clusters)
    os.close(ours)
    assert demo.wait(10) == 0, shown
    assert b"lab-agent-answerer#1 is ready" in shown
    assert b"\x1b[?1049h" in shown, "tmux took the screen"
    assert b"nudge" in shown[shown.rindex(b"\x1b[?1049l") :], "and gave it back before the table"


def read_all(fd: int, *, within: float, meanwhile: Callable[[], None]) -> bytes:
    """What is printed to a terminal until nobody holds its other end."""
    shown, end = b"", time.monotonic() + within
    while select.select([fd], [], [], max(0.0, end - time.monotonic()))[0]:
        meanwhile()
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    return shown


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_half_way_it_leaves_nothing(number: signal.Signals, traces: Traces) -> None:
    demo = traces.start()
    wait_for("a notifier", lambda: list(traces.folder.glob("*/desk/notifier.log")))
    demo.send_signal(number)
    _, err = traces.finish(demo)
    assert (demo.returncode, err) == (1, "readyroom demo: stopped.\n")


@pytest.mark.long
def test_a_part_that_dies_ends_it_with_a_sentence(traces: Traces) -> None:
    demo = traces.start()
    wait_for("the second notifier", lambda: list(traces.folder.glob("*/lab/notifier.log")))
    next(process for process in traces.processes() if process.cmdline()[-1:] == ["notifier"]).kill()
    _, err = traces.finish(demo)
    assert demo.returncode == 1
    assert "ended with status -9" in err
    assert "Traceback" not in err
