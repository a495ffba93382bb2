"""The PyPI package `tyo-mq-client`, as it is: it has threads of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from tyo_mq_client import MessageQueue

from tests.contract.nerves import until


def queue(url: str, token: str) -> Any:
    parts = urlsplit(url)
    return MessageQueue(host=parts.hostname, port=parts.port, auth={"token": token})


@asynccontextmanager
async def connected(client: Any) -> AsyncIterator[Any]:
    """The client, logged in."""
    await asyncio.to_thread(client.connect)
    await until(lambda: client.authenticated, "AUTH_OK")
    await asyncio.to_thread(client.socket.call, "PING", {}, timeout=60)
    try:
        yield client
    finally:
        await leave(client)


async def leave(client: Any) -> None:
    """Disconnect; the package leaves its last socket to the garbage collector."""
    link = client.socket.eio.ws
    await asyncio.to_thread(client.disconnect)
    link.shutdown()
