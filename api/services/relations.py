"""How a message hangs together with earlier ones: threads, replies, relays, results of a promised form."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

import msgspec

from api.db import Database
from api.errors import BadField, HopsUsedUp
from api.models import Caller
from api.services.schemas import Schemas
from api.store import messages as store

REQUEST = "task.request"
RESULT = "task.result"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a new message stands among the others.

    Attributes:
        thread_id: the thread that it opens or joins; None: none.
        hop_limit: how many more times it may be relayed, itself included.
        late: what it answers had expired.
    """

    thread_id: str | None
    hop_limit: int
    late: bool


class Relations:
    """Places a new message; asks nothing of the record when the message refers to none."""

    def __init__(self, db: Database, schemas: Schemas) -> None:
        self._db = db
        self._schemas = schemas

    async def place(self, caller: Caller, new: Any) -> Place:
        """Where `new`, a checked SayIn, belongs.

        Raises:
            BadField: it refers to what the caller may not read, or its schema or content will not do.
            ChecksBusy: too many schemas are being checked.
            HopsUsedUp: it has been relayed too often; `origin` is the sender of the thread's first message,
                as far back as the thread is known to those who passed it on to the caller.
        """
        if new.payload is not None and "output_schema" in new.payload:
            await self._schemas.check_schema(caller, new.payload["output_schema"])
        answered = await self._read(caller, "in_reply_to", new.in_reply_to)
        relayed = await self._read(caller, "relay_of", new.relay_of)
        if answered is not None and new.type == RESULT:
            await self._check_result(caller, new)
        if relayed is not None and new.thread_id not in (None, relayed["thread_id"]):
            raise BadField("thread_id", "a relay joins the thread of what it relays; leave it out")
        parent = relayed or answered
        thread_id = new.thread_id or (parent["thread_id"] if parent is not None else None)
        hops = new.hop_limit
        if relayed is not None or new.type == REQUEST:
            hops = await self._hops(caller, hops, parent, thread_id)
        if new.type == REQUEST and thread_id is None:
            thread_id = f"thr_{secrets.token_urlsafe(9)}"
        return Place(thread_id, hops, late=answered is not None and not answered["unexpired"])

    async def _read(self, caller: Caller, field: str, message_id: int | None) -> Any:
        if message_id is None:
            return None
        row = await store.by_id(
            self._db, realm_id=caller.realm_id, agent_id=caller.agent_id, message_id=message_id
        )
        if row is None:
            raise BadField(field, f"there is no message {message_id} that you may read")
        return row

    async def _hops(self, caller: Caller, wanted: int, parent: Any, thread_id: str | None) -> int:
        """One hop less than what it goes on from, which is `parent`, a relay or request of the thread.

        Any other parent does not know how often the thread was passed on: then the thread's own count holds,
        too. It is over what the caller may read, so that a thread of others is like one that is new.
        """
        before = [] if parent is None else [parent]
        if thread_id is not None and not (
            before and parent["passed_on"] and parent["thread_id"] == thread_id
        ):
            before += await store.fewest_hops(
                self._db, realm_id=caller.realm_id, agent_id=caller.agent_id, thread_id=thread_id
            )
        if not before:
            return wanted
        last = min(before, key=lambda message: message["hop_limit"])
        hops = min(wanted, last["hop_limit"] - 1)
        if hops < 1:
            origin = await store.origin_of_thread(
                self._db, realm_id=caller.realm_id, agent_id=caller.agent_id, thread_id=last["thread_id"]
            )
            raise HopsUsedUp(thread_id=last["thread_id"], origin=origin or last["sender"])
        return int(hops)

    async def _check_result(self, caller: Caller, new: Any) -> None:
        """It may answer the request itself, or a part, a question or an answer on the way to it."""
        payload = await store.asked(
            self._db, realm_id=caller.realm_id, agent_id=caller.agent_id, message_id=new.in_reply_to
        )
        if payload is not None:
            content = new.payload.get("content") if new.payload is not None else None
            schema = msgspec.json.decode(payload)["output_schema"]
            await self._schemas.check_content(caller, content, schema)
