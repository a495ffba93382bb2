"""Keeps what other programs' durable subscribers on the nerve wait for. Nudges never come here."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from api.db import Database, Refused
from api.errors import NoSuchThing, RecordDown
from api.models import DeadLetter
from api.services import names
from api.services.fields import NAME
from api.store import audit, nerve_names
from api.store import nerve_queues as store
from broker_bridge import frames, queues
from broker_bridge.queues import Batch, Kept, Queue, Retry, Unkept, Verdict
from broker_bridge.subscriptions import Subscription

SWEEP_SECONDS = 60.0
REMEMBERED_SECONDS = 300.0
"""How long a subscription that is not durable is remembered, for messages whose producer insists."""
ROOM_SECONDS = 5.0
"""How long it is known what room a queue has: counting costs as much as what waits in it."""
DEAD_LETTERS = 1000
"""Of a realm; the newest are kept."""


@dataclass(slots=True)
class _Room:
    """What room a queue had when it was counted, less what was put into it from here since."""

    messages: int
    size: int
    until: float

    @classmethod
    def beside(cls, messages: int, size: int, *, now: float) -> _Room:
        return cls(queues.QUEUED - messages, queues.QUEUED_SIZE - size, now + ROOM_SECONDS)

    def take(self, size: int) -> bool:
        """Take room for one message; False when there is none."""
        if self.messages < 1 or self.size < size:
            return False
        self.messages -= 1
        self.size -= size
        return True


@dataclass(slots=True)
class _Lookup:
    """Pairs whose queues are asked for by one statement, and what it says of each."""

    pairs: dict[tuple[str, str, str], list[Any]] = field(default_factory=dict)
    done: bool = False


class NerveQueues:
    """A `Store` in PostgreSQL, and the operator's look at what nobody acknowledged."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._lookup = _Lookup()
        self._looking, self._counting = asyncio.Lock(), asyncio.Lock()
        self._rooms: dict[int, _Room] = {}
        self._on_revived: Callable[[int], None] = lambda _: None

    def on_revived(self, callback: Callable[[int], None]) -> None:
        """Call back with the queue that a dead letter was put back into."""
        self._on_revived = callback

    async def open(self, queue: Queue, *, connection: str) -> int | None:
        """See `Store.open`."""
        subscription, retry = queue.subscription, queue.retry or Retry()
        async with asked():
            return await store.open_(
                self._db,
                queue.realm,
                queue.holder,
                queue.consumer_id,
                subscription.producer,
                subscription.event,
                subscription.topic,
                subscription.consumer,
                subscription.group,
                queue.durable,
                queue.retry and retry.ack_seconds,
                retry.attempts,
                retry.delay_seconds,
                retry.exponential,
                most=queues.QUEUES,
                connection=connection,
            )

    async def forget(self, realm: str, queue: int) -> None:
        """See `Store.forget`."""
        async with asked():
            await store.forget(self._db, realm, queue)

    async def matching(self, realm: str, *, producer: str, event: str) -> Sequence[tuple[int, Queue]]:
        """See `Store.matching`. What is asked while a statement is under way goes into the next, together.

        No answer is older than its question, so that no queue is missed that another replica has opened.
        """
        lookup, pair = self._lookup, (realm, _plain(producer), _plain(event))
        lookup.pairs.setdefault(pair, [])
        async with self._looking, asked():
            if lookup is self._lookup:
                self._lookup = _Lookup()
                await self._look_up(lookup)
        if not lookup.done:
            raise Unkept
        return [(row["queue_id"], _queue(realm, row)) for row in lookup.pairs[pair]]

    async def _look_up(self, lookup: _Lookup) -> None:
        pairs = list(lookup.pairs)
        for row in await store.matching(self._db, pairs):
            lookup.pairs[pairs[row["number"] - 1]].append(row)
        lookup.done = True

    async def keep(
        self, realm: str, wanted: Collection[int], envelope: dict[str, Any], *, seconds: float
    ) -> Collection[int]:
        """See `Store.keep`."""
        text = frames.dumps(envelope)
        async with asked():
            await self._count(realm, wanted)
            roomy = {queue for queue in wanted if self._rooms[queue].take(len(text))}
            if roomy:
                await store.keep(self._db, realm, roomy, text, seconds=seconds)
        return roomy

    async def _count(self, realm: str, wanted: Collection[int]) -> None:
        """Find out what room queues have, where that is not known."""
        async with self._counting:
            now = time.monotonic()
            unknown = [id for id in wanted if id not in self._rooms or self._rooms[id].until <= now]
            if unknown:
                waiting = await store.waiting(self._db, realm, unknown)
                self._rooms |= {id: _Room.beside(*waiting.get(id, (0, 0)), now=now) for id in unknown}

    async def take(self, realm: str, queue: int, *, connection: str) -> Batch:
        """See `Store.take`."""
        async with asked():
            rows = await store.take(
                self._db,
                realm,
                queue,
                connection,
                window=queues.WINDOW,
                size=queues.WINDOW_SIZE,
                sendings=queues.SENDINGS,
                dead=queues.LONGEST_SECONDS,
            )
        messages = [
            Kept(row["message_id"], json.loads(row["envelope"]), row["attempts"])
            for row in rows
            if row["message_id"] is not None
        ]
        return Batch(messages, rows[0]["more"], rows[0]["seconds"])

    async def drop(self, realm: str, queue: int, ids: Collection[int]) -> None:
        """See `Store.drop`."""
        async with asked():
            await store.drop(self._db, realm, queue, ids)

    async def acknowledged(self, realm: str, holder: str, id: int, *, connection: str) -> tuple[Verdict, int]:
        """See `Store.acknowledged`."""
        async with asked():
            rows = await store.acknowledged(self._db, realm, holder, id, connection=connection)
        if not rows:
            return "unknown", 0
        queue = rows[0]["queue_id"]
        return ("anothers", 0) if queue is None else ("acknowledged", queue)

    async def run(self) -> None:
        """Delete what is over, every minute until cancelled; any number of replicas may."""
        while True:
            with contextlib.suppress(RecordDown, Refused):
                await self.sweep()
            await asyncio.sleep(SWEEP_SECONDS)

    async def sweep(self) -> None:
        """Delete expired messages and names, queues nobody has come for, the oldest of too many dead letters.

        Raises:
            RecordDown: PostgreSQL is away.
            Refused: another replica was at it.
        """
        longest = queues.LONGEST_SECONDS
        self._rooms.clear()
        await store.sweep(self._db, durable=longest, other=REMEMBERED_SECONDS, dead=DEAD_LETTERS)
        await nerve_names.sweep(self._db)

    async def dead_letters(self, *, realm: str, before: int, limit: int) -> list[DeadLetter]:
        """What was not acknowledged in a realm, newest first: whose it was, never what it said.

        Raises:
            NoSuchThing: there is no such realm.
        """
        async with self._db.transaction() as tx:
            await names.realm_key(tx, realm)
            return await store.dead_letters(tx, realm=realm, before=min(before, 2**63 - 1), limit=limit)

    async def revive(self, *, realm: str, id: int) -> None:
        """Put a dead letter back into its queue, as if it had never been sent.

        Raises:
            NoSuchThing: there is none.
        """
        queue: int | None = None
        async with self._db.transaction() as tx:
            if _possible(realm, id):
                queue = await store.revive(tx, realm=realm, id=id, seconds=queues.KEPT_SECONDS)
            await _note(tx, queue is not None, "dead_letter_revived", realm, id)
        assert queue is not None
        self._on_revived(queue)

    async def discard(self, *, realm: str, id: int) -> None:
        """Delete a dead letter.

        Raises:
            NoSuchThing: there is none.
        """
        async with self._db.transaction() as tx:
            done = _possible(realm, id) and await store.discard(tx, realm=realm, id=id)
            await _note(tx, done, "dead_letter_discarded", realm, id)


@contextlib.asynccontextmanager
async def asked() -> AsyncIterator[None]:
    """A database that is away, or refuses, as the nerve knows it."""
    try:
        yield
    except (RecordDown, Refused) as error:
        raise Unkept from error


async def _note(tx: Any, done: bool, act: str, realm: str, id: int) -> None:
    if not done:
        raise NoSuchThing(f"There is no dead letter {id} in realm {realm}.", id=id, realm=realm)
    await audit.note(tx, act=act, target=str(id), realm=realm)


def _possible(realm: str, id: int) -> bool:
    return NAME.fullmatch(realm) is not None and 0 < id < 2**63


def _plain(name: str) -> str:
    """A name to look for; no queue has one that is not printable, and PostgreSQL takes not every one."""
    return name if name.isprintable() else ""


def _queue(realm: str, row: Any) -> Queue:
    subscription = Subscription(
        row["producer"], row["event"], row["consumer"], row["topic"], row["group_name"]
    )
    retry = (
        Retry(row["ack_seconds"], row["attempts"], row["delay_seconds"], row["exponential"])
        if row["ack_seconds"] is not None
        else None
    )
    return Queue(realm, row["holder"], row["consumer_id"], subscription, row["durable"], retry)
