"""Record, nerve, notifier and an idle session: processes that can be killed, frozen and started again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import psutil

from deploy.children import dies_with_us
from notifier.control.client import Control
from notifier.paths import control_socket
from readyroom.demo.journal import Journal
from readyroom.demo.play import agent_program, launched
from readyroom.demo.stage import clean_environment
from readyroom.demo.windows import PtyWindow
from tests.contract.nerves import free_port, until
from tests.faults.processes import NO_LIMITS
from tests.http.running import Party, Running, settings_for

ROOM = "night"
NEVER_SWEEP = "3600"
"""Seconds; so seldom that nothing but the nerve brings a wake."""
START_SECONDS = 60.0
READ_SECONDS = 90.0


class Part:
    """A process of the product: the same one, at the same place, each time that it is started."""

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str], log: Path) -> None:
        self._command, self._env = list(command), {**clean_environment(), **env}
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, with an empty log."""
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                self._command,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=dies_with_us(signal.SIGKILL),
            )

    def kill(self) -> None:
        """As the kernel does it, without a word; one that does not run is fine."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def freeze(self) -> None:
        self._running.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._running.send_signal(signal.SIGCONT)

    def says(self, word: str) -> int:
        """How often its log has this word since it was started."""
        return self.log.read_text().count(word)

    def weighs(self) -> float:
        """MiB of memory that it has in use."""
        return float(psutil.Process(self._running.pid).memory_info().rss) / 2**20

    def links(self) -> int:
        """How many TCP connections it has, in whatever network namespace."""
        folder = Path(f"/proc/{self._running.pid}")
        rows = [line.split() for line in (folder / "net/tcp").read_text().splitlines()[1:]]
        established = {row[9] for row in rows if row[3] == "01"}
        return sum(_inode(file) in established for file in (folder / "fd").iterdir())

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        assert self.process is not None
        return self.process


@dataclass
class World:
    """All that runs around one idle session, and somebody who speaks to it.

    Attributes:
        nerve: where it stands apart from the record.
        running: the tests' own way to the record.
        journal: what the session did and when.
    """

    record: Part
    nerve: Part | None
    notifier: Part
    running: Running
    runtime: Path
    journal: Journal
    speaker: Party

    async def say(self) -> int:
        """Say something that the session is to read; returns its id."""
        said = await self.speaker.post(f"/v1/rooms/{ROOM}/messages", {"body": "Are you there?"})
        assert said.status == 201, said
        return int(said.body["message"]["id"])

    def status(self) -> dict[str, Any]:
        """What the notifier says of itself; empty when it does not answer."""
        try:
            with Control(control_socket(str(self.runtime))) as control:
                return control.ask({"op": "status"})
        except OSError:
            return {}

    def hears(self) -> bool:
        """Whether the notifier hears the nerve, as far as it knows."""
        status = self.status()
        return bool(status) and status["nerve"]["trouble"] is None

    def rests(self) -> bool:
        """Whether the session waits for input and nothing of it is unread."""
        rows = self.status().get("sessions", [])
        return [(row["state"], row["unread"]) for row in rows if row["state"] != "offline"] == [("idle", 0)]

    def links(self) -> int:
        """How many TCP connections the nerve's process has."""
        return (self.nerve or self.record).links()

    def weights(self) -> dict[str, float]:
        """MiB of each process that works."""
        parts = {"record": self.record, "nerve": self.nerve, "notifier": self.notifier}
        return {name: round(part.weighs(), 1) for name, part in parts.items() if part}

    async def until_up(self) -> None:
        """Wait until everything is as it should be."""
        await until(lambda: self.hears() and self.rests(), "an idle session", START_SECONDS)

    async def until_ready(self) -> None:
        """Wait until the record answers."""
        await ready(self.running, self.record)

    async def woken_for(self, *messages: int) -> float:
        """Wait until the session has read all of them; when the keys of the last wake for them came."""
        moments: dict[int, float] = {}
        end = time.monotonic() + READ_SECONDS
        while not moments.keys() >= set(messages):
            assert time.monotonic() < end, f"never read: {set(messages) - moments.keys()}\n{self.told()}"
            await asyncio.sleep(0.01)
            keys = 0.0
            for noted in self.journal.events():
                keys = noted["at"] if noted["event"] == "keys" else keys
                if noted["event"] == "read":
                    moments.setdefault(noted["id"], keys)
        return max(moments[message] for message in messages)

    def told(self) -> str:
        """The end of what the notifier wrote down, and what it says now."""
        return f"{self.notifier.log.read_text()[-3000:]}\n{self.status()}"


