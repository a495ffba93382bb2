"""Say something, in a room or to an address; look at what was said."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any

import msgspec

from api.db import Aside, Refused
from api.errors import (
    BadField,
    ClientIdReused,
    HopsUsedUp,
    MessageNotFound,
    NoSuchAgent,
    NoSuchThing,
    NotAMember,
    RateLimited,
    RecordDown,
    SearchesBusy,
    SearchTooBroad,
    ServiceError,
)
from api.models import Caller
from api.services import fields
from api.services.announcing import Announcements
from api.services.drafts import (
    Receipt,
    Said,
    SayIn,
    SendIn,
    answered,
    check_body,
    drafted,
    encoded,
    growth,
    is_repeat,
)
from api.services.envelope import Found, Message, found, from_row, more
from api.services.highlighting import sought_words
from api.services.limits import Rate
from api.services.reading import Reading
from api.services.receipts import FullReceipt, from_rows
from api.services.relations import Relations
from api.services.rooms import Rooms
from api.services.saying import Sayings
from api.services.system import SystemMessage, SystemVoice
from api.services.turns import Turns
from api.store import messages as store
from api.store import receipts as receipt_store
from api.store import rooms as room_store
from api.store import search as search_store

SEARCHES_AT_ONCE = 2
SEARCH_WAIT_SECONDS = 12.0
DEEPEST = 2000
"""Of more matches than this, only the newest are ranked."""


@dataclass(frozen=True, slots=True)
class SearchIn:
    """What to look for; all of it must hold."""

    q: str
    room: str | None
    sender: str | None
    type: str | None
    since: dt.datetime | None
    offset: int
    limit: int


class Messages:
    """The use cases of one message."""

    def __init__(
        self,
        *,
        rooms: Rooms,
        reading: Reading,
        sayings: Sayings,
        announcements: Announcements,
        relations: Relations,
        system: SystemVoice,
        rate: Rate,
        urgent_rate: Rate,
        body_max_bytes: int,
        payload_max_bytes: int,
        stale_seconds: int,
    ) -> None:
        self._db = rooms.db
        self._rooms = rooms
        self._reading = reading
        self._sayings = sayings
        self._announcements = announcements
        self._relations = relations
        self._system = system
        self._rate = rate
        self._urgent_rate = urgent_rate
        self._body_max_bytes = body_max_bytes
        self._payload_max_bytes = payload_max_bytes
        self._stale_seconds = stale_seconds
        self._searches = Turns(SEARCHES_AT_ONCE, wait_seconds=SEARCH_WAIT_SECONDS, busy=SearchesBusy)

    async def say(self, caller: Caller, room: str, new: SayIn) -> tuple[Said, bool]:
        """Say it in a room that the caller is in; True when it is new, False for a repeat of the client_id.

        Raises:
            RoomNotFound, NotAMember, ClientIdReused, NoSuchAgent, BadField, RateLimited, RecordDown
            NoSuchThing: `seen` is no lease of the caller's.
        """
        fields.line("client_id", new.client_id, fields.CLIENT_ID_CHARACTERS)
        if new.to is not None:
            new.to = self._selector(caller, "to", new.to)
        return await self._once(caller, new, room, self._to_room(caller, room, new))

    async def send(self, caller: Caller, new: SendIn) -> tuple[Said, bool]:
        """Send it to an address, outside any room.

        Raises:
            NoSuchAgent, ClientIdReused, BadField, RateLimited, RecordDown
            NoSuchThing: `seen` is no lease of the caller's.
        """
        if new.to is not None and new.recipient is not None and new.to != new.recipient:
            raise BadField("recipient", "the same as `to`; give one of them")
        field, address = ("to", new.to) if new.to is not None else ("recipient", new.recipient)
        if address is None:
            raise BadField("to", "name a session, label, role, box, person or everyone")
        fields.line("client_id", new.client_id, fields.CLIENT_ID_CHARACTERS)
        new.to = self._selector(caller, field, address)
        return await self._once(caller, new, f"@{new.to}", self._to_address(caller, field, new.to, new))

    async def message(self, caller: Caller, message_id: int) -> tuple[Message, FullReceipt]:
        """One message that the caller may read, with its receipt as it stands now.

        Raises:
            MessageNotFound: there is none, or it is not the caller's to see.
        """
        row = await store.by_id(
            self._db, realm_id=caller.realm_id, agent_id=caller.agent_id, message_id=message_id
        )
        if row is None:
            raise MessageNotFound(message_id)
        receipt = await receipt_store.receipt(
            self._db,
            realm_id=caller.realm_id,
            message_id=message_id,
            stale_seconds=self._stale_seconds,
        )
        return from_row(row), from_rows(receipt)

    async def history(
        self,
        caller: Caller,
        room: str,
        *,
        before: int | None,
        after: int | None,
        thread_id: str | None,
        limit: int,
    ) -> tuple[list[Message], bool]:
        """A page of a room's messages, oldest first, and whether there are more; moves no cursor.

        Raises:
            RoomNotFound, NotAMember
        """
        conv_id = await self._rooms.member_conv_id(caller, room)
        rows = await store.history(
            self._db,
            realm_id=caller.realm_id,
            conv_id=conv_id,
            before=before,
            after=after,
            thread_id=thread_id,
            limit=limit,
        )
        return [from_row(row) for row in rows], more(rows)

    async def search(self, caller: Caller, what: SearchIn) -> tuple[list[Found], bool]:
        """A page of what the caller may read and holds all the words, best first; whether there is more.

        Raises:
            SearchTooBroad, SearchesBusy, RecordDown
        """
        for field in ("q", "room", "sender", "type"):
            fields.unicode_text(field, getattr(what, field) or "")
        async with self._searches.turn(caller):
            rows = await self._search(caller, what)
            # Long messages take a while: the loop goes on meanwhile.
            page = await asyncio.to_thread(lambda: [found(row, sought_words(what.q)) for row in rows])
        return page, more(rows)

    async def thread(
        self, caller: Caller, thread_id: str, *, after: int, limit: int
    ) -> tuple[list[Message], bool]:
        """A page of a thread's messages that the caller may read, oldest first, and whether there are more.

        Raises:
            NoSuchThing: there is none of them behind the very beginning.
        """
        rows = await store.thread(
            self._db,
            realm_id=caller.realm_id,
            agent_id=caller.agent_id,
            thread_id=thread_id,
            after=after,
            limit=limit,
        )
        if not rows and after == 0:
            raise NoSuchThing(f"There is no thread {thread_id[:120]} of which you may read a message.")
        return [from_row(row) for row in rows], more(rows)

    async def _search(self, caller: Caller, what: SearchIn) -> list[Any]:
        try:
            return await search_store.search(
                self._db.aside,
                realm_id=caller.realm_id,
                agent_id=caller.agent_id,
                words=what.q,
                room=what.room,
                sender=what.sender,
                type_=what.type,
                since=what.since,
                offset=what.offset,
                limit=what.limit,
            )
        except Refused as error:
            if error.sqlstate == Aside.ENDED:
                raise SearchTooBroad from None
            raise

    async def _once(
        self, caller: Caller, new: SayIn, room: str, saying: Awaitable[Said]
    ) -> tuple[Said, bool]:
        """What `saying` comes to; where it is refused, what was stored under the client_id before.

        Much may have changed since then, the thread's hops by the message itself; a repeat changes nothing.
        """
        try:
            return await saying, True
        except (RateLimited, RecordDown):
            raise
        except ServiceError as refusal:
            first = await self._first(caller, new, room)
            if first is None:
                if isinstance(refusal, HopsUsedUp):
                    await self._tell_origin(caller, refusal)
                raise
        if new.seen is not None:
            await self._reading.acknowledge(caller, new.seen)
        return first, False

    async def _to_room(self, caller: Caller, room: str, new: SayIn) -> Said:
        conv_id = await self._rooms.conv_id(caller, room)
        if new.to is not None:
            await self._check_selector(caller, "to", new.to)
        return await self._say(caller, new, conv_id=conv_id, room=room, in_room=True)

    async def _to_address(self, caller: Caller, field: str, address: str, new: SayIn) -> Said:
        await self._check_selector(caller, field, address)
        conv_id = await self._rooms.address_id(caller, address)
        return await self._say(caller, new, conv_id=conv_id, room=f"@{address}", in_room=False)

    async def _say(self, caller: Caller, new: SayIn, *, conv_id: int, room: str, in_room: bool) -> Said:
        payload = self._check(new)
        self._rate.spend(caller.agent_id)
        if new.urgent:
            self._urgent_rate.spend(caller.agent_id)
        if new.seen is None:
            return await self._store(caller, new, payload, conv_id=conv_id, room=room, in_room=in_room)
        await self._reading.know(caller, new.seen)
        answer = await self._store(caller, new, payload, conv_id=conv_id, room=room, in_room=in_room)
        await self._reading.acknowledge(caller, new.seen)  # behind the storing: a crash between them repeats
        return answer

    async def _store(
        self, caller: Caller, new: SayIn, payload: bytes | None, *, conv_id: int, room: str, in_room: bool
    ) -> Said:
        place = await self._relations.place(caller, new)
        stored = await self._sayings.store(
            drafted(caller, new, payload, place, conv_id=conv_id, in_room=in_room)
        )
        if stored is None:
            raise NotAMember(room)  # or a repeat, which is found then
        self._announcements.said(
            realm_id=caller.realm_id,
            realm=caller.realm,
            sender=caller.handle,
            room=room,
            conv_id=conv_id,
            listeners=stored.listeners,
        )
        return answered(caller, new, payload, place, room=room, stored=stored)

    async def _first(self, caller: Caller, new: SayIn, room: str) -> Said | None:
        """What the caller stored under the client_id; None: nothing.

        Raises:
            ClientIdReused: it was something else.
        """
        if new.client_id is None:
            return None
        row = await store.by_client_id(
            self._db,
            realm_id=caller.realm_id,
            stale_seconds=self._stale_seconds,
            sender_id=caller.agent_id,
            client_id=new.client_id,
        )
        if row is None:
            return None
        if row["room"] != room or not is_repeat(new, row["conv_id"], row["content_hash"]):
            raise ClientIdReused(
                "client_id or Idempotency-Key", what="message", client_id=new.client_id, id=row["id"]
            )
        return Said(from_row(row), Receipt(msgspec.Raw(row["accepted"].encode())))

    async def _tell_origin(self, caller: Caller, refusal: HopsUsedUp) -> None:
        thread_id = refusal.facts["thread_id"]
        what = "a message" if thread_id is None else f"a message of thread {thread_id}"
        await self._system.tell(
            SystemMessage(
                realm_id=caller.realm_id,
                realm=caller.realm,
                agent=refusal.facts["origin"],
                type="task.error",
                body=f"{caller.handle} tried to pass {what} on, but its hop limit is used up. "
                "It was not passed on.",
                thread_id=thread_id,
            )
        )

    def _check(self, new: SayIn) -> bytes | None:
        """The payload as JSON, when everything about the new message will do."""
        if new.body is not None:
            check_body(new.body, self._body_max_bytes)
        payload = None
        if new.payload is not None:
            payload = encoded(new.payload)
            if len(payload) + growth(payload) > self._payload_max_bytes:
                raise BadField(
                    "payload", f"at most {self._payload_max_bytes} bytes of JSON, with numbers written out"
                )
            fields.unicode_text("payload.summary", str(new.payload.get("summary", "")))
        if new.body is None and not isinstance((new.payload or {}).get("summary"), str):
            raise BadField("body", "say something, or give payload.summary")
        if not fields.TYPE.fullmatch(new.type) or len(new.type) > fields.LINE_CHARACTERS:
            raise BadField("type", "a dotted lower-case word such as note or task.request")
        fields.line("thread_id", new.thread_id)
        if not 1 <= new.hop_limit <= 100:
            raise BadField("hop_limit", "1 to 100")
        if new.ttl_seconds is not None and not 0 < new.ttl_seconds <= 366 * 86400:
            raise BadField("ttl_seconds", "more than 0, at most a year")
        return payload

    def _selector(self, caller: Caller, field: str, address: str) -> str:
        selector = address.removeprefix(f"agent://{caller.realm}/")
        fields.line(field, selector, 128)
        return selector

    async def _check_selector(self, caller: Caller, field: str, selector: str) -> None:
        sender: dict[str, Any] = {
            "realm_id": caller.realm_id,
            "sender_id": caller.agent_id,
            "sender_kind": caller.kind,
            "box_id": caller.box_id,
        }
        if selector == "everyone" or await room_store.matched(self._db, **sender, selector=selector):
            return
        now = await room_store.addressable(self._db, **sender)
        raise NoSuchAgent(
            f"{field}: nobody who hears you answers to {selector!r}. "
            f"Addressable now: {', '.join(now) or 'nobody'}; or everyone.",
            field=field,
            addressable=now,
        )
