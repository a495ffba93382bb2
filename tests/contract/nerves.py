"""A served nerve, ears for it, and waiting for what is to come."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import socketio
import uvicorn

from broker_bridge.broker import EmbeddedBroker
from broker_bridge.guard import UVICORN
from broker_bridge.limits import Limits
from broker_bridge.names import Names
from broker_bridge.nerve import Admission, Credential, Doorkeeper
from broker_bridge.nudge import DELIVERED, Nudge
from broker_bridge.queues import Store
from broker_bridge.tyo_mq import Listener, TyoMqNerve

ADMISSIONS: dict[str, Admission] = {
    "tok-work3": Admission("main", "work3", "consumer", "t1"),
    "tok-work3-next": Admission("main", "work3", "consumer", "t2"),
    "tok-devmac": Admission("main", "devmac", "consumer", "t3"),
    "tok-zoo": Admission("main", "zoo", "consumer", "t4"),
    "tok-elsewhere": Admission("other", "work3", "consumer", "t5"),
    "tok-tool": Admission("main", "tool", "both", "t6", "client"),
    "tok-tool2": Admission("main", "tool2", "both", "t7", "client"),
    "tok-record": Admission("*", "agent-comms", "producer", "t8", "record"),
    "tok-record-main": Admission("main", "agent-comms", "producer", "t9", "record"),
}
WAIT = 60.0


class Door:
    """A test's list of tokens, asked as the record is: not at once."""

    def __init__(self, admissions: Mapping[str, Admission] = ADMISSIONS) -> None:
        self.admissions = dict(admissions)

    async def admit(self, credential: Credential) -> Admission | None:
        """Whom a token admits; here nothing else admits anybody."""
        await asyncio.sleep(0)
        return self.admissions.get(credential.value) if credential.by == "token" else None

    async def valid(self, token_ids: Collection[str]) -> set[str]:
        """The tokens that are still in the list."""
        return {admission.token_id for admission in self.admissions.values()}.intersection(token_ids)

    async def is_taken(self, realm: str, name: str) -> bool:
        """Whether a program's token of the realm has this name."""
        return any(
            (each.realm, each.name, each.kind) == (realm, name, "client") for each in self.admissions.values()
        )


async def until(holds: Callable[[], Any], what: str = "it", seconds: float = WAIT) -> None:
    """Wait until something holds, and fail when it never does."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        await asyncio.sleep(0.005)


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


async def record_app(scope: Any, receive: Any, send: Any) -> None:
    """The smallest ASGI application, in the record's place."""
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"the record"})


@asynccontextmanager
async def serving(app: Any, *, port: int | None = None) -> AsyncIterator[str]:
    """An ASGI application behind a real uvicorn, set up as the product sets it up; yields its URL."""
    port = port or free_port()
    config = uvicorn.Config(
        app,
        host="127.0.0.1",
        port=port,
        **UVICORN,
        lifespan="off",
        log_config=None,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve())
    await until(lambda: server.started, "uvicorn")
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await running


@asynccontextmanager
async def served(
    *,
    port: int | None = None,
    limits: Limits | None = None,
    door: Doorkeeper | None = None,
    recheck_seconds: float | None = None,
    store: Store | None = None,
    names: Names | None = None,
) -> AsyncIterator[tuple[EmbeddedBroker, str]]:
    """An embedded broker on the port of a small record; yields it with its URL."""
    broker = EmbeddedBroker(
        door=door or Door(), limits=limits, recheck_seconds=recheck_seconds, store=store, names=names
    )
    await broker.start()
    async with serving(broker.asgi(record_app), port=port) as url:
        try:
            yield broker, url
        finally:
            await broker.close()


@asynccontextmanager
async def listening(
    url: str, token: str = "tok-work3", name: str = "ear"
) -> AsyncIterator[tuple[Listener, list[Nudge], list[bool]]]:
    """A Listener at work, with the nudges and the states that it told."""
    heard: list[Nudge] = []
    states: list[bool] = []
    listener = Listener(url, token, name, heard.append, states.append)
    running = asyncio.create_task(listener.run())
    try:
        yield listener, heard, states
    finally:
        await listener.close()
        await asyncio.wait_for(running, WAIT)


@asynccontextmanager
async def talking(url: str, token: str = "tok-record", **options: Any) -> AsyncIterator[TyoMqNerve]:
    """The record's voice at a broker elsewhere, at work."""
    nerve = TyoMqNerve(url, token, **options)
    await nerve.start()
    try:
        yield nerve
    finally:
        await nerve.close()


@contextmanager
def lone_broker(port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A nerve in a process of its own, to be stopped and killed."""
    process = subprocess.Popen([sys.executable, "-m", "tests.contract.lone_broker", str(port)])
    try:
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()


@asynccontextmanager
async def ear(url: str, token: str | None, name: str = "ear", *, polling: bool = False) -> AsyncIterator[Ear]:
    """A stock python-socketio client that logs in and subscribes to the record's nudges."""
    it = Ear()
    try:
        await it.connect(url, polling=polling)
        if token is not None:
            await it.log_in(token, name)
        yield it
    finally:
        await it.client.disconnect()


class Ear:
    """A client of its own; `heard` holds every event with its payload."""

    def __init__(self) -> None:
        self.client = socketio.AsyncClient(reconnection=False, handle_sigint=False)
        self.heard: list[tuple[str, Any]] = []
        self.at: list[float] = []
        self.client.on("*", self._on_any)

    def _on_any(self, event: str, *payload: Any) -> None:
        self.at.append(time.perf_counter())
        self.heard.append((event, payload[0] if payload else None))

    async def connect(self, url: str, *, polling: bool = False) -> None:
        """Connect over websocket, or start with polling and upgrade."""
        transports = None if polling else ["websocket"]
        await self.client.connect(url, transports=transports, wait_timeout=WAIT)

    async def log_in(self, token: str, name: str) -> None:
        """Log in, register, subscribe, and wait until the broker took all of it."""
        await self.send("AUTHENTICATION", {"token": token})
        await until(lambda: self.events("AUTH_OK", "AUTH_FAIL"), "an answer to the login")
        if self.events("AUTH_OK"):
            await self.send("CONSUMER", {"name": name, "id": name, "consumer_id": name})
            await self.subscribe(name)
            await self.barrier()

    async def subscribe(self, name: str = "ear", **changed: Any) -> None:
        """Subscribe to nudges, or to what `changed` says."""
        wanted = {"event": "msg", "producer": "agent-comms", "consumer": name, "consumer_id": name}
        await self.send("SUBSCRIBE", {**wanted, **changed})

    async def send(self, event: str, payload: Any = None) -> None:
        """Send one frame."""
        await self.client.emit(event, payload)

    async def barrier(self) -> None:
        """Wait until every earlier frame is dealt with."""
        assert "PONG" in str(await self.client.call("PING", {}, timeout=WAIT))

    def events(self, *names: str) -> list[Any]:
        """The payloads of the events of these names."""
        return [payload for event, payload in self.heard if event in names]

    @property
    def consumed(self) -> list[tuple[str, Any]]:
        """Every delivery, under whatever name."""
        return [(event, payload) for event, payload in self.heard if event.upper().startswith("CONSUME")]

    @property
    def nudges(self) -> list[Nudge]:
        """The nudges heard."""
        heard = [Nudge.from_wire(payload["message"]) for payload in self.events(DELIVERED)]
        return [nudge for nudge in heard if nudge is not None]
