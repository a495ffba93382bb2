"""The socket.io server under the embedded nerve: what python-socketio leaves open is closed here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from typing import Any

import engineio
import socketio
from engineio.async_drivers import asgi

from broker_bridge import chunks
from broker_bridge.guard import tcp_link
from broker_bridge.limits import Limits
from broker_bridge.logs import quiet
from broker_bridge.packets import TextPacket

Encoded = Any
"""An engine.io packet, which the library leaves untyped."""

NAMESPACE = "/"
MAX_FRAME = 1_000_000
"""Bytes of the largest frame that is read."""
FRAME = "frame"
"""The one event that is handled, whatever a client calls its own."""
CLOSING_SECONDS = 5
"""Until a link that was closed is cut off, whatever still waits to be read."""

PING_SECONDS, PONG_SECONDS = 3, 6
"""A client dials anew after their sum of silence; TCP by itself, whose pauses double, can take longer."""


class Backlog(asyncio.Queue[Encoded]):
    """What waits for one reader, whoever sent it. Beyond the bounds nothing goes in, and the link is over."""

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self._limits = limits
        self._characters = 0
        self.overrun = False

    @property
    def is_full(self) -> bool:
        """Whether the reader is so far behind that it has to go."""
        return self.qsize() >= self._limits.outgoing or self._characters > self._limits.outgoing_size

    async def put(self, item: Encoded) -> None:
        """Add a packet, or None for the end, without ever waiting."""
        if item is not None and self.is_full:
            self.overrun = True
        else:
            self.put_nowait(item)

    def _put(self, item: Encoded) -> None:
        self._characters += _size(item)
        super()._put(item)

    def _get(self) -> Encoded:
        item = super()._get()
        self._characters -= _size(item)
        return item


class Wire(asgi.WebSocket):  # type: ignore[misc]
    """A websocket whose TCP link the engine knows while it stands."""

    def __init__(self, handler: Any, server: Engine) -> None:
        super().__init__(handler, server)
        self._server, self._sid = server, handler.__self__.sid

    async def __call__(self, environ: dict[str, Any]) -> Any:
        """Serve it to its end."""
        links = self._server.wires.setdefault(self._sid, set())
        link = tcp_link(environ["asgi.send"])
        links.add(link)
        try:
            return await super().__call__(environ)
        finally:
            links.discard(link)


class Engine(engineio.AsyncServer):  # type: ignore[misc]
    """Bounds what waits for a reader; ends links, read or not, but none whom we keep waiting."""

    def __init__(self, *, limits: Limits, **options: Any) -> None:
        super().__init__(**options)
        self._limits = limits
        self._async: dict[str, Any] = {**asgi._async, "websocket": Wire}
        self._at_work: set[str] = set()
        self.wires: dict[str, set[asyncio.Transport | None]] = {}

    def create_queue(self, *_: Any, **__: Any) -> Backlog:
        """The queue of one connection."""
        return Backlog(self._limits)

    def cut_off(self, sid: str, *, seconds: float) -> None:
        """Drop the TCP links of a connection that is closed, if they still stand then."""
        loop = asyncio.get_running_loop()
        for link in self.wires.pop(sid, ()):
            if link is not None:
                loop.call_later(seconds, link.abort)

    async def disconnect(self, sid: str) -> None:
        """Close one connection without waiting until it has fetched the rest; an unknown one is fine."""
        link = self.sockets.pop(sid, None)
        if link is not None:
            await link.close(wait=False, reason=self.reason.SERVER_DISCONNECT)

    async def _trigger_event(self, event: str, *args: Any, **options: Any) -> Any:
        if event != "message":
            return await super()._trigger_event(event, *args, **options)
        id = args[0]
        self._at_work.add(id)
        self._ask_on(id)
        try:
            return await super()._trigger_event(event, *args, **options)
        finally:
            self._at_work.discard(id)

    def ask_on(self) -> None:
        """Go on with the heartbeats of clients whose frames take long; call it about once a second."""
        for id in self._at_work:
            self._ask_on(id)

    def _ask_on(self, id: str) -> None:
        """A frame was heard, which is as good as an answer; the answer itself waits behind frames."""
        link, now = self.sockets.get(id), time.time()
        if link is not None and link.last_ping and now - link.last_ping >= self.ping_interval:
            link.last_ping = now
            link.queue.put_nowait(engineio.packet.Packet(engineio.packet.PING))


class Server(socketio.AsyncServer):  # type: ignore[misc]
    """The library's server over our engine, for one CONNECT a link, and events whose names choose nothing."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._greeted: set[str] = set()

    def _engineio_server_class(self) -> type[Engine]:
        return Engine

    async def _handle_connect(self, eio_sid: str, namespace: str | None, data: Any) -> None:
        if eio_sid not in self._greeted:
            self._greeted.add(eio_sid)
            await super()._handle_connect(eio_sid, namespace, data)

    async def _handle_event_internal(
        self, server: Any, sid: str, eio_sid: str, data: Any, namespace: str, id: int | None
    ) -> None:
        """Here the library would pick the handler by the client's name, `connect` or `*` as any other."""
        await super()._handle_event_internal(server, sid, eio_sid, [FRAME, *data], namespace, id)

    async def _handle_eio_disconnect(self, eio_sid: str, reason: str) -> None:
        self._greeted.discard(eio_sid)
        self.eio.cut_off(eio_sid, seconds=CLOSING_SECONDS)
        await super()._handle_eio_disconnect(eio_sid, reason)


