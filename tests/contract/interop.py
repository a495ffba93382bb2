"""Programs of several makes at one broker: who hears whom.

The broker is the embedded one, or the one at READYROOM_TEST_BROKER_URL; then the file that
READYROOM_TEST_BROKER_TOKEN_FILE names holds a token of it with the role `both`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.contract.nerves import Ear, ear, listening, served, until
from tests.contract.stock import connected, queue

MESSAGES = [
    {"conv": "c-42", "from": "alice", "at": 1796045205776},
    [1, "zwei", None, {"drei": [3.5, -0]}],
    "Grüße, 你好, 🎉",
    12.75,
    True,
    "",
]
"""What programs say to each other: every kind of JSON value."""

Say = Callable[[str, Any], Awaitable[None]]
"""Says a message under an event's name, and returns when the broker has dealt with it."""
Heard = Callable[[], list[Any]]
"""The messages heard until now."""


@dataclass(frozen=True)
class Ground:
    """A broker to try.

    Attributes:
        url: where it is.
        ours: whether it is the embedded nerve.
        speaks: the token of programs that speak and listen.
        listens: the token of the box `devmac`.
        records: the record's own token, where it is known.
    """

    url: str
    ours: bool
    speaks: str
    listens: str
    records: str | None

    @property
    def record(self) -> str:
        """The record's own token; a Readyroom nerve that runs elsewhere keeps it to itself."""
        if self.records is None:
            pytest.skip("only the record speaks as the record here")
        return self.records


def in_its_order(consumer: str, messages: list[Any]) -> list[Any]:
    """As said; in any order for the PyPI client, whose library starts a thread for each message."""
    return sorted(messages, key=repr) if consumer == "pypi" else messages


@asynccontextmanager
async def opened() -> AsyncIterator[Ground]:
    """The broker to try."""
    url = os.environ.get("READYROOM_TEST_BROKER_URL")
    if url is None:
        async with served() as (_, url):
            yield Ground(url, True, "tok-tool", "tok-devmac", "tok-record-main")
        return
    token = _token()
    async with ear(url, token, fresh("probe")) as probe:
        ours = "server" in probe.events("AUTH_OK")[0]
    yield Ground(url, ours, token, token, None if ours else token)


async def log_in(one: Ear, token: str) -> None:
    """Log a bare client in, and do no more."""
    await one.send("AUTHENTICATION", {"token": token})
    await until(lambda: one.events("AUTH_OK"), "the login")


def _token() -> str:
    return Path(os.environ["READYROOM_TEST_BROKER_TOKEN_FILE"]).read_text().strip()


def fresh(name: str) -> str:
    """A name that nobody has used at this broker."""
    return f"{name}-{uuid4().hex[:10]}"


@asynccontextmanager
async def speaking(program: str, ground: Ground, name: str) -> AsyncIterator[Say]:
    """A program that says things as the producer `name`."""
    token = ground.speaks
    if program == "bare":
        async with ear(ground.url, None) as one:
            yield await _speaking_bare(one, token, name)
    else:
        assert program == "pypi"
        producer = queue(ground.url, token).createProducer(name)
        async with connected(producer):

            async def say(event: str, message: Any) -> None:
                await asyncio.to_thread(producer.produce, message, event)
                await asyncio.to_thread(producer.socket.call, "PING", {}, timeout=60)

            yield say


async def _speaking_bare(one: Ear, token: str, name: str) -> Say:
    await log_in(one, token)
    await one.send("PRODUCER", {"name": name})

    async def say(event: str, message: Any) -> None:
        await one.send("PRODUCE", {"event": event, "message": message, "from": name})
        await one.barrier()

    return say


@asynccontextmanager
async def hearing(program: str, ground: Ground, producer: str, event: str) -> AsyncIterator[Heard]:
    """A program that hears a pair."""
    name = fresh("ear")
    if program == "bare":
        async with ear(ground.url, None) as one:
            await log_in(one, ground.listens)
            await one.send("CONSUMER", {"name": name, "id": name, "consumer_id": name})
            await one.subscribe(name, producer=producer, event=event)
            await one.barrier()
            yield lambda: [payload["message"] for _, payload in one.consumed]
    elif program == "pypi":
        heard: list[Any] = []
        consumer = queue(ground.url, ground.listens).createConsumer(name)
        consumer.subscribe(producer, event, heard.append)
        async with connected(consumer):
            yield lambda: heard
    else:
        assert program == "ours"
        async with listening(ground.url, ground.listens, name) as (_, nudges, states):
            await until(lambda: states == [True], "the listener")
            yield lambda: [nudge.to_wire() for nudge in nudges]
