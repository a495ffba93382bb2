"""The record's HTTP server: uvicorn, stopped by whoever runs it rather than by signals of its own."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
from collections.abc import Iterator
from typing import Any

import structlog
import uvicorn

from broker_bridge.guard import UVICORN
from deploy.connections import HEAD_SECONDS, REQUEST_SECONDS, Connection, end_overdue, raise_file_limit

DRAIN_SECONDS = 3
TICKS_A_LOOK = 10
"""uvicorn ticks ten times a second."""

log = structlog.get_logger()


class RecordFailed(Exception):
    """The record did not start."""


class Server(uvicorn.Server):
    """Serves one ASGI application on a socket that listens already.

    A request's head must be there within `head_seconds`, all of it within `request_seconds`.
    """

    def __init__(
        self,
        app: Any,
        listener: socket.socket,
        *,
        head_seconds: float = HEAD_SECONDS,
        request_seconds: float = REQUEST_SECONDS,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=Connection,
                **UVICORN,
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=DRAIN_SECONDS,
            )
        )
        self._listener = listener
        self._head_seconds = head_seconds
        self._request_seconds = request_seconds
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
        raise_file_limit()
        try:
            await super().startup(sockets)
        except SystemExit:
            raise RecordFailed("The record did not start; its log says why.") from None
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 50, 1_000)
        self._up.set()

    async def on_tick(self, counter: int) -> bool:
        """End the connections whose request does not arrive, in one go."""
        if counter % TICKS_A_LOOK == 0:
            ended = end_overdue(
                self.server_state.connections,
                head_seconds=self._head_seconds,
                request_seconds=self._request_seconds,
            )
            if ended:
                log.warning("half_open_connections_ended", count=ended)
        return await super().on_tick(counter)

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
