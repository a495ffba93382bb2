"""Two records in front of one database, stopped and killed in turn under traffic: no wake is lost for it.

Each listener does what a notifier does, the slow sweep aside: it asks for the unread counts when a nudge
comes and when its link is back.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from broker_bridge.tyo_mq import Listener
from tests.contract.nerves import free_port
from tests.faults.processes import NO_LIMITS, show
from tests.http.running import Party, Running, settings_for, until

RECOVERY = 5.0
"""Seconds after which a message has to be noticed, whatever happened."""

ROUNDS = 2
TRAFFIC = 20
AGAIN_SECONDS = 0.05


@dataclass
class Replica:
    """One record as a process, always on the same port."""

    environment: dict[str, str]
    log: Path
    port: int = field(default_factory=free_port)
    process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self, http: aiohttp.ClientSession) -> None:
        """Start it, and wait until it is ready."""
        environment = {**self.environment, "READYROOM_PORT": str(self.port)}
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "api", env=environment, stdout=log, stderr=log
            )

        async def ready() -> bool:
            with contextlib.suppress(aiohttp.ClientError):
                async with http.get(f"{self.url}/readyz") as answer:
                    return bool((await answer.json())["status"] == "ok")
            return False

        await until(ready, "the record is ready")

    async def end(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal, and wait for the end."""
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(how)
            await self.process.wait()


class Balancer:
    """What stands before the records: each connection goes to the next one that takes it."""

    def __init__(self, ports: list[int]) -> None:
        self._ports = itertools.cycle(ports)
        self._count = len(ports)
        self._server: asyncio.Server | None = None
        self._pipes: set[asyncio.Task[None]] = set()

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for pipe in list(self._pipes):
            pipe.cancel()
        await asyncio.gather(*self._pipes, return_exceptions=True)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for port in itertools.islice(self._ports, self._count):
            with contextlib.suppress(OSError):
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
                for pipe in (_carry(reader, far_writer), _carry(far_reader, writer)):
                    task = asyncio.create_task(pipe)
                    self._pipes.add(task)
                    task.add_done_callback(self._pipes.discard)
                return
        writer.close()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


class Notifier:
    """One box that listens, and looks as a notifier would."""

    def __init__(self, party: Party) -> None:
        self._party = party
        self._wanted = asyncio.Event()
        self._listener = Listener(
            party.url, str(party.token), "ear", lambda _: self._wanted.set(), self._on_state
        )
        self.hears = False
        self.counted = 0
        self.looks = 0

    def _on_state(self, hears: bool) -> None:
        self.hears = hears
        if hears:
            self._wanted.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._listener.run())
            tasks.create_task(self._look())

    async def _look(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            reply = await asked(self._party, "GET", "/v1/unread")
            self.counted = max((a["unread"] for a in reply["agents"].values()), default=0)
            self.looks += 1


async def asked(party: Party, method: str, path: str, body: object = None) -> Any:
    """An answer, however often it must be asked for."""
    while True:
        with contextlib.suppress(aiohttp.ClientError, OSError):
            reply = await party.call(method, path, body)
            if reply.status < 300:
                return reply.body
            assert reply.status == 503, reply
        await asyncio.sleep(AGAIN_SECONDS)


@dataclass
class House:
    """Two records, what stands before them, two boxes that listen, and one that speaks."""

    replicas: list[Replica]
    http: aiohttp.ClientSession
    speaker: Party
    notifiers: list[Notifier]
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    said: int = 0
    noticed: dict[str, list[float]] = field(default_factory=dict)

    async def say(self, through: Replica | None = None) -> None:
        """Say one more thing, once, through one of the records or whichever answers."""
        speaker = replace(self.speaker, url=through.url) if through else self.speaker
        new = {"body": "b", "client_id": f"c{next(self.numbers)}"}
        await asked(speaker, "POST", "/v1/rooms/api/messages", new)
        self.said += 1

    async def all_notice(self, after: str) -> None:
        """Every listener counts all that was said, soon enough."""
        began = time.monotonic()
        await until(lambda: all(each.counted == self.said for each in self.notifiers), f"all notice: {after}")
        self.noticed.setdefault(after, []).append(time.monotonic() - began)

    async def both_listen(self) -> None:
        await until(lambda: all(each.hears for each in self.notifiers), "the listeners hear")

    async def strike(self, victim: Replica, how: signal.Signals) -> None:
        """Say something through a record, and end that record with the answer."""
        await self.say(victim)
        ending = asyncio.create_task(victim.end(how))
        await self.all_notice(f"{how.name}, quiet")
        await ending

    async def strike_in_traffic(self, victim: Replica, how: signal.Signals) -> None:
        """End a record in the middle of what is said through both."""
        before = self.said
        talking = asyncio.create_task(self._talk())
        await until(lambda: self.said > before + TRAFFIC // 4, "traffic")
        await victim.end(how)
        await talking
        await self.all_notice(f"{how.name}, traffic")

    async def _talk(self) -> None:
        for _ in range(TRAFFIC):
            await self.say()


@contextlib.asynccontextmanager
async def house(database_url: str, folder: Path, more: dict[str, str]) -> AsyncIterator[House]:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("READYROOM_")},
        "READYROOM_DATABASE_URL": database_url,
        "READYROOM_ADMIN_TOKEN_FILE": str(settings_for(database_url, folder).admin_token_file),
        **NO_LIMITS,
        **more,
    }
    async with AsyncExitStack() as stack:
        connector = aiohttp.TCPConnector(force_close=True)
        http = await stack.enter_async_context(
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(30), connector=connector)
        )
        replicas = [Replica(environment, folder / f"record-{n}.log") for n in range(2)]
        for replica in replicas:
            stack.push_async_callback(replica.end)
            await replica.start(http)
        balancer = Balancer([replica.port for replica in replicas])
        url = await balancer.start()
        stack.push_async_callback(balancer.close)
        record = Running(url, http)
        speaker = await record.session(await record.box("devmac"))
        notifiers = []
        await speaker.post("/v1/rooms", {"name": "api"})
        for name in ("work3", "zoo"):
            box = await record.box(name)
            await (await record.session(box)).post("/v1/rooms", {"name": "api"})
            notifiers.append(Notifier(box))
        running = [asyncio.create_task(each.run()) for each in notifiers]
        try:
            yield House(replicas, http, speaker, notifiers)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)


@pytest.fixture(params=["NOTIFY", "Redis"])
def channel(request: pytest.FixtureRequest) -> dict[str, str]:
    """What the records pass nudges on over, as settings."""
    over_redis = request.param == "Redis"
    return {"READYROOM_REDIS_URL": request.getfixturevalue("redis").new_url()} if over_redis else {}


@pytest.mark.faults
@pytest.mark.timeout(600)
async def test_records_that_are_stopped_and_killed_in_turn_cost_no_wake(
    channel: dict[str, str], database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with house(database_url, tmp_path, channel) as home:
        for how, victim, _ in itertools.product(
            (signal.SIGTERM, signal.SIGKILL), home.replicas, range(ROUNDS)
        ):
            for strike in (home.strike, home.strike_in_traffic):
                await home.both_listen()
                await strike(victim, how)
                await victim.start(home.http)
        noticed = home.noticed
    rows = [(what, len(took), f"{max(took):.2f} s") for what, took in noticed.items()]
    show(capsys, ("a record ends by", "times", "everything noticed within"), rows)
    assert max(took for each in noticed.values() for took in each) < RECOVERY
