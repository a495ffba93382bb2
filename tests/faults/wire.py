"""A TCP proxy that hangs up on everybody at once, and can be slow."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct

RESET = struct.pack("ii", 1, 0)
"""A socket that lingers for no time at all is closed with a reset."""


class Wire:
    """Carries bytes to a port of this machine, `delay` seconds each way."""

    def __init__(self, target: int, *, delay: float = 0.0) -> None:
        self._target, self.delay = target, delay
        self._server: asyncio.Server | None = None
        self._ends: set[asyncio.StreamWriter] = set()
        self._served: set[asyncio.Task[None]] = set()
        self.carried = 0

    @property
    def url(self) -> str:
        """Where to knock."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Wire:
        self._server = await asyncio.start_server(self._enter, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        await asyncio.gather(*self._served, return_exceptions=True)

    def cut(self) -> None:
        """Reset every connection, at both ends."""
        for end in self._ends:
            end.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            end.transport.abort()
        self._ends.clear()

    def _enter(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.carried += 1
        task = asyncio.create_task(self._serve(reader, writer))
        self._served.add(task)
        task.add_done_callback(self._served.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
            self._ends |= {writer, far_writer}
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pour(reader, far_writer))
                both.create_task(self._pour(far_reader, writer))
            self._ends -= {writer, far_writer}
        writer.close()

    async def _pour(self, source: asyncio.StreamReader, into: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(1 << 16):
                await asyncio.sleep(self.delay)
                into.write(data)
                await into.drain()
        into.close()
