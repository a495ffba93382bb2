"""Queues and names in memory, for tests and as the shortest statement of what a store does."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from broker_bridge import frames
from broker_bridge.names import LEASE_SECONDS, Name
from broker_bridge.queues import (
    QUEUED,
    QUEUES,
    SENDINGS,
    WINDOW,
    WINDOW_SIZE,
    Batch,
    Kept,
    Queue,
    Retry,
    Verdict,
)


@dataclass(slots=True)
class _Message:
    id: int
    queue: int
    envelope: frames.Body
    size: int
    due_at: float
    expires_at: float
    attempts: int = 0
    timeouts: int = 0
    sent_to: str | None = None
    dead: bool = False


class MemoryStore:
    """Loses everything with its process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._numbers = itertools.count(1)
        self._queues: dict[int, Queue] = {}
        self._messages: dict[int, _Message] = {}

    @property
    def dead(self) -> list[frames.Body]:
        """The dead letters."""
        return [each.envelope for each in self._messages.values() if each.dead]

    async def open(self, queue: Queue, *, connection: str) -> int | None:
        """See `Store.open`."""
        ids = {_key(each): id for id, each in self._queues.items()}
        held = sum((each.realm, each.holder) == (queue.realm, queue.holder) for each in self._queues.values())
        if _key(queue) not in ids and held >= QUEUES:
            return None
        id = ids.get(_key(queue)) or next(self._numbers)
        self._queues[id] = queue
        for message in self._live(id):
            if message.sent_to != connection:
                message.due_at = self._clock()
        return id

    async def forget(self, realm: str, queue: int) -> None:
        """See `Store.forget`."""
        if self._queues.get(queue) is not None and self._queues[queue].realm == realm:
            del self._queues[queue]
            self._messages = {id: each for id, each in self._messages.items() if each.queue != queue}

    async def matching(self, realm: str, *, producer: str, event: str) -> Sequence[tuple[int, Queue]]:
        """See `Store.matching`."""
        return [(id, each) for id, each in self._queues.items() if each.realm == realm]

    async def keep(
        self, realm: str, queues: Collection[int], envelope: frames.Body, *, seconds: float
    ) -> Collection[int]:
        """See `Store.keep`."""
        size, now = len(frames.dumps(envelope)), self._clock()
        roomy = {id for id in queues if len(self._live(id)) < QUEUED}
        for queue in roomy & self._queues.keys():
            id = next(self._numbers)
            self._messages[id] = _Message(id, queue, envelope, size, now, now + seconds)
        return roomy

    async def take(self, realm: str, queue: int, *, connection: str) -> Batch:
        """See `Store.take`."""
        now, retry = self._clock(), (self._queues[queue].retry if queue in self._queues else None)
        head = self._live(queue)[:WINDOW]
        sent, size = [], 0
        for message in head:
            if message.due_at <= now and size < WINDOW_SIZE:
                self._send(message, retry, connection, now)
                if not message.dead:
                    sent.append(Kept(message.id, message.envelope, message.attempts))
            size += message.size
        more = len(head) >= WINDOW or size >= WINDOW_SIZE
        later = [each.due_at - now for each in head if not each.dead and each.due_at > now]
        return Batch(sent, more, min(later, default=None))

    async def drop(self, realm: str, queue: int, ids: Collection[int]) -> None:
        """See `Store.drop`."""
        for id in ids:
            self._messages.pop(id, None)

    async def acknowledged(self, realm: str, holder: str, id: int, *, connection: str) -> tuple[Verdict, int]:
        """See `Store.acknowledged`."""
        message = self._messages.get(id)
        queue = self._queues.get(message.queue) if message else None
        if message is None or queue is None or message.sent_to is None:
            return "unknown", 0
        if (queue.realm, queue.holder) != (realm, holder):
            return "unknown", 0
        if message.sent_to != connection:
            return "anothers", 0
        del self._messages[id]
        return "acknowledged", message.queue

    def _live(self, queue: int) -> list[_Message]:
        now = self._clock()
        return [
            each
            for each in self._messages.values()
            if each.queue == queue and not each.dead and each.expires_at > now
        ]

    def _send(self, message: _Message, retry: Retry | None, connection: str, now: float) -> None:
        wanted = retry or Retry()
        message.timeouts += message.sent_to == connection
        if retry is not None and (message.timeouts >= retry.attempts or message.attempts >= SENDINGS):
            message.dead = True
            return
        last = message.timeouts + 1 >= wanted.attempts
        pause = 0.0 if last else wanted.delay_seconds * (2**message.timeouts if wanted.exponential else 1)
        message.due_at = now + wanted.ack_seconds + pause
        message.attempts += 1
        message.sent_to = connection


def _key(queue: Queue) -> tuple[object, ...]:
    return queue.realm, queue.holder, queue.consumer_id, queue.subscription.pair


class MemoryNames:
    """For nerves of one process, which have it in common."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._held: dict[tuple[str, str], tuple[str, set[str], float]] = {}

    async def claim(self, name: Name) -> bool:
        """See `Names.claim`."""
        holder, links, until = self._held.get(_place(name), (name.holder, set(), 0.0))
        is_over = until <= self._clock()
        if holder != name.holder and not is_over:
            return False
        self._held[_place(name)] = self._lease(name.holder, set() if is_over else links, name.link)
        return True

    async def renew(self, names: Collection[Name]) -> Collection[Name]:
        """See `Names.renew`."""
        still = [name for name in names if name.link in self._links(name)]
        for name in still:
            self._held[_place(name)] = self._lease(name.holder, self._links(name), name.link)
        return still

    async def release(self, names: Collection[Name]) -> None:
        """See `Names.release`."""
        for name in names:
            links = self._links(name)
            if links == {name.link}:
                del self._held[_place(name)]
            links.discard(name.link)

    def _links(self, name: Name) -> set[str]:
        holder, links, _ = self._held.get(_place(name), ("", set(), 0.0))
        return links if holder == name.holder else set()

    def _lease(self, holder: str, links: set[str], link: str) -> tuple[str, set[str], float]:
        return holder, links | {link}, self._clock() + LEASE_SECONDS


def _place(name: Name) -> tuple[str, str]:
    return name.realm, name.name
