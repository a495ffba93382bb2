"""A bench of wakes that is told to end leaves no process and no folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.faults

WAIT_SECONDS = 90.0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda s: s.name)
def test_told_to_end_it_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "bench", "wakes", "--no-keep", "--folder", str(tmp_path)]
    bench = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: any(tmp_path.glob("*/lab/pty.jsonl")))
        running = of_the_bench(tmp_path)
        bench.send_signal(number)
        assert bench.wait(WAIT_SECONDS) == 130
    finally:
        bench.kill()
        bench.wait()
    assert len(running) > 3
    assert os.listdir(tmp_path) == []
    until(lambda: not any(process.is_running() for process in running))


def of_the_bench(folder: Path) -> list[psutil.Process]:
    """Every process that was given the bench's folder, but the bench itself."""
    found = []
    for process in psutil.process_iter():
        try:
            given = [*process.cmdline(), *process.environ().values()]
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        if any(word.startswith(f"{folder}/") for word in given):
            found.append(process)
    return found


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)
