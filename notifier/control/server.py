"""The notifier's side of the door."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
import structlog

from notifier.control.messages import Request, read_request
from notifier.paths import private

log = structlog.get_logger()

Answer = dict[str, Any]
Handler = Callable[[Request], Awaitable[Answer]]

_LINE_BYTES = 1 << 20


@contextlib.asynccontextmanager
async def serve(path: str, handle: Handler) -> AsyncIterator[None]:
    """Answer requests on `path` until the block is left. Call it only while holding the user's lock.

    Raises:
        PermissionError: the socket's folder can be entered by others.
    """
    private(os.path.dirname(path))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    talks: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(_talk(reader, writer, handle))
        talks[task] = writer
        task.add_done_callback(talks.pop)

    server = await asyncio.start_unix_server(meet, path, limit=_LINE_BYTES)
    try:
        yield
    finally:
        server.close()
        await asyncio.sleep(0)  # whoever was let in just now has a task from here on
        for task, writer in list(talks.items()):
            writer.close()
            task.cancel()
        await asyncio.gather(*talks, return_exceptions=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


async def _talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handle: Handler) -> None:
    try:
        if not _same_user(writer.get_extra_info("socket")):
            log.warning("control_refused_a_stranger")
            return
        while line := await reader.readline():
            writer.write(msgspec.json.encode(await _answer(line, handle)) + b"\n")
            await writer.drain()
    except (OSError, ValueError):
        pass  # the caller hung up, or its line has no end
    finally:
        writer.close()


async def _answer(line: bytes, handle: Handler) -> Answer:
    try:
        request = read_request(line)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        return {"ok": False, "detail": f"This is no request: {error}."}
    try:
        return {"ok": True, **await handle(request)}
    except Exception as error:
        log.exception("request_failed", op=type(request).__name__)
        return {"ok": False, "detail": f"The notifier failed ({type(error).__name__}); its log says more."}


def _same_user(peer: socket.socket) -> bool:
    """Whether the caller is this user. Where the kernel does not tell, the folder's mode must do."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, uid, _ = struct.unpack("3i", credentials)
    return bool(uid == os.getuid())
