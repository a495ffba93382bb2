"""`readyroom up` as a user knows it: real processes, real kills."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from deploy.places import LOCATION_FILE
from deploy.signals import ECHO_SECONDS
from notifier.daemon.lock import only_one

READYROOM = [sys.executable, "-m", "readyroom"]
START_SECONDS = 100
STOP_SECONDS = 60

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: lending PostgreSQL an account needs root")
on_linux = pytest.mark.skipif(
    sys.platform != "linux", reason="NOT RUN: only Linux tells a child of its parent's end"
)


class Up:
    """One `readyroom up` and its data folder; started in a session of its own, as a terminal does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None
        self.before: list[psutil.Process] = []
        self.url = ""

    @property
    def pid(self) -> int:
        assert self.process
        return self.process.pid

    def spawn(
        self, *options: str, port: int = 0, notifier: bool = False, env: dict[str, str] | None = None
    ) -> None:
        command = [*READYROOM, "up", "--data-dir", str(self.folder), "--port", str(port), *options]
        self.folder.parent.mkdir(exist_ok=True)
        with (self.folder.parent / "shown.txt").open("wb") as shown:
            self.process = subprocess.Popen(
                [*command, *([] if notifier else ["--no-notifier"])],
                stdin=subprocess.DEVNULL,
                stdout=shown,
                stderr=shown,
                start_new_session=True,
                env={**clean_environment(self.folder.parent), **(env or {})},
            )

    def start(self, *options: str, **how: Any) -> Up:
        self.spawn(*options, **how)
        wait_for("up.json", self.announced, START_SECONDS)
        self.before = [psutil.Process(self.pid), *self.children()]
        self.url = self.facts()["url"]
        return self

    def announced(self) -> bool:
        assert self.process
        assert self.process.poll() is None, self.shown()
        with contextlib.suppress(FileNotFoundError):
            return bool(json.loads((self.folder / "up.json").read_text())["pid"] == self.pid)
        return False

    def shown(self) -> str:
        return (self.folder.parent / "shown.txt").read_text()

    def facts(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "up.json").read_text()))

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.pid).children(recursive=True)

    def postmaster(self) -> psutil.Process:
        children = psutil.Process(self.pid).children()
        return next(child for child in children if child.name() == "postgres")

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        """Send a signal to `up` alone, wait for its end; its exit status."""
        assert self.process
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        assert self.process
        return self.process.wait(STOP_SECONDS)

    def call(
        self, method: str, path: str, body: Any = None, *, token: str = "", agent: str = ""
    ) -> tuple[int, Any]:
        """Status and answer of one request; status 0 when there was no answer."""
        headers = {"Authorization": f"Bearer {token or self.box_token()}", "Content-Type": "application/json"}
        if agent:
            headers["X-Tyode-Agent"] = agent
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            with error, contextlib.suppress(ValueError):
                return error.code, json.loads(error.read())
            return error.code, None
        except (OSError, ValueError, http.client.HTTPException):
            return 0, None

    def box_token(self) -> str:
        return (self.folder / "box.token").read_text().strip()

    def say(self, body: str) -> tuple[int, Any]:
        return self.call("POST", "/v1/rooms/lobby/messages", {"body": body, "client_id": body})

    def bodies(self) -> list[str]:
        status, answer = self.call("GET", "/v1/rooms/lobby/messages?limit=1000")
        assert status == 200, answer
        return [message["body"] for message in answer["messages"]]


def clean_environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("READYROOM_", "XDG_"))}
    return kept | {"HOME": str(home), "READYROOM_RUNTIME_DIR": str(home / "run")}


