"""The third observation point: what nobody took is reported, once, to its sender or to the realm's people."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import structlog

from api.db import Database, Refused, Transaction, part
from api.errors import RecordDown, RoomHeldUp
from api.models import Caller
from api.services.envelope import Message, from_row, more
from api.services.hearing import BRIEFED_WITHIN
from api.services.identity import Identity
from api.services.system import SystemMessage, SystemVoice, Told
from api.store import closing as store
from api.store import realms as realm_store
from api.store.identity import tell

log = structlog.get_logger()

TURN_SECONDS = 1.0
MOST = 500
QUOTED = 300
"""Characters of a message that its report quotes."""

REASONS = {
    "expired": "expired before anyone it was for had read it",
    "retired": "was not read by anyone it was for, and they have gone",
}


class Undelivered(Message, kw_only=True):
    """A message that nobody took; `why` is `expired`, or `retired`: all that it was for have gone."""

    why: str


class Closing:
    """Looks for messages that closed unread, sessions that stayed away, and realms whose time is over."""

    def __init__(
        self, db: Database, *, system: SystemVoice, identity: Identity, retire_after_seconds: int
    ) -> None:
        self._db = db
        self._system = system
        self._identity = identity
        self._retire_after_seconds = retire_after_seconds

    async def undelivered(self, caller: Caller, *, after: int, limit: int) -> tuple[list[Undelivered], bool]:
        """A page of what nobody took of what the caller said, and whether there is more.

        A box sees its sessions', a person the orphans, too.
        """
        rows = await store.listed(
            self._db,
            realm_id=caller.realm_id,
            agent_id=caller.agent_id,
            kind=caller.kind,
            after=after,
            limit=limit,
        )
        page = [Undelivered(**msgspec.structs.asdict(from_row(row)), why=row["why"]) for row in rows]
        return page, more(rows)

    async def run(self) -> None:
        """Take a turn every second until cancelled."""
        steps = {"retire": self._retire, "realms": self._end_realms}
        steps |= {kind: functools.partial(self._report, kind) for kind in store.KINDS}
        while True:
            for name, step in steps.items():
                await self._try(name, step)
            await asyncio.sleep(TURN_SECONDS)

    async def _try(self, name: str, step: Callable[[], Awaitable[None]]) -> None:
        """What fails is tried again at the next turn, and keeps nothing else from being done."""
        try:
            with contextlib.suppress(RecordDown, RoomHeldUp):
                await step()
        except Exception as error:
            log.error("closing_failed", step=name, error=type(error).__name__)

    async def _retire(self) -> None:
        async with self._db.transaction() as tx:
            gone = await store.retire_offline(tx, self._retire_after_seconds)
            words = [f"agent {realm} {handle}" for realm, handle in gone]
            for word in words:
                await tell(tx, word)
        self._forget(words, "session_retired")

    async def _end_realms(self) -> None:
        async with self._db.transaction() as tx:
            words = [f"realm {realm}" for realm in await realm_store.sweep(tx)]
            for word in words:
                await tell(tx, word)
        self._forget(words, "realm_swept")

    def _forget(self, words: list[str], event: str) -> None:
        for word in words:
            log.info(event, what=word)
            self._identity.forget(word)

    async def _report(self, kind: str) -> None:
        more = True
        while more:
            told: list[Told] = []
            async with self._db.transaction() as tx:
                turn = await store.begin(tx, kind)
                if turn is None:
                    return
                found = await store.untaken(
                    tx, kind, since=turn.until, now=turn.now, most=MOST, briefed=BRIEFED_WITHIN
                )
                for each in found:
                    if await store.note(tx, realm_id=each.realm_id, message_id=each.id, reason=each.reason):
                        told += await self._tell(tx, each)
                more = len(found) >= MOST
                if not more:
                    await store.end(tx, kind, turn.now)
            self._system.announce(told)

    async def _tell(self, tx: Transaction, closed: Any) -> list[Told]:
        """Report one message; where no report can be made of it, it is listed all the same."""
        try:
            async with part(tx):
                reports = await self._reports(closed.realm_id, closed.id, closed.reason)
                stored = [await self._system.store(tx, report) for report in reports]
        except (Refused, LookupError, TypeError, ValueError, msgspec.MsgspecError) as error:
            log.error("report_failed", message=closed.id, error=type(error).__name__)
            return []
        return [each for each in stored if each is not None]

    async def _reports(self, realm_id: int, message_id: int, reason: str) -> list[SystemMessage]:
        row = await store.closed(self._db, realm_id=realm_id, message_id=message_id)
        told = await store.people(self._db, realm_id) if row["sender_gone"] else [row["sender"]]
        message = from_row(row)
        return [
            SystemMessage(
                realm_id=realm_id,
                realm=row["realm"],
                agent=agent,
                type="delivery.undelivered",
                body=_body(message, reason),
                payload={"id": message_id, "reason": reason, "room": message.room, "sender": message.sender},
                thread_id=message.thread_id,
                in_reply_to=message_id,
            )
            for agent in told
        ]


def _body(message: Message, reason: str) -> str:
    words = message.text.split("] ", 1)[-1]
    quoted = words[:QUOTED]
    missing = len(words) - len(quoted)
    rest = f" … ({missing} more characters)" if missing else ""
    what = f"message #{message.id} of {message.sender} in {message.room}"
    return f"Undelivered: {what} {REASONS[reason]}: {quoted}{rest}"
