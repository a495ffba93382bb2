"""A door between one client and the record: it knows when a request has gone in and an answer comes out."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

Moment = Literal["sent", "inside", "answered"]


class Hold(Protocol):
    """Keeps transactions of the record waiting."""

    async def reached(self) -> bool:
        """Whether one waits."""

    async def release(self) -> None:
        """Let them go on; the record, or its database, may be gone by now."""


@dataclass
class Fault:
    """What shall happen once, at a moment of the next call that fits.

    Attributes:
        path: how the request's path ends.
        moment: the request has gone in; or the record works on it inside its transaction; or the answer is
            out, and something is in it.
        strike: what happens then.
        hold: makes the record wait inside its transaction.
        struck: set once it has happened. The call's answer does not reach the client.
        at: when it began, by the monotonic clock.
    """

    path: str
    moment: Moment
    strike: Callable[[], Awaitable[None]]
    hold: Callable[[], Awaitable[Hold]]
    struck: asyncio.Event = field(default_factory=asyncio.Event)
    at: float = 0


class Door:
    """One client's only way to the record at `port`."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._server: asyncio.Server | None = None
        self._moved = asyncio.Condition()
        self._may_say = 0
        self._served: set[asyncio.Task[None]] = set()
        self.said = 0
        self.fault: Fault | None = None

    @property
    def port(self) -> int:
        """Where the client knocks."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def __aenter__(self) -> Door:
        self._server = await asyncio.start_server(self._enter, "127.0.0.1", 0, limit=2**24)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for call in self._served:
            call.cancel()
        await asyncio.gather(*self._served, return_exceptions=True)

    async def allow(self, says: int) -> None:
        """Let the client say so many messages in all."""
        async with self._moved:
            self._may_say = max(self._may_say, says)
            self._moved.notify_all()

    async def arm(self, fault: Fault) -> None:
        """Let this happen at the next call that fits."""
        async with self._moved:
            self.fault = fault
            self._moved.notify_all()

    def _enter(self, client: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        call = asyncio.create_task(self._serve(client, answers))
        self._served.add(call)
        call.add_done_callback(self._served.discard)

    async def _serve(self, client: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, _Cut):
            record, requests = await asyncio.open_connection("127.0.0.1", self._port, limit=2**24)
            try:
                while True:
                    await self._pass_on(client, record, requests, answers)
            finally:
                requests.close()
        answers.close()

    async def _pass_on(
        self,
        client: asyncio.StreamReader,
        record: asyncio.StreamReader,
        requests: asyncio.StreamWriter,
        answers: asyncio.StreamWriter,
    ) -> None:
        request = await _message(client)
        path = request.split(b" ", 2)[1].decode()
        if is_say := path.endswith("/messages"):
            async with self._moved:
                await self._moved.wait_for(lambda: self.said < self._may_say or self.fault is not None)
        fault = self.fault if self.fault and path.endswith(self.fault.path) else None
        if fault and fault.moment == "inside":
            answer = await self._caught_inside(fault, request, record, requests)
        else:
            requests.write(request)
            await requests.drain()
            if fault and fault.moment == "sent":
                await self._strike(fault)
            answer = await _message(record)
            if fault and (b'"count":0' not in answer and answer.split(b" ", 2)[1] in (b"200", b"201")):
                await self._strike(fault)
        self.said += is_say and answer.split(b" ", 2)[1] in (b"200", b"201")
        answers.write(answer)
        await answers.drain()

    async def _caught_inside(
        self, fault: Fault, request: bytes, record: asyncio.StreamReader, requests: asyncio.StreamWriter
    ) -> bytes:
        """Strike while the record waits; an answer means that this call had no transaction."""
        hold = await fault.hold()
        try:
            requests.write(request)
            await requests.drain()
            answering = asyncio.ensure_future(_message(record))
            while not answering.done():
                if await hold.reached():
                    answering.cancel()
                    await self._strike(fault)
                await asyncio.wait([answering], timeout=0.005)
            return answering.result()
        finally:
            await hold.release()

    async def _strike(self, fault: Fault) -> None:
        self.fault = None
        fault.at = time.monotonic()
        await fault.strike()
        fault.struck.set()
        raise _Cut


class _Cut(Exception):
    """The client hears nothing more on this connection."""


async def _message(stream: asyncio.StreamReader) -> bytes:
    """One HTTP message, head and body."""
    head = await stream.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name == b"content-length":
            length = int(value)
    return head + await stream.readexactly(length)
