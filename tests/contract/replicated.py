"""Nerves that stand several times, and what carries nudges between them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from api.db import Database
from api.services.replicas import NotifyChannel
from broker_bridge.broker import EmbeddedBroker
from broker_bridge.channel import Channel
from broker_bridge.redis_channel import RedisChannel
from broker_bridge.replicas import Replicas
from tests.contract.nerves import Door, serving

NewChannel = Callable[[], Channel]


def over_notify(database_url: str) -> NewChannel:
    """A channel of each replica's own, through PostgreSQL."""
    return lambda: NotifyChannel(Database(database_url))


def over_redis(url: str) -> NewChannel:
    """A channel of each replica's own, through Redis."""
    return lambda: RedisChannel(url)


@asynccontextmanager
async def replica(channel: Channel) -> AsyncIterator[tuple[Replicas, str]]:
    """One replica of a nerve on a port of its own, with its URL."""
    broker = EmbeddedBroker(door=Door())
    nerve = Replicas(broker, channel)
    await nerve.start()
    async with serving(broker.asgi()) as url:
        try:
            yield nerve, url
        finally:
            await nerve.close()
