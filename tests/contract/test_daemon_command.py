"""`readyroom notifier` and `readyroom status` as a person starts them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from notifier.control.client import Control
from notifier.paths import control_socket, runtime_dir
from readyroom import __version__

READYROOM = [sys.executable, "-m", "readyroom"]
WITHIN = 30.0


@pytest.fixture
def environ() -> Iterator[dict[str, str]]:
    """A user of whom nothing is known but a record that does not answer."""
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("READYROOM_", "XDG_"))}
    with tempfile.TemporaryDirectory(prefix="rr-") as home:
        yield {
            **keep,
            "HOME": home,
            "READYROOM_RUNTIME_DIR": f"{home}/run",
            "READYROOM_URL": "http://127.0.0.1:9",
            "READYROOM_TOKEN": "a-token-that-nobody-may-see",
        }


def until(holds: Callable[[], bool], why: Callable[[], str]) -> None:
    end = time.monotonic() + WITHIN
    while not holds():
        assert time.monotonic() < end, why()
        time.sleep(0.02)


@contextmanager
def notifier(environ: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A notifier that answers."""
    log = Path(environ["HOME"], "log")
    with log.open("ab") as out:
        running = subprocess.Popen([*READYROOM, "notifier"], env=environ, stdout=out, stderr=out)
    try:
        until(lambda: answers(environ), Path(environ["HOME"], "log").read_text)
        yield running
    finally:
        if running.poll() is None:
            running.kill()
        running.wait()


def answers(environ: dict[str, str]) -> bool:
    """Whether somebody answers at the control socket."""
    try:
        with Control(control_socket(runtime_dir(environ))) as control:
            return bool(control.ask({"op": "status"})["ok"])
    except OSError:
        return False


def call(command: str, environ: dict[str, str], *more: str) -> subprocess.CompletedProcess[str]:
    done = [*READYROOM, command, *more]
    return subprocess.run(done, env=environ, capture_output=True, text=True, timeout=WITHIN, check=False)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_cleanly_when_told(environ: dict[str, str], number: signal.Signals) -> None:
    with notifier(environ) as running:
        running.send_signal(number)
        assert running.wait(WITHIN) == 0
    assert not Path(environ["READYROOM_RUNTIME_DIR"], "control.sock").exists()
    log = Path(environ["HOME"], "log").read_text()
    events = [json.loads(line)["event"] for line in log.splitlines()]
    assert events[0] == "notifier_started"
    assert events[-1] == "notifier_stopping"
    assert environ["READYROOM_TOKEN"] not in log


@pytest.mark.long
def test_a_killed_one_does_not_block_the_next_start(environ: dict[str, str]) -> None:
    with notifier(environ) as running:
        running.kill()
        running.wait()
    assert Path(environ["READYROOM_RUNTIME_DIR"], "control.sock").exists()
    with notifier(environ):
        assert json.loads(call("status", environ, "--json").stdout)["running"]


@pytest.mark.long
def test_a_second_one_says_who_runs(environ: dict[str, str]) -> None:
    with notifier(environ) as running:
        second = call("notifier", environ)
        assert second.returncode == 1
        assert f"process {running.pid}" in second.stderr
        assert "READYROOM_RUNTIME_DIR" in second.stderr


@pytest.mark.long
def test_without_a_record_it_says_where_to_get_one(environ: dict[str, str]) -> None:
    del environ["READYROOM_URL"], environ["READYROOM_TOKEN"]
    done = call("notifier", environ)
    assert done.returncode == 1
    assert "readyroom up" in done.stderr


@pytest.mark.long
@pytest.mark.parametrize("command", [["notifier"], ["run", "--", "true"]])
def test_rules_that_cannot_be_read_are_refused_where_something_starts(
    environ: dict[str, str], command: list[str]
) -> None:
    environ["READYROOM_WAKE_ON"] = "all, api=sometimes"
    done = subprocess.run([*READYROOM, *command], env=environ, capture_output=True, text=True, timeout=WITHIN)
    assert (done.returncode, done.stdout) == (1, "")
    assert "READYROOM_WAKE_ON will not do: 'api=sometimes' is none of all, addressed, none" in done.stderr


def test_status_says_that_none_runs(environ: dict[str, str]) -> None:
    done = call("status", environ)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Start one with `readyroom notifier`" in done.stderr
    told = call("status", environ, "--json")
    assert told.returncode == 1
    assert json.loads(told.stdout)["running"] is False


def test_status_shows_what_is_known(environ: dict[str, str]) -> None:
    with notifier(environ):
        nobody = call("status", environ).stdout
        assert "No session is known" in nobody
        assert f"version {__version__})" in nobody
        command = [*READYROOM, "hook", "prompt", "--for", "plain"]
        subprocess.run(command, env={**environ, "READYROOM_AGENT": "desk-agent#1"}, check=True)
        shown = call("status", environ).stdout
        (row,) = (line for line in shown.splitlines() if line.startswith("desk-agent#1"))
        assert row.split()[1:3] == ["plain", "busy"]
        assert "cannot be reached" in shown
        (session,) = json.loads(call("status", environ, "--json").stdout)["sessions"]
        assert (session["agent"], session["state"], session["pid"]) == ("desk-agent#1", "busy", os.getpid())


@pytest.mark.long
def test_a_long_runtime_folder_has_a_socket_all_the_same(environ: dict[str, str]) -> None:
    environ["READYROOM_RUNTIME_DIR"] = f"{environ['HOME']}/{'long' * 40}"
    with notifier(environ):
        assert json.loads(call("status", environ, "--json").stdout)["running"]


@pytest.mark.long
def test_wrong_usage_is_said(environ: dict[str, str]) -> None:
    assert call("notifier", environ, "--fast").returncode == 2
    assert call("status", environ, "everything").returncode == 2
