"""Redis or Valkey as the channel between the replicas of a nerve: one of its pub/sub channels."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from broker_bridge.channel import ChannelLost

ANSWER_SECONDS = 2.5
AWAY = (RedisError, OSError, TimeoutError)


class RedisChannel:
    """Nerves that share a server, and are not one nerve, take different database numbers."""

    def __init__(self, url: str) -> None:
        """`url` is `redis://`, `rediss://` or `unix://`.

        Raises:
            ValueError: it is none of them.
        """
        self._url = url
        # Pub/sub knows no databases, so the number goes into the channel's name.
        self._name = f"readyroom.nerve.{parse_url(url).get('db', 0)}"

    @contextlib.asynccontextmanager
    async def joined(self, heard: Callable[[str], None]) -> AsyncIterator[_Seat]:
        """See `Channel.joined`."""
        try:
            async with self._client() as client, client.pubsub() as ears:
                await ears.subscribe(self._name)
                listening = asyncio.ensure_future(_listen(ears, heard))
                try:
                    yield _Seat(client, self._name, listening)
                finally:
                    listening.cancel()
                    await asyncio.gather(listening, return_exceptions=True)
        except AWAY as error:
            raise ChannelLost(f"Redis cannot be reached: {type(error).__name__}") from error

    def _client(self) -> Redis:
        # A connection that the library renewed by itself would hide what was missed meanwhile.
        return Redis.from_url(
            self._url,
            protocol=2,
            decode_responses=True,
            encoding_errors="replace",
            retry=Retry(NoBackoff(), 0),
            socket_connect_timeout=ANSWER_SECONDS,
            socket_timeout=ANSWER_SECONDS,
        )


class _Seat:
    def __init__(self, client: Redis, name: str, lost: asyncio.Future[None]) -> None:
        self._client, self._name, self.lost = client, name, lost

    async def say(self, text: str) -> None:
        await self._client.publish(self._name, text)


async def _listen(ears: PubSub, heard: Callable[[str], None]) -> None:
    message: dict[str, Any]
    async for message in ears.listen():
        if message["type"] == "message":
            heard(message["data"])
