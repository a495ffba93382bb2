"""The socket.io server under the embedded nerve: what python-socketio leaves open is closed here."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import engineio
import socketio
import structlog

from broker_bridge import chunks
from broker_bridge.engine import Encoded, Engine
from broker_bridge.limits import Limits
from broker_bridge.logs import quiet
from broker_bridge.nerve import Admission
from broker_bridge.packets import TextPacket

log = structlog.get_logger()

NAMESPACE = "/"
FRAME = "frame"
"""The one event that is handled, whatever a client calls its own."""
CLOSING_SECONDS = 5
"""Until a link that was closed is cut off, whatever still waits to be read."""

PING_SECONDS, PONG_SECONDS = 3, 6
"""A client dials anew after their sum of silence; TCP by itself, whose pauses double, can take longer."""


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
            max_http_buffer_size=limits.frame,
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

    def admitted(self, id: str, admission: Admission) -> None:
        """Somebody is logged in over a connection: what is sent over it counts as theirs."""
        link = self._link(id)
        if link is not None:
            self.server.eio.admitted(link.sid, admission)

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
        if not link.closing:
            connection = self.server.manager.sid_from_eio_sid(link.sid, NAMESPACE)
            log.warning("nerve_reader_dropped", connection=connection)
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


def _packet(event: str, payload: Any) -> Encoded:
    text = TextPacket(socketio.packet.EVENT, data=[event, payload]).encode()
    return engineio.packet.Packet(engineio.packet.MESSAGE, data=text)
