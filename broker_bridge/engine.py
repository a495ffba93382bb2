"""The engine.io server under the nerve: who sends or reads too slowly or too much is its business."""

from __future__ import annotations

import asyncio
import time
import urllib.parse
from typing import Any

import engineio
from engineio.async_drivers import asgi

from broker_bridge.allowances import Allowances
from broker_bridge.guard import Message, Receive, Send, frame_buffer, readable, reset, tcp_link
from broker_bridge.limits import Limits
from broker_bridge.nerve import Admission

Encoded = Any
"""An engine.io packet, which the library leaves untyped."""

SEPARATOR = "\x1e"
"""Between the packets of one POST."""
UPGRADE_SECONDS = 5.0
"""For each frame of a change from polling to a websocket; polls get nothing meanwhile."""
LOOK_SECONDS = 1.0
"""How often a frame that waits for its turn looks whether its link still stands."""

PACKETS = engineio.payload.Payload.max_decode_packets = 1000
"""Packets of one POST. Node clients put in all that they have, and the library's own 16 are soon there."""


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
        self._server, self._session, self._sid = server, handler.__self__, handler.__self__.sid

    async def __call__(self, environ: dict[str, Any]) -> Any:
        """Serve it to its end."""
        links = self._server.wires.setdefault(self._sid, set())
        link = tcp_link(environ["asgi.send"])
        links.add(link)
        self._server.buffers[self._sid] = frame_buffer(environ["asgi.send"])
        self._server.bound(self._sid)
        try:
            return await super().__call__(environ)
        finally:
            if not self._session.upgraded:  # or its polls would get nothing for ever
                self._session.upgrading = False
            links.discard(link)
            self._server.buffers.pop(self._sid, None)

    async def wait(self) -> str | bytes:
        """The next frame. One that carries no message is counted here, the others where they are handled."""
        frame: str | bytes = await (self._of_upgrade() if self._session.upgrading else super().wait())
        if isinstance(frame, str) and not frame.startswith("4"):
            await self._server.its_turn(self._sid, frame)
        return frame

    async def _of_upgrade(self) -> str | bytes:
        try:
            async with asyncio.timeout(UPGRADE_SECONDS):
                frame: str | bytes = await super().wait()
        except TimeoutError:
            raise OSError("the upgrade was not gone on with") from None
        return frame


