"""Node programs that speak socket.io, as subprocesses with a line for each thing that happens."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.contract.interop import Ground, Heard, Say, fresh
from tests.contract.nerves import until
from tests.real import npm
from tests.real.need import need

HERE = Path(__file__).parent
TRANSPORTS = {"node": "polling,websocket", "node-ws": "websocket"}
"""The plain client's two ways to connect: polling first and then an upgrade, or a websocket alone."""
STOCK = "node-stock"


class Program:
    """A running Node program, what it has told, and a way to tell it something."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.told: list[list[Any]] = []

    async def listen(self) -> None:
        """Take down what it tells, until its end."""
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            self.told.append(json.loads(line))

    def tell(self, line: Any) -> None:
        """Hand it a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line).encode() + b"\n")

    def of(self, event: str) -> list[Any]:
        """What it told of this kind."""
        return [line[1] if len(line) > 1 else None for line in self.told if line[0] == event]

    async def heard_of(self, event: str, times: int = 1) -> Any:
        """Wait until it has told something so often; returns the last."""
        await until(lambda: len(self.of(event)) >= times, f"{event} from Node")
        return self.of(event)[times - 1]


@asynccontextmanager
async def running(script: str, *arguments: str, **environ: str) -> AsyncIterator[Program]:
    """Run one of the scripts beside this file."""
    process = await asyncio.create_subprocess_exec(
        need("node"),
        str(HERE / script),
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, **environ},
        limit=16 * 1024 * 1024,
    )
    program = Program(process)
    listening = asyncio.create_task(program.listen())
    try:
        yield program
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), 20)
        except TimeoutError:
            process.kill()
            await process.wait()
        await listening


@asynccontextmanager
async def bare(program: str, ground: Ground, token: str) -> AsyncIterator[Program]:
    """The plain client, logged in with the frames of the protocol."""
    modules = str(npm.socket_io_client())
    async with running("node_client.cjs", ground.url, TRANSPORTS[program], NODE_PATH=modules) as node:
        await node.heard_of("connect")
        node.tell({"emit": ["AUTHENTICATION", {"token": token}]})
        await node.heard_of("AUTH_OK")
        yield node


async def barrier(node: Program) -> None:
    """Wait until the broker has dealt with all that the plain client sent."""
    asked = len(node.of("ack"))
    node.tell({"emit": ["PING", {}], "ack": True})
    assert "PONG" in await node.heard_of("ack", asked + 1)


@asynccontextmanager
async def speaking(program: str, ground: Ground, name: str) -> AsyncIterator[Say]:
    """A Node program that says things as the producer `name`."""
    if program == STOCK:
        folder = npm.STOCK_NODE_CLIENT
        async with running(
            "node_stock.cjs", folder, ground.url, name, "say", TYO_MQ_TOKEN=ground.speaks
        ) as node:
            await node.heard_of("ready")

            async def say_stock(event: str, message: Any) -> None:
                said = len(node.of("said"))
                node.tell([event, message])
                await node.heard_of("said", said + 1)

            yield say_stock
        return
    async with bare(program, ground, ground.speaks) as node:
        node.tell({"emit": ["PRODUCER", {"name": name}]})

        async def say(event: str, message: Any) -> None:
            node.tell({"emit": ["PRODUCE", {"event": event, "message": message, "from": name}]})
            await barrier(node)

        yield say


@asynccontextmanager
async def hearing(program: str, ground: Ground, producer: str, event: str) -> AsyncIterator[Heard]:
    """A Node program that hears a pair."""
    name = fresh("ear")
    if program == STOCK:
        wanted = (npm.STOCK_NODE_CLIENT, ground.url, name, "hear", producer, event)
        async with running("node_stock.cjs", *wanted, TYO_MQ_TOKEN=ground.listens) as node:
            await node.heard_of("ready")
            yield lambda: node.of("heard")
        return
    async with bare(program, ground, ground.listens) as node:
        node.tell({"emit": ["CONSUMER", {"name": name, "id": name, "consumer_id": name}]})
        pair = {"event": event, "producer": producer, "consumer": name, "consumer_id": name}
        node.tell({"emit": ["SUBSCRIBE", pair]})
        await barrier(node)
        yield lambda: [delivery["message"] for delivery in node.of(f"CONSUME-{producer}-{event}")]
