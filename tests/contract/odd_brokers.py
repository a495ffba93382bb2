"""Scripted brokers that do what the worst of the originals do, and worse."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import socketio
from aiohttp import web

from broker_bridge.nudge import Nudge
from tests.contract.nerves import free_port

OPEN = '0{"sid":"eio","upgrades":[],"pingInterval":5000,"pingTimeout":10000,"maxPayload":1000000}'
CONNECTED = '40{"sid":"sio"}'
AUTH_OK = '42["AUTH_OK",{"realm":"team-a","role":"both"}]'


class OddBroker:
    """A scripted broker: speaks enough tyo-mq to be believed, then does what its test wants."""

    def __init__(self) -> None:
        self.server = socketio.AsyncServer(async_mode="asgi", async_handlers=False)
        self.app = socketio.ASGIApp(self.server)
        self.frames: list[tuple[str, Any]] = []
        self.logins = 0
        self.server.on("AUTHENTICATION", self.on_login)
        self.server.on("CONSUMER", self.on_consumer)
        self.server.on("PING", lambda *_: '{"pong":"PONG"}')
        self.server.on("*", lambda event, _, *payload: self.frames.append((event, payload[0])))

    async def on_login(self, id: str, _: Any) -> None:
        self.logins += 1
        await self.welcome(id)

    async def on_consumer(self, id: str, _: Any) -> None: ...

    async def welcome(self, id: str) -> None:
        """Let a connection in."""
        await self.server.emit("AUTH_OK", {"realm": "team-a", "role": "both"}, to=id)

    async def say(self, nudge: Nudge, **options: Any) -> None:
        """Deliver a nudge to everybody, or as `options` say."""
        envelope = {"event": "msg", "from": "agent-comms", "message": nudge.to_wire()}
        await self.server.emit("CONSUME-agent-comms-msg", envelope, **options)

    async def hang_up(self) -> None:
        """Part with everybody, without a word."""
        for id, _eio in list(self.server.manager.get_participants("/", None)):
            await self.server.disconnect(id)

    def of(self, event: str) -> list[Any]:
        return [payload for name, payload in self.frames if name == event]


class ForgetfulBroker(OddBroker):
    """Keeps subscriptions by consumer's name, and forgets those of whoever was away for five minutes.

    Attributes:
        now: its clock, in seconds; the test moves it.
        subscribed: the names that it delivers to.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.subscribed: set[str] = set()
        self._names: dict[str, str] = {}
        self._left: dict[str, float] = {}
        self.server.on("SUBSCRIBE", self._on_subscribe)
        self.server.on("disconnect", self._on_disconnect)

    async def on_consumer(self, id: str, body: Any) -> None:
        self._names[id] = body["name"]
        if self.now - self._left.pop(body["name"], self.now) > 300:
            self.subscribed.discard(body["name"])

    def _on_subscribe(self, _: str, body: Any) -> None:
        self.frames.append(("SUBSCRIBE", body))
        self.subscribed.add(body["consumer"])

    def _on_disconnect(self, id: str, _: Any) -> None:
        if id in self._names:
            self._left[self._names.pop(id)] = self.now

    async def say(self, nudge: Nudge, **_: Any) -> None:
        for id, name in self._names.items():
            if name in self.subscribed:
                await super().say(nudge, to=id)


class StingyBroker(OddBroker):
    """Takes `allowance` messages until the test grants more; drops the rest, and says so once."""

    def __init__(self, allowance: int) -> None:
        super().__init__()
        self.allowance = allowance
        self.heard: list[Nudge] = []
        self.told = 0
        self.server.on("PRODUCE", self._on_produce)

    async def _on_produce(self, id: str, body: Any) -> None:
        if self.allowance:
            self.allowance -= 1
            nudge = Nudge.from_wire(body["message"])
            assert nudge is not None
            self.heard.append(nudge)
            return
        self.told += 1
        limited = {"code": 429, "reason": "messages_per_second", "retry_after": 1}
        await self.server.emit("RATE_LIMITED", limited, to=id)


Script = Callable[[web.WebSocketResponse], Awaitable[None]]


@asynccontextmanager
async def scripted(*scripts: Script) -> AsyncIterator[tuple[str, list[float]]]:
    """A broker whose first connections follow a script each, and the others the last one.

    Yields its URL and the moments of its connections.
    """
    dialled: list[float] = []

    async def connection(request: web.Request) -> web.WebSocketResponse:
        script = scripts[min(len(dialled), len(scripts) - 1)]
        dialled.append(asyncio.get_running_loop().time())
        link = web.WebSocketResponse()
        await link.prepare(request)
        with contextlib.suppress(aiohttp.ClientError, ConnectionError, TypeError):  # it went away
            await script(link)
        return link

    app = web.Application()
    app.router.add_get("/socket.io/", connection)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield f"http://127.0.0.1:{port}", dialled
    finally:
        await runner.cleanup()


def says(*frames: str) -> Script:
    """Sends one of the frames at a time, each after a frame of the client's, and hangs up."""

    async def script(link: web.WebSocketResponse) -> None:
        for number, frame in enumerate(frames):
            if number:
                await link.receive_str()
            await link.send_str(frame)

    return script


def behaves(nudge: Nudge, *before: str | bytes) -> Script:
    """Does all that a broker must, and says `before` and then the nudge to whoever subscribes."""
    envelope = {"event": "msg", "from": "agent-comms", "message": nudge.to_wire()}
    delivery = f"42{json.dumps(['CONSUME-agent-comms-msg', envelope])}"

    async def script(link: web.WebSocketResponse) -> None:
        await link.send_str(OPEN)
        async for frame in link:
            answers: list[str | bytes] = []
            if frame.data.startswith("40"):
                answers = [CONNECTED]
            elif '"AUTHENTICATION"' in frame.data:
                answers = [AUTH_OK]
            elif '"SUBSCRIBE"' in frame.data:
                answers = [*before, delivery]
            elif '"PING"' in frame.data:
                answers = [f'43{frame.data[2:].partition("[")[0]}["pong"]']
            for answer in answers:
                await (link.send_str(answer) if isinstance(answer, str) else link.send_bytes(answer))

    return script
