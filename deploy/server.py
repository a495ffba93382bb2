"""The record's HTTP server: uvicorn, stopped by whoever runs it rather than by signals of its own."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn

DRAIN_SECONDS = 3


class RecordFailed(Exception):
    """The record did not start."""


class Server(uvicorn.Server):
    """Serves one ASGI application on a socket that listens already."""

    def __init__(self, app: Any, listener: socket.socket) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http="httptools",
                ws="wsproto",
                ws_max_size=1024 * 1024,  # before the nerve's own, smaller bound
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=DRAIN_SECONDS,
            )
        )
        self._listener = listener
        self._up = asyncio.Event()

    async def run_until_stopped(self) -> None:
        """Serve; returns after `stop`, when the last answer is out or its time is over.

        Raises:
            RecordFailed: the application did not start.
        """
        await self.serve(sockets=[self._listener])

    async def up(self) -> None:
        """Return when requests are answered."""
        await self._up.wait()

    def stop(self, *, hurry: bool = False) -> None:
        """Take no more requests; those in flight have `DRAIN_SECONDS`, or none with `hurry`."""
        self.should_exit = True
        self.force_exit = self.force_exit or hurry

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, then spare the collector what lives as long as the process."""
        try:
            await super().startup(sockets)
        except SystemExit:
            raise RecordFailed("The record did not start; its log says why.") from None
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 50, 1_000)
        self._up.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let requests end, then the application; in a hurry it still has a second to close what is open."""
        await super().shutdown(sockets)
        if self.force_exit:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self.lifespan.shutdown()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the caller."""
        yield