class Sockets:
    """Sends to connections by their socket.io id, without ever waiting for a slow reader."""

    def __init__(self, limits: Limits) -> None:
        self.server = Server(
            limits=limits,
            async_mode="asgi",
            async_handlers=False,
            ping_interval=PING_SECONDS,
            ping_timeout=PONG_SECONDS,
            max_http_buffer_size=MAX_FRAME,
            cors_allowed_origins="*",
            cors_credentials=False,
            namespaces=[NAMESPACE],
            serializer=TextPacket,
            logger=quiet(),
            engineio_logger=quiet(),
        )
        self._strangers: dict[str, float] = {}

    @staticmethod
    def encode(event: str, payload: Any) -> list[Encoded]:
        """One event as packets that are written once and sent to many: one, or the pieces of a large one.

        None at all when it has no JSON form.
        """
        try:
            whole = _packet(event, payload)
            if len(whole.data) <= chunks.CHUNK:
                return [whole]
            return [_packet("CONSUME_CHUNK", piece) for piece in chunks.cut(event, payload)] or [whole]
        except (ValueError, RecursionError):
            return []

    def is_open(self, id: str) -> bool:
        """Whether the connection really stands; a client can claim anything."""
        return bool(self.server.manager.is_connected(id, NAMESPACE))

    async def send(self, id: str, packets: Collection[Encoded]) -> bool:
        """Queue packets; False when the reader is so far behind that it has to go."""
        link = self._link(id)
        if link is None:
            return True
        for packet in packets:
            await self.server.eio.send_packet(link.sid, packet)
        return not link.queue.overrun

    def ask_on(self) -> None:
        """See `Engine.ask_on`."""
        self.server.eio.ask_on()

    async def part(self, id: str) -> None:
        """Close a connection after what was sent to it."""
        link = self._link(id)
        await self.server.disconnect(id)
        await self._close(link)

    async def cut(self, id: str) -> None:
        """Close a connection that does not read, and throw away what waits for it."""
        link = self._link(id)
        if link is not None:
            await self._cut(link)

    def release(self, id: str) -> None:
        """Let whatever still writes to a connection that ended come to its end too, a long poll above all."""
        link = self._link(id)
        if link is not None:
            link.queue.put_nowait(None)

    async def sweep(self, admitted: Collection[str], *, now: float, grace: float) -> None:
        """Close who is too far behind, and who is not admitted and was not `grace` seconds ago either."""
        for link in [link for link in self.server.eio.sockets.values() if link.queue.overrun]:
            await self._cut(link)
        known = {self.server.manager.eio_sid_from_sid(id, NAMESPACE) for id in admitted}
        strangers = [sid for sid in self.server.eio.sockets if sid not in known]
        self._strangers = {sid: self._strangers.get(sid, now) for sid in strangers}
        for sid, since in self._strangers.items():
            if now - since >= grace:
                await self._close(self.server.eio.sockets.get(sid))

    async def _cut(self, link: Any) -> None:
        await link.close(wait=False, abort=True)
        while not link.queue.empty():
            link.queue.get_nowait()
        link.queue.put_nowait(None)

    async def _close(self, link: Any) -> None:
        if link is not None:
            await link.close(wait=False)
            link.queue.put_nowait(None)  # or its writer would wait on for a client that stays

    def _link(self, id: str) -> Any:
        return self.server.eio.sockets.get(self.server.manager.eio_sid_from_sid(id, NAMESPACE))


def _size(packet: Encoded) -> int:
    return len(packet.data) if packet is not None and isinstance(packet.data, str) else 0


def _packet(event: str, payload: Any) -> Encoded:
    text = TextPacket(socketio.packet.EVENT, data=[event, payload]).encode()
    return engineio.packet.Packet(engineio.packet.MESSAGE, data=text)