def wait_for(what: str, condition: Callable[[], bool], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"waited {seconds} s for {what}"
        time.sleep(0.01)


def ended(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def all_ended(up: Up) -> bool:
    return all(map(ended, up.before))


@pytest.fixture(scope="module")
def running() -> Iterator[Up]:
    """One machine for all tests that only look."""
    with machines() as new:
        yield new().start()


@pytest.fixture
def new_up() -> Iterator[Callable[[], Up]]:
    """Makes machines, each with a folder of its own."""
    with machines() as new:
        yield new


@contextlib.contextmanager
def machines() -> Iterator[Callable[[], Up]]:
    """Makes machines; ends and removes all of them afterwards."""
    base = Path(tempfile.mkdtemp(prefix="readyroom-up-"))
    base.chmod(0o755)
    made: list[Up] = []

    def new() -> Up:
        made.append(Up(base / str(len(made)) / "data"))
        made[-1].folder.parent.mkdir()
        return made[-1]

    try:
        yield new
    finally:
        for up in made:
            end_and_remove(up)
        shutil.rmtree(base)


def end_and_remove(up: Up) -> None:
    if up.process and up.process.poll() is None:
        up.end(signal.SIGTERM)
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        shutil.rmtree((up.folder / LOCATION_FILE).read_text().strip())


@pytest.fixture
def up(new_up: Callable[[], Up]) -> Up:
    return new_up()


@pytest.fixture
def talking(up: Up) -> Up:
    """A machine that runs, with a room."""
    up.start()
    assert up.call("POST", "/v1/rooms", {"name": "lobby"})[0] == 201
    return up


def test_the_first_start_tells_what_runs_and_how_to_join(running: Up) -> None:
    facts = running.facts()
    shown = running.shown()
    assert set(facts) == {"url", "nerve_url", "database_url", "pid"}
    assert facts["url"] in shown
    assert "readyroom admin invite" in shown
    assert "ssh " in shown
    assert "Only you can read them" in shown
    assert running.call("GET", "/healthz")[0] == running.call("GET", "/readyz")[0] == 200
    assert running.call("GET", "/v1/nerve")[1]["url"].rstrip("/") == facts["nerve_url"]


def test_the_lines_for_here_and_there_work_in_any_other_terminal(running: Up) -> None:
    here = re.search("here: +(.+ NAME)", running.shown())
    there = re.search(r"(readyroom connect \S+)", running.shown())
    assert here
    assert there
    home = running.folder.parent / "there"
    home.mkdir()
    environment = clean_environment(running.folder.parent)
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"

    def shell(line: str, given: str, **more: str) -> str:
        done = subprocess.run(
            line, shell=True, env={**environment, **more}, input=given, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    code = shell(here[1].replace("NAME", "work3"), "")
    assert " as work3 in " in shell(
        f"{there[1]} --no-notifier", code, HOME=str(home), READYROOM_DATA_DIR=str(home)
    )


def test_the_files_are_private_and_no_secret_is_shown(running: Up) -> None:
    for name in ("admin.token", "box.token", "up.json", "record.log", "postgres.log"):
        assert stat.S_IMODE((running.folder / name).stat().st_mode) == 0o600, name
    tokens = [(running.folder / name).read_text().strip() for name in ("admin.token", "box.token")]
    assert tokens[0].startswith("rra_")
    log = (running.folder / "record.log").read_text()
    everything = [running.shown(), log, *map(command_and_environment, running.before)]
    assert not [text for text in everything for token in tokens if token in text]


@pytest.mark.long
def test_pruning_finds_the_database_that_runs_here(running: Up) -> None:
    environment = {**clean_environment(running.folder.parent), "READYROOM_DATA_DIR": str(running.folder)}
    done = subprocess.run(
        [*READYROOM, "prune", "--keep-days", "30", "--json"], env=environment, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    assert [realm["realm"] for realm in json.loads(done.stdout)["realms"]] == ["main"]


def command_and_environment(process: psutil.Process) -> str:
    try:
        return " ".join([*process.cmdline(), *process.environ().values()])
    except psutil.Error:
        return ""


def test_the_operators_token_opens_the_operators_door_and_the_boxs_does_not(running: Up) -> None:
    admin = (running.folder / "admin.token").read_text().strip()
    assert running.call("POST", "/v1/admin/boxes", {"name": "another"}, token=admin)[0] == 201
    assert running.call("POST", "/v1/admin/boxes", {"name": "third"})[0] in (401, 403)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_everything_and_a_warm_start_keeps_the_data(up: Up, number: signal.Signals) -> None:
    up.start()
    assert up.call("POST", "/v1/rooms", {"name": "lobby"})[0] == 201
    assert up.say("before")[0] == 201
    token = up.box_token()
    assert up.end(number) == 0
    assert all_ended(up)
    assert not (up.folder / "up.json").exists()
    up.start()
    assert up.bodies() == ["before"]
    assert up.box_token() == token
    assert "Only you can read them" not in up.shown()


@pytest.mark.long
def test_a_ctrl_c_of_the_whole_group_leaves_nothing(up: Up) -> None:
    up.start()
    os.killpg(up.pid, signal.SIGINT)
    assert up.wait() == 0
    assert all_ended(up)


@pytest.mark.long
def test_it_stops_within_seconds_with_long_polls_and_nerve_links_open(talking: Up) -> None:
    asked = threading.Event()

    def poll() -> None:
        asked.set()
        talking.call("POST", "/v1/poll", {"wait_seconds": 50})

    waiting = [threading.Thread(target=poll) for _ in range(3)]
    with link(talking), link(talking):
        for thread in waiting:
            thread.start()
        asked.wait(10)
        begun = time.monotonic()
        assert talking.end() == 0
        assert time.monotonic() - begun < 10
    for thread in waiting:
        thread.join(10)
    assert all_ended(talking)
    assert "Traceback" not in (talking.folder / "record.log").read_text()


@contextlib.contextmanager
def link(up: Up) -> Iterator[socket.socket]:
    """A websocket to the nerve that is open and silent."""
    host, port = up.facts()["nerve_url"].removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(
            f"GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: {host}:{port}\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
        )
        assert b" 101 " in connection.recv(4096)
        yield connection


@pytest.mark.long
def test_a_second_ctrl_c_hurries(talking: Up) -> None:
    with link(talking):
        polling = threading.Thread(target=lambda: talking.call("POST", "/v1/poll", {"wait_seconds": 50}))
        polling.start()
        assert talking.process
        talking.process.send_signal(signal.SIGINT)
        wait_for("the first to be noticed", lambda: not (talking.folder / "up.json").exists())
        until = time.monotonic() + STOP_SECONDS
        while not ended_within(talking.process, 2 * ECHO_SECONDS):
            assert time.monotonic() < until, "pressed in vain"
            talking.process.send_signal(signal.SIGINT)
        assert talking.process.returncode == 0
        polling.join(10)
    assert "immediate shutdown" in (talking.folder / "postgres.log").read_text()
    assert all_ended(talking)
    assert talking.start().bodies() == []


def ended_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    return process.returncode is not None


@on_linux
def test_after_a_kill_nothing_runs_and_nothing_acknowledged_is_lost(talking: Up) -> None:
    acknowledged = talk_until(talking, lambda said: len(said) >= 50, then=lambda: talking.end(signal.SIGKILL))
    wait_for("every process to end", lambda: all_ended(talking))
    talking.start()
    assert set(acknowledged) <= set(talking.bodies())


@pytest.mark.long
def test_a_start_right_after_a_kill_of_the_whole_group_succeeds(talking: Up) -> None:
    assert talking.say("kept")[0] == 201
    os.killpg(talking.pid, signal.SIGKILL)
    talking.wait()
    talking.start()
    assert talking.bodies() == ["kept"]


@pytest.mark.long
def test_a_killed_postgresql_comes_back_and_nothing_acknowledged_is_lost(talking: Up) -> None:
    killed = talking.postmaster()
    statuses: set[int] = set()
    acknowledged = talk_until(talking, lambda said: len(said) >= 30, then=killed.kill, statuses=statuses)
    wait_for("the record to say that it is ready", lambda: talking.call("GET", "/readyz")[0] == 200)
    wait_for("a message to be taken", lambda: talking.say("after")[0] in (200, 201))
    assert statuses <= {201, 503}
    assert set(acknowledged) | {"after"} <= set(talking.bodies())
    assert len(talking.bodies()) == len(set(talking.bodies()))
    assert talking.postmaster().pid != killed.pid


def talk_until(
    up: Up, enough: Callable[[list[str]], bool], then: Callable[[], object], statuses: set[int] | None = None
) -> list[str]:
    """Four writers talk; once enough was acknowledged `then` is done to them, and they go on a little."""
    acknowledged: list[str] = []
    seen = statuses if statuses is not None else set()
    over = threading.Event()

    def write(writer: int) -> None:
        number = 0
        while not over.is_set():
            body = f"{writer}-{number}"
            status = up.say(body)[0]
            if status == 201:
                acknowledged.append(body)
                number += 1
            seen.add(status)

    writers = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for writer in writers:
        writer.start()
    try:
        wait_for("enough to be said", lambda: enough(acknowledged))
        then()
        until = time.monotonic() + 60
        wait_for("a refusal", lambda: bool(seen - {201}) or time.monotonic() > until)
    finally:
        over.set()
        for writer in writers:
            writer.join(60)
    assert seen - {201}, "nobody noticed"
    return acknowledged


@pytest.mark.long
def test_two_machines_run_side_by_side(new_up: Callable[[], Up]) -> None:
    first, second = new_up().start(), new_up().start()
    for up in (first, second):
        assert up.call("POST", "/v1/rooms", {"name": "lobby"})[0] == 201
    assert first.say("mine")[0] == 201
    assert (first.bodies(), second.bodies()) == (["mine"], [])
    assert first.call("GET", "/v1/whoami", token=second.box_token())[0] == 401


def test_a_taken_port_is_told_and_nothing_is_started(up: Up) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        up.spawn(port=taken.getsockname()[1])
        assert up.wait() == 1
    assert "--port" in up.shown()
    assert "Traceback" not in up.shown()
    assert not up.folder.exists()


@pytest.mark.long
def test_a_second_up_on_one_folder_says_who_holds_it(running: Up) -> None:
    done = subprocess.run(
        [*READYROOM, "up", "--data-dir", str(running.folder), "--port", "0"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=clean_environment(running.folder.parent),
    )
    assert done.returncode == 1
    assert f"process {running.pid}" in done.stderr
    assert running.call("GET", "/readyz")[0] == 200


@pytest.mark.parametrize(
    ("options", "env", "told"),
    [
        (["--port", "99999"], {}, "--port"),
        (["--host", "no such host"], {}, "--host"),
        ([], {"READYROOM_DATABASE_CONNECTIONS": "many"}, "READYROOM_DATABASE_CONNECTIONS"),
        (
            [],
            {"READYROOM_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"},
            "PostgreSQL cannot be reached at 127.0.0.1, port 1 (connection refused)",
        ),
    ],
)
def test_what_cannot_work_is_said_in_plain_words(
    up: Up, options: list[str], env: dict[str, str], told: str
) -> None:
    up.spawn(*options, env=env)
    assert up.wait() in (1, 2)
    assert told in up.shown()
    assert "Traceback" not in up.shown()
    assert "Errno" not in up.shown()


def test_a_data_folder_that_is_a_file_is_said_in_plain_words(up: Up) -> None:
    up.folder.write_text("")
    up.spawn()
    assert up.wait() == 1
    assert str(up.folder) in up.shown()
    assert "--data-dir" in up.shown()
    assert "Traceback" not in up.shown()
    assert "Errno" not in up.shown()


@pytest.mark.long
def test_a_lost_box_token_is_replaced(up: Up) -> None:
    up.start()
    lost = up.box_token()
    up.end()
    (up.folder / "box.token").unlink()
    up.start()
    assert up.box_token() != lost
    assert up.call("GET", "/v1/whoami")[0] == 200


@pytest.mark.long
def test_a_database_elsewhere_leaves_postgresql_out(new_up: Callable[[], Up], database_url: str) -> None:
    up = new_up().start(env={"READYROOM_DATABASE_URL": database_url})
    assert [child.name() for child in up.children() if child.name() == "postgres"] == []
    assert up.facts()["database_url"] == database_url
    assert up.call("POST", "/v1/rooms", {"name": "lobby"})[0] == 201
    assert not (up.folder / "postgres").exists()


@pytest.mark.long
def test_listening_beyond_this_machine_is_warned_of(up: Up) -> None:
    up.start("--host", "0.0.0.0")
    assert "TLS proxy" in up.shown()
    assert "tunnel" not in up.shown()
    assert up.facts()["url"].startswith("http://127.0.0.1:")


@pytest.mark.long
def test_the_notifier_runs_and_comes_back(up: Up) -> None:
    up.start(notifier=True)

    def notifier() -> psutil.Process | None:
        return next((child for child in psutil.Process(up.pid).children() if is_notifier(child)), None)

    wait_for("the notifier", lambda: notifier() is not None)
    first = notifier()
    assert first
    first.kill()
    wait_for("another notifier", lambda: (found := notifier()) is not None and found.pid != first.pid)
    second = notifier()
    assert second
    assert up.end() == 0
    assert ended(second)


@pytest.mark.long
def test_a_notifier_that_cannot_run_is_not_said_to_run(up: Up) -> None:
    with only_one(str(up.folder.parent / "run")):
        up.start(notifier=True)
        assert "does not run" in up.shown()
        assert f"(process {os.getpid()}, {up.folder.parent / 'run'})" in up.shown()
    log = up.folder / "notifier.log"
    wait_for("a later try", lambda: "notifier_started" in log.read_text() if log.exists() else False)


def is_notifier(process: psutil.Process) -> bool:
    try:
        return "notifier" in process.cmdline()
    except psutil.Error:
        return False


@pytest.mark.long
def test_it_reloads_at_sighup_and_ends_with_its_terminal(up: Up) -> None:
    """A terminal that closes takes everything with it."""
    command = [*READYROOM, "up", "--data-dir", str(up.folder), "--port", "0", "--no-notifier"]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(command[0], command, clean_environment(up.folder.parent))
    shuts = threading.Event()
    reader = threading.Thread(target=drain, args=(terminal, shuts), daemon=True)
    reader.start()
    wait_for("up.json", lambda: (up.folder / "up.json").exists(), START_SECONDS)
    processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    os.kill(pid, signal.SIGHUP)  # the terminal is there: this one means reload
    wait_for("the reload", lambda: '"event":"reloaded"' in (up.folder / "record.log").read_text())
    shuts.set()
    reader.join(10)
    os.close(terminal)
    assert os.waitpid(pid, 0)[1] == 0
    assert all(map(ended, processes))


def drain(terminal: int, shuts: threading.Event) -> None:
    """Read what a terminal shows, without being in the way when it is to shut."""
    with contextlib.suppress(OSError):
        while not shuts.is_set():
            if select.select([terminal], [], [], 0.05)[0]:
                os.read(terminal, 4096)


@pytest.mark.long
@as_root
def test_as_root_in_a_closed_folder_postgresql_lives_where_its_account_can_reach_it(up: Up) -> None:
    up.folder.parent.chmod(0o700)
    up.start()
    home = Path((up.folder / LOCATION_FILE).read_text().strip())
    assert stat.S_IMODE((up.folder / LOCATION_FILE).stat().st_mode) == 0o600
    assert up.postmaster().username() in ("postgres", "nobody")
    assert (home / "data" / "PG_VERSION").exists()
    assert str(home) in up.shown()
    assert stat.S_IMODE(up.folder.parent.stat().st_mode) == 0o700
