"""Requests that do not arrive: the server lets go of them, and of nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from deploy.server import Server
from tests.http.running import DEADLINE

HEAD_SECONDS, REQUEST_SECONDS = 1.0, 2.0
HEAD = b"POST /slow HTTP/1.1\r\nHost: record\r\nContent-Length: 2\r\n"
FOLLOWED = b"GET /slow HTTP/1.1\r\nHost: record\r\n\r\n"


async def app(scope: Any, receive: Any, send: Any) -> None:
    """`/slow/SECONDS` reads the body, waits, and answers; a websocket echoes."""
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
    elif scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": message["text"]})
    else:
        while (message := await receive()).get("more_body"):
            pass
        if message["type"] == "http.disconnect":
            return
        await asyncio.sleep(float(scope["path"].rpartition("/")[2] or 0) if "slow/" in scope["path"] else 0)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """The port of a server whose patience is short."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    server = Server(app, listener, head_seconds=HEAD_SECONDS, request_seconds=REQUEST_SECONDS)
    serving = asyncio.create_task(server.run_until_stopped())
    try:
        await asyncio.wait_for(server.up(), DEADLINE)
        yield listener.getsockname()[1]
    finally:
        server.stop()
        await serving
        listener.close()


@contextlib.asynccontextmanager
async def connected(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def ends(reader: asyncio.StreamReader) -> float:
    """Read to the end; the seconds that it took."""
    begun = time.monotonic()
    with contextlib.suppress(ConnectionResetError):
        await asyncio.wait_for(reader.read(), DEADLINE)
    return time.monotonic() - begun


async def test_half_open_connections_are_ended_and_one_line_says_so(port: int) -> None:
    sent = [b"", b"P", b"\r\n", HEAD]
    async with contextlib.AsyncExitStack() as stack:
        with capture_logs() as lines:
            opened = [await stack.enter_async_context(connected(port)) for _ in range(300)]
            for number, (_, writer) in enumerate(opened):
                writer.write(sent[number % len(sent)])
            await asyncio.gather(*(ends(reader) for reader, _ in opened))
    counts = [line["count"] for line in lines if line["event"] == "half_open_connections_ended"]
    assert sum(counts) == 300
    assert len(counts) <= 5
    async with aiohttp.ClientSession() as http, http.get(f"http://127.0.0.1:{port}/") as answer:
        assert answer.status == 200


async def test_a_body_has_more_time_than_a_head_and_no_more(port: int) -> None:
    async with connected(port) as (reader, writer):
        writer.write(HEAD + b"\r\n{")
        assert REQUEST_SECONDS <= await ends(reader) < DEADLINE


async def test_drops_do_not_buy_time(port: int) -> None:
    async with connected(port) as (reader, writer):

        async def drip() -> None:
            with contextlib.suppress(OSError):
                while True:
                    writer.write(b"X")
                    await writer.drain()
                    await asyncio.sleep(0.1)

        writer.write(b"GET / HTTP/1.1\r\nA: ")
        dripping = asyncio.create_task(drip())
        assert await ends(reader) < DEADLINE
        dripping.cancel()


@pytest.mark.parametrize("beginning", [b"\r\n", b"GET", HEAD])
async def test_the_second_request_of_a_connection_is_awaited_no_longer(port: int, beginning: bytes) -> None:
    async with connected(port) as (reader, writer):
        writer.write(FOLLOWED)
        assert (await asyncio.wait_for(reader.readuntil(b"ok"), DEADLINE)).startswith(b"HTTP/1.1 200")
        writer.write(beginning)
        assert await ends(reader) < DEADLINE


@pytest.mark.long
async def test_a_long_poll_outlasts_every_patience(port: int) -> None:
    url = f"http://127.0.0.1:{port}/slow/6"
    async with aiohttp.ClientSession() as http, http.post(url, json={}) as answer:
        assert await answer.text() == "ok"


@pytest.mark.long
async def test_a_long_poll_outlasts_half_a_request_behind_it(port: int) -> None:
    async with connected(port) as (reader, writer):
        writer.write(FOLLOWED.replace(b"/slow", b"/slow/4") + b"GET /sl")
        answer = await asyncio.wait_for(reader.readuntil(b"ok"), DEADLINE)
        assert answer.startswith(b"HTTP/1.1 200")
        writer.write(b"ow HTTP/1.1\r\nHost: record\r\n\r\n")
        answer = await asyncio.wait_for(reader.readuntil(b"ok"), DEADLINE)
        assert answer.startswith(b"HTTP/1.1 200")


async def test_a_websocket_link_is_left_alone(port: int) -> None:
    async with aiohttp.ClientSession() as http, http.ws_connect(f"http://127.0.0.1:{port}/") as link:
        async with connected(port) as (reader, _):
            await ends(reader)
        async with connected(port) as (reader, writer):
            writer.write(HEAD + b"\r\n")
            await ends(reader)
        await link.send_str("still here")
        assert await asyncio.wait_for(link.receive_str(), DEADLINE) == "still here"


@pytest.fixture
def few_files() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, before[1]), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def test_the_server_may_open_as_many_files_as_the_system_grants(few_files: None, port: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert soft == hard
