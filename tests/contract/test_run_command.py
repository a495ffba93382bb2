"""`readyroom run` with a real record and a real notifier: who the session is, and who is told of it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.contract.terminals import DEADLINE, Human, Record, program_of, tui, until

READYROOM = [sys.executable, "-m", "readyroom"]
SHOW = 'echo "I am $READYROOM_AGENT at $READYROOM_URL through $READYROOM_PTY"'
START_SECONDS = 120.0


@dataclass(frozen=True)
class Box:
    """One user on one box."""

    env: dict[str, str]
    folder: Path

    def run(self, *arguments: str, cwd: Path | None = None, status: int = 0) -> str:
        """A `readyroom run` to its end; what it printed."""
        done = subprocess.run(
            [*READYROOM, "run", *arguments],
            env=self.env,
            cwd=cwd or self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    def handle(self, *arguments: str, cwd: Path | None = None) -> str:
        """The handle that a program finds."""
        return self.run(*arguments, "--", "sh", "-c", SHOW, cwd=cwd).split()[2]

    def ask(self, *arguments: str) -> Any:
        done = subprocess.run(
            [*READYROOM, *arguments, "--json"],
            env=self.env,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return json.loads(done.stdout)

    def row(self, agent: str) -> dict[str, Any]:
        """What the roster says of an agent."""
        rows: list[dict[str, Any]] = self.ask("agents")["agents"]
        return next(row for row in rows if row["agent"] == agent)

    def known(self, agent: str) -> dict[str, Any]:
        """What the notifier knows of a session."""
        rows: list[dict[str, Any]] = self.ask("status")["sessions"]
        return next((row for row in rows if row["agent"] == agent), {})


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    """A box whose record runs, without its notifier."""
    folder = Path(tempfile.mkdtemp(prefix="rr-run-"))
    folder.chmod(0o711)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("READYROOM_", "XDG_"))}
    env |= {
        "READYROOM_DATA_DIR": str(folder / "data"),
        "READYROOM_RUNTIME_DIR": str(folder / "run"),
        "HOME": str(folder),
        "TERM": "xterm-256color",
    }
    (folder / "project").mkdir()
    with (folder / "up.log").open("wb") as log:
        up = subprocess.Popen(
            [*READYROOM, "up", "--data-dir", str(folder / "data"), "--port", "0", "--no-notifier"],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        until((folder / "data" / "up.json").exists, "a record", within=START_SECONDS)
        yield Box(env, folder / "project")
    finally:
        up.send_signal(signal.SIGINT)
        up.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def notifier(box: Box) -> Iterator[subprocess.Popen[bytes]]:
    process = start_notifier(box)
    yield process
    stop(process)


def start_notifier(box: Box) -> subprocess.Popen[bytes]:
    with (box.folder.parent / "notifier.log").open("ab") as log:
        process = subprocess.Popen(
            [*READYROOM, "notifier"], env=box.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    until(lambda: answers(box), "a notifier")
    return process


def answers(box: Box) -> bool:
    asked = [*READYROOM, "status", "--json"]
    return subprocess.run(asked, env=box.env, capture_output=True, timeout=DEADLINE).returncode == 0


def stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        process.wait(DEADLINE)


def test_the_program_finds_its_handle_and_the_record(box: Box) -> None:
    words = box.run("--role", "finder", "--", "sh", "-c", SHOW).split()
    assert words[2].endswith("-agent-finder#1")
    assert words[4] == json.loads((box.folder.parent / "data" / "up.json").read_text())["url"]
    assert words[6].startswith(str(box.folder.parent / "run"))


@pytest.mark.long
def test_it_joins_the_rooms_that_it_is_given(box: Box) -> None:
    agent = box.handle("--role", "joiner", "--room", "api", "--room", "web")
    inside = Box({**box.env, "READYROOM_AGENT": agent}, box.folder)
    for room in ("api", "web"):
        assert agent in [row["agent"] for row in inside.ask("who", room)["members"]]


@pytest.mark.long
def test_the_same_role_program_and_folder_take_the_handle_up_again(box: Box, tmp_path: Path) -> None:
    first = box.handle("--role", "again")
    assert box.row(first)["state"] == "offline"
    assert box.handle("--role", "again") == first
    assert box.handle("--role", "again", cwd=tmp_path) != first
    assert box.handle("--role", "again", "--for", "gemini") != first
    assert box.handle("--role", "again", "--new") != first
    assert box.handle("--role", "other") != first


@pytest.mark.long
def test_the_newest_of_several_is_taken_up(box: Box) -> None:
    first = box.handle("--role", "newest")
    second = box.handle("--role", "newest", "--new")
    assert first != second
    assert box.handle("--role", "newest") == second


@pytest.mark.long
def test_two_at_a_time_never_share_a_handle(box: Box, tmp_path: Path) -> None:
    shared = box.handle("--role", "twin")
    humans = [
        Human(
            [*READYROOM, "run", "--role", "twin", "--", "sh", "-c", f"{SHOW}; read wait"],
            environ=box.env,
            cwd=box.folder,
        )
        for _ in range(4)
    ]
    try:
        handles = set()
        for human in humans:
            human.sees(b" through ")
            handles.add(human.shown.split()[2].decode())
        assert len(handles) == 4
        assert shared in handles
        for human in humans:
            human.type(b"\r")
            assert human.wait() == 0
    finally:
        for human in humans:
            human.close()


def test_the_exit_status_is_the_programs(box: Box) -> None:
    box.run("--role", "exit", "--", "sh", "-c", "exit 7", status=7)


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (("--", "no-such-program"), 2, "no program that can be run"),
        ((), 2, "COMMAND"),
        (("--role", "Not A Name", "--", "true"), 1, "role"),
        (("--room", "Not A Room", "--", "true"), 1, "room"),
    ],
)
def test_what_cannot_be_done_is_said_in_plain_words(
    box: Box, arguments: tuple[str, ...], status: int, says: str
) -> None:
    said = box.run(*arguments, status=status)
    assert says.lower() in said.lower()
    assert "Traceback" not in said


@pytest.mark.long
def test_without_a_record_nothing_is_run(box: Box, tmp_path: Path) -> None:
    elsewhere = Box({**box.env, "READYROOM_URL": "http://127.0.0.1:9", "READYROOM_TOKEN": "x"}, box.folder)
    said = elsewhere.run("--", "sh", "-c", f"touch {tmp_path / 'ran'}", status=1)
    assert "cannot be reached" in said
    assert not (tmp_path / "ran").exists()


@pytest.mark.long
def test_the_notifier_knows_the_session_whenever_it_starts(
    box: Box, notifier: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    record = Record(tmp_path / "record")
    human = Human([*READYROOM, "run", "--role", "known", "--", *tui(record)], environ=box.env, cwd=box.folder)
    try:
        human.sees(b"> ")
        agent = environment_of(program_of(record).pid)["READYROOM_AGENT"]
        until(lambda: box.known(agent).get("rung") == "pty", "the session at the notifier")
        notifier.send_signal(signal.SIGKILL)
        notifier.wait(DEADLINE)
        (box.folder.parent / "run" / "sessions.json").unlink()
        again = start_notifier(box)
        try:
            until(lambda: box.known(agent).get("rung") == "pty", "the session at the next notifier")
            human.type(b"\x04")
            assert human.wait() == 0
            until(lambda: box.known(agent).get("state", "offline") == "offline", "its end")
        finally:
            stop(again)
        assert box.row(agent)["state"] == "offline"
    finally:
        human.close()


def environment_of(pid: int) -> dict[str, str]:
    pairs = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def test_the_token_is_in_no_argument(box: Box, tmp_path: Path) -> None:
    record = Record(tmp_path / "record")
    token = (box.folder.parent / "data" / "box.token").read_text().strip()
    human = Human([*READYROOM, "run", "--role", "quiet", "--", *tui(record)], environ=box.env, cwd=box.folder)
    try:
        program = program_of(record)
        assert environment_of(program.pid)["READYROOM_TOKEN"] == token
        for process in (program.pid, human.pid):
            assert token.encode() not in Path(f"/proc/{process}/cmdline").read_bytes()
        socket = Path(environment_of(program.pid)["READYROOM_PTY"])
        assert socket.stat().st_mode & 0o777 == 0o600
        assert socket.parent.stat().st_mode & 0o777 == 0o700
    finally:
        human.close()