@dataclass(frozen=True)
class Ground:
    """Where the parts run: this machine, unless commands that are put before theirs take them elsewhere.

    Attributes:
        far: the way into the place of the record and its nerve.
        near: the way into the place of the notifier and its session.
        host: the address of the far place.
        door: a Unix socket by which the tests themselves reach the record, if not by its address.
    """

    far: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    door: str | None = None


@contextlib.asynccontextmanager
async def world(
    database_url: str,
    folder: Path,
    *,
    ground: Ground | None = None,
    alone: bool = False,
    port: int | None = None,
    by: str | None = None,
) -> AsyncIterator[World]:
    """Start all of it. `alone`: the nerve is a process of its own; `by`: the address that the box knows."""
    ground = ground or Ground()
    port = port or free_port()
    url = f"http://{ground.host}:{port}"
    record, nerve = _services(database_url, folder, ground, url=url, port=port, alone=alone)
    connector = aiohttp.UnixConnector(ground.door) if ground.door else aiohttp.TCPConnector(force_close=True)
    async with contextlib.AsyncExitStack() as undo:
        timeout = aiohttp.ClientTimeout(READ_SECONDS)
        http = await undo.enter_async_context(aiohttp.ClientSession(connector=connector, timeout=timeout))
        home = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="rr-", ignore_cleanup_errors=True)))
        for part in filter(None, (record, nerve)):
            undo.callback(part.kill)
            part.start()
        running = Running(url, http)
        await ready(running, record)
        speaker = await running.person("speaker")
        assert (await speaker.post("/v1/rooms", {"name": ROOM})).status in (200, 201)
        env = _of_the_box(home, by or url, (await running.box("desk")).token or "")
        command = [*ground.near, sys.executable, "-m", "readyroom", "notifier"]
        notifier = Part(command, env=env, log=folder / "notifier.log")
        undo.callback(notifier.kill)
        notifier.start()
        made = World(record, nerve, notifier, running, home / "run", Journal(home / "agent"), speaker)
        await until(made.status, "the notifier", START_SECONDS)
        program = launched(agent_program(room=ROOM, log=home / "agent"), role="sleeper", room=ROOM)
        window = PtyWindow([*ground.near, *program], env=clean_environment() | env, show=lambda _: None)
        undo.callback(window.close)
        await made.until_up()
        yield made


async def ready(running: Running, record: Part) -> None:
    """Wait until a record answers."""
    end = time.monotonic() + START_SECONDS
    while True:
        with contextlib.suppress(aiohttp.ClientError, OSError):
            if (await running.stranger.get("/readyz")).status == 200:
                return
        assert time.monotonic() < end, record.log.read_text()[-2000:]
        await asyncio.sleep(0.01)


def _services(
    database_url: str, folder: Path, ground: Ground, *, url: str, port: int, alone: bool
) -> tuple[Part, Part | None]:
    env = {
        **NO_LIMITS,
        "READYROOM_DATABASE_URL": database_url,
        "READYROOM_ADMIN_TOKEN_FILE": str(settings_for(database_url, folder).admin_token_file),
        "READYROOM_HOST": ground.host,
        "READYROOM_PORT": str(port),
    }
    nerve = None
    if alone:
        token, nerve_port = folder / "nerve.token", str(free_port())
        token.write_text("the-records-own\n")
        env["READYROOM_NERVE_URL"] = f"http://{ground.host}:{nerve_port}"
        env["READYROOM_NERVE_TOKEN_FILE"] = str(token)
        command = ["broker", "--record", url, "--host", ground.host, "--port", nerve_port]
        nerve = Part(
            [*ground.far, sys.executable, "-m", "readyroom", *command, "--nerve-token-file", str(token)],
            env={},
            log=folder / "nerve.log",
        )
    return Part([*ground.far, sys.executable, "-m", "api"], env=env, log=folder / "record.log"), nerve


def _of_the_box(home: Path, url: str, token: str) -> dict[str, str]:
    file = home / "box.token"
    file.touch(mode=0o600)
    file.write_text(token)
    (home / "run").mkdir(mode=0o700)
    return {
        "HOME": str(home),
        "READYROOM_URL": url,
        "READYROOM_TOKEN_FILE": str(file),
        "READYROOM_RUNTIME_DIR": str(home / "run"),
        "READYROOM_SWEEP_SECONDS": NEVER_SWEEP,
    }


def _inode(file: Path) -> str:
    """The number of a socket behind an open file; empty for anything else, or when it was just closed."""
    try:
        kind, _, number = os.readlink(file).partition(":[")
    except OSError:
        return ""
    return number.rstrip("]") if kind == "socket" else ""