class Engine(engineio.AsyncServer):  # type: ignore[misc]
    """Bounds what waits for a reader; ends links, read or not, but none whom we keep waiting."""

    def __init__(self, *, limits: Limits, **options: Any) -> None:
        super().__init__(**options)
        self._limits = limits
        self._async: dict[str, Any] = {**asgi._async, "websocket": Wire}
        self._at_work: set[str] = set()
        self._posting: set[str] = set()
        self.allowances = Allowances(limits)
        self.wires: dict[str, set[asyncio.Transport | None]] = {}
        self.buffers: dict[str, Any] = {}

    def create_queue(self, *_: Any, **__: Any) -> Backlog:
        """The queue of one connection."""
        return Backlog(self._limits)

    def admitted(self, sid: str, admission: Admission) -> None:
        """Somebody is logged in over a link: what is sent over it counts as theirs."""
        self.allowances.admitted(sid, admission, now=time.monotonic())
        self.bound(sid)

    def bound(self, sid: str) -> None:
        """Have uvicorn end a websocket amid a frame that is too large, whose rest costs nothing then."""
        buffer = self.buffers.get(sid)
        if buffer is not None:
            buffer.max_length = self.allowances.readable(sid)

    def cut_off(self, sid: str, *, seconds: float) -> None:
        """Drop the TCP links of a connection that is closed, if they still stand then."""
        loop = asyncio.get_running_loop()
        for link in self.wires.pop(sid, ()):
            if link is not None:
                loop.call_later(seconds, reset, link)

    async def its_turn(self, id: str, frame: str | bytes) -> None:
        """Wait until the sender has not sent too much; for one that hangs up meanwhile, no longer.

        The error is what the library ends a link by. A frame that need not wait is read, hung up or not.
        """
        seconds = self.allowances.spend(id, frame, now=time.monotonic())
        if seconds is None and self._stands(id):
            self.cut_off(id, seconds=0)  # a close frame would have it read on until the client answers
            raise engineio.exceptions.SocketIsClosedError
        end = time.monotonic() + (seconds or 0)
        while self._stands(id) and (left := end - time.monotonic()) > 0:
            if self._is_lost(id):
                raise engineio.exceptions.SocketIsClosedError
            await asyncio.sleep(min(left, LOOK_SECONDS))

    async def disconnect(self, sid: str) -> None:
        """Close one connection without waiting until it has fetched the rest; an unknown one is fine."""
        link = self.sockets.pop(sid, None)
        if link is not None:
            await link.close(wait=False, reason=self.reason.SERVER_DISCONNECT)

    async def handle_request(self, scope: Message, receive: Receive, send: Send) -> Any:
        """Answer one request. A POST that may not be, or is none of packets, ends its link unread."""
        sid = _posted_to(scope)
        if sid is None or sid not in self.sockets:
            return await super().handle_request(scope, receive, send)
        overlaps = sid in self._posting
        self._posting.add(sid)
        try:
            size = _length(scope)
            if overlaps or not self.allowances.fits(sid, size):
                await self._end(sid)
            else:
                body = await self._body(sid, receive, size)
                if not (_is_readable(body) and await self._afforded(sid, body)):
                    await self._end(sid)
                receive = _again(body)
            return await super().handle_request(scope, receive, send)
        finally:
            if not overlaps:
                self._posting.discard(sid)

    async def _trigger_event(self, event: str, *args: Any, **options: Any) -> Any:
        id = args[0]
        if event == "message":
            return await self._message(id, args[1], options)
        if event == "connect" and not await self._opened(id, args[1]["asgi.scope"]):
            return False
        if event == "disconnect":
            self.allowances.closed(id)
        return await super()._trigger_event(event, *args, **options)

    async def _message(self, id: str, frame: str | bytes, options: dict[str, Any]) -> None:
        """One frame of a link, when its turn has come; meanwhile nothing more of the link is read."""
        self._at_work.add(id)
        self._ask_on(id)
        try:
            await self.its_turn(id, frame)
            if self._stands(id):
                await super()._trigger_event("message", id, frame, **options)
        finally:
            self._at_work.discard(id)

    async def _opened(self, id: str, scope: Message) -> bool:
        """Of too many strangers of one address the oldest goes, whose login is not being looked up.

        Where there is no such one, the newest may not stay: it is refused, as nobody knows of it yet.
        """
        address = (scope.get("client") or ("",))[0]
        self.allowances.opened(id, address)
        crowd = self.allowances.crowd(address)
        oldest = next((each for each in crowd if each not in self._at_work), None)
        if oldest == id:
            self.allowances.closed(id)
            return False
        if oldest is not None:
            await self._end(oldest)
        return True

    async def _body(self, sid: str, receive: Receive, size: int) -> bytes:
        """As much as was said to be posted, or what came of it until the link was over."""
        parts, left = [], size
        while left > 0:
            message = await self._next(sid, receive)
            parts.append(message.get("body", b""))
            left -= len(parts[-1])
            if message["type"] != "http.request" or not message.get("more_body"):
                break
        return b"".join(parts)[:size]

    async def _next(self, sid: str, receive: Receive) -> Message:
        receiving = asyncio.ensure_future(receive())
        try:
            while not (await asyncio.wait({receiving}, timeout=LOOK_SECONDS))[0]:
                if not self._stands(sid):
                    return {"type": "http.disconnect"}
            return receiving.result()
        finally:
            receiving.cancel()

    async def _afforded(self, sid: str, body: bytes) -> bool:
        """Count what a POST has beside messages; whether its sender may send it."""
        try:
            for packet in body.decode().split(SEPARATOR):
                if not packet.startswith("4"):
                    await self.its_turn(sid, packet)
        except engineio.exceptions.SocketIsClosedError:
            return False
        return True

    async def _end(self, sid: str) -> None:
        """Close one connection, and let what writes to it come to its end."""
        link = self.sockets.get(sid)
        if link is not None:
            await self.disconnect(sid)
            link.queue.put_nowait(None)

    def _stands(self, id: str) -> bool:
        return id in self.sockets and not self.sockets[id].closed

    def _is_lost(self, id: str) -> bool:
        """Whether the TCP link of a websocket is over, of which the library hears only once it reads on."""
        return any(wire is not None and wire.is_closing() for wire in self.wires.get(id, ()))

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


def _posted_to(scope: Message) -> str | None:
    """The link that a POST is for."""
    if scope["type"] != "http" or scope["method"] != "POST":
        return None
    query: dict[str, list[str]] = urllib.parse.parse_qs(scope["query_string"].decode("latin-1"))
    return query["sid"][0] if "sid" in query else None


def _length(scope: Message) -> int:
    """The bytes that a request says it has; the library reads as many."""
    said = dict(scope["headers"]).get(b"content-length", b"0")
    return int(said) if said.isdigit() else 0


def _is_readable(body: bytes) -> bool:
    """Whether a body is packets; no binary ones, which are not carried."""
    try:
        packets = body.decode().split(SEPARATOR)
    except UnicodeDecodeError:
        return False
    return len(packets) <= PACKETS and all(map(readable, packets))


def _again(body: bytes) -> Receive:
    """A request's body once more, whole."""

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def _size(packet: Encoded) -> int:
    return len(packet.data) if packet is not None and isinstance(packet.data, str) else 0
