"""The socket.io server under the embedded nerve: what python-socketio leaves open is closed here."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

import engineio
import socketio

from broker_bridge import chunks
from broker_bridge.limits import Limits
from broker_bridge.logs import quiet
from broker_bridge.packets import TextPacket

Encoded = Any
"""An engine.io packet, which the library leaves untyped."""

NAMESPACE = "/"
MAX_FRAME = 1_000_000
"""Bytes of the largest frame that is read."""
SMALL = 30_000
"""Characters of a packet that the number of packets alone keeps in bounds."""

PING_SECONDS, PONG_SECONDS = 3, 6
"""A client dials anew after their sum of silence; TCP by itself, whose pauses double, can take longer."""


class Engine(engineio.AsyncServer):  # type: ignore[misc]
    """Hangs up without waiting until the client has fetched the rest, and on nobody whom we keep waiting."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._at_work: set[str] = set()

    async def disconnect(self, sid: str) -> None:
        """Close one connection; an unknown one is fine."""
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
    """The library's server over our engine."""

    def _engineio_server_class(self) -> type[Engine]:
        return Engine


class Sockets:
    """Sends to connections by their socket.io id, without ever waiting for a slow reader."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.server = Server(
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
        if link.queue.qsize() >= self._limits.outgoing or self._is_stuffed(link, packets):
            return False
        for packet in packets:
            await self.server.eio.send_packet(link.sid, packet)
        return True

    def _is_stuffed(self, link: Any, packets: Collection[Encoded]) -> bool:
        """Whether too much text waits already; not worth asking for a small packet."""
        if sum(len(packet.data) for packet in packets) <= SMALL:
            return False
        waiting = sum(len(packet.data or "") for packet in link.queue._queue if packet is not None)
        return waiting > self._limits.outgoing_size

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
            await link.close(wait=False, abort=True)
            while not link.queue.empty():
                link.queue.get_nowait()
            link.queue.put_nowait(None)

    def release(self, id: str) -> None:
        """Let whatever still writes to a connection that ended come to its end too, a long poll above all."""
        link = self._link(id)
        if link is not None:
            link.queue.put_nowait(None)

    async def sweep(self, admitted: Collection[str], *, now: float, grace: float) -> None:
        """Close what is not admitted and was not at a sweep `grace` seconds ago either."""
        known = {self.server.manager.eio_sid_from_sid(id, NAMESPACE) for id in admitted}
        strangers = [sid for sid in self.server.eio.sockets if sid not in known]
        self._strangers = {sid: self._strangers.get(sid, now) for sid in strangers}
        for sid, since in self._strangers.items():
            if now - since >= grace:
                await self._close(self.server.eio.sockets.get(sid))

    async def _close(self, link: Any) -> None:
        if link is not None:
            await link.close(wait=False)
            link.queue.put_nowait(None)  # or its writer would wait on for a client that stays

    def _link(self, id: str) -> Any:
        return self.server.eio.sockets.get(self.server.manager.eio_sid_from_sid(id, NAMESPACE))


def _packet(event: str, payload: Any) -> Encoded:
    text = TextPacket(socketio.packet.EVENT, data=[event, payload]).encode()
    return engineio.packet.Packet(engineio.packet.MESSAGE, data=text)
