"""Stands between strangers and socket.io, which trips over some frames and leaves their links half open."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import structlog

from broker_bridge.limits import Limits

log = structlog.get_logger()

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGI = Callable[[Message, Receive, Send], Awaitable[None]]

LONGEST_CONTROL = 8
FETCH_SECONDS = 10
"""Until an answer over polling must have been read."""

UVICORN: dict[str, Any] = {
    "ws": "wsproto",
    "ws_max_size": Limits().frame,
    "ws_per_message_deflate": False,  # four kilobytes would become a megabyte
    "ws_ping_interval": None,  # engine.io has its own; these would end whoever is read slowly
    "timeout_keep_alive": 75,  # clients give an idle connection up first
}
"""How uvicorn has to treat connections for the nerve behind it, and for the record."""


def mounted(nerve: ASGI, app: ASGI) -> ASGI:
    """The nerve at /socket.io/; everything else, lifespan included, goes to `app`."""

    async def either(scope: Message, receive: Receive, send: Send) -> None:
        ours = f"{scope.get('path', '')}/".startswith("/socket.io/")
        await (nerve if ours else app)(scope, receive, send)

    return either


def guarded(nerve: ASGI) -> ASGI:
    """`nerve`, with a frame that is no engine.io packet ending its link, and no error going further up."""

    async def app(scope: Message, receive: Receive, send: Send) -> None:
        async def checked() -> Message:
            message = await receive()
            if message["type"] == "websocket.receive" and not readable(message.get("text")):
                return {"type": "websocket.disconnect", "code": 1002}
            return message

        try:
            await nerve(scope, checked, send)
        except Exception as exc:
            log.warning("nerve_request_failed", error=type(exc).__name__)
        if scope["type"] == "http":
            _end_unless_read(tcp_link(send))

    return app


def tcp_link(send: Send) -> asyncio.Transport | None:
    """What uvicorn, whose `send` is a method of one connection, writes to. ASGI itself cannot drop a link."""
    link: asyncio.Transport | None = getattr(getattr(send, "__self__", None), "transport", None)
    return link


def frame_buffer(send: Send) -> Any:
    """What uvicorn gathers a websocket's frame in; None for another server."""
    return getattr(getattr(send, "__self__", None), "buffer", None)


def reset(link: asyncio.Transport) -> None:
    """Drop a link with all that waits for it, which the kernel would go on offering otherwise."""
    connected = link.get_extra_info("socket")
    if connected is not None and not link.is_closing():
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    link.abort()


def _end_unless_read(link: asyncio.Transport | None) -> None:
    """Drop a link later whose answer is not all fetched by then; uvicorn would keep it for ever."""

    def end() -> None:
        if link is not None and link.get_write_buffer_size():
            reset(link)

    if link is not None and link.get_write_buffer_size():
        asyncio.get_running_loop().call_later(FETCH_SECONDS, end)


def readable(text: str | None) -> bool:
    """Whether a text frame is an engine.io packet: a short control packet, or a socket.io packet.

    Binary frames are left to socket.io, which drops them.
    """
    if text is None:
        return True
    if text.startswith("4"):
        return text[1:2].isdecimal()
    return 0 < len(text) <= LONGEST_CONTROL and text[0] in "012356"
