"""The calls that notifier, launcher and command line make."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import Literal

from notifier.record.transport import ANSWER_SECONDS, Json, Transport, segment

Backfill = int | Literal["none", "all"]


class Record(Transport):
    """A client of one record; use it inside `async with`.

    Every call may raise `Refused` or `RecordUnreachable`. A call that is repeated after a lost answer stores,
    mints and moves nothing twice.
    """

    async def whoami(self, handle: str | None = None) -> Json:
        """Who the record takes us for, or would by `handle`: `{"agent", "kind", "box", "realm", "hint"?}`."""
        return await self.call("GET", "/v1/whoami", headers={"X-Tyode-Agent": handle} if handle else None)

    async def checkin(
        self,
        *,
        role: str | None = None,
        harness: str | None = None,
        cwd: str | None = None,
        title: str | None = None,
        resume: str | None = None,
        key: str | None = None,
    ) -> Json:
        """Mint a handle, or take `resume` up again: `{"agent", "box", "role", "realm"}`.

        `key` makes the call idempotent across processes, as long as all else is the same; without one, within
        this call. Set `agent` to the new handle to make later calls as it. A session that is taken up keeps
        its role, whatever `role` says.
        """
        kept = role if resume is None else None
        wanted = {"role": kept, "harness": harness, "cwd": cwd, "title": title, "resume": resume}
        headers = {"Idempotency-Key": key or secrets.token_hex(16)}
        return await self.call("POST", "/v1/checkin", wanted, headers=headers)

    async def checkout(self) -> None:
        """Retire the session that we speak as."""
        await self.call("POST", "/v1/checkout", {})

    async def agents(self, *, retired: bool = False) -> list[Json]:
        """The roster, all pages of it."""
        return await self._pages("/v1/agents", "agents", {"retired": retired or None})

    async def unread(self) -> dict[str, Json]:
        """Handle -> its counts and `oldest_ids`; agents with nothing unread are left out."""
        answer = await self.call("GET", "/v1/unread")
        agents: dict[str, Json] = answer["agents"]
        return agents

    async def presence(self, sessions: Iterable[Json]) -> None:
        """Report states and wakes of sessions.

        Each is `{"agent", "state", "doubled"?, "wake"?: {"rung", "outcome", "reason"}}`.
        """
        await self.call("PUT", "/v1/presence", {"sessions": list(sessions)})

    async def nerve(self) -> Json:
        """Where to listen: `{"url", "realm", "token"?}`."""
        return await self.call("GET", "/v1/nerve")

    async def rooms(self, *, everywhere: bool = False) -> list[Json]:
        """My rooms, or every room of the realm."""
        return await self._pages("/v1/rooms", "rooms", {"scope": "all" if everywhere else None})

    async def start(self, room: str, *, title: str | None = None, backfill: Backfill | None = None) -> Json:
        """Create a room, or join it: `{"room", "title", "joined", "last_read_id", "unread"}`."""
        return await self.call("POST", "/v1/rooms", {"name": room, "title": title, "backfill": backfill})

    async def join(self, room: str, *, backfill: Backfill | None = None) -> Json:
        """Join a room; answers as `start` does."""
        return await self.call("POST", f"/v1/rooms/{segment(room)}/join", {"backfill": backfill})

    async def leave(self, room: str) -> None:
        """Leave a room."""
        await self.call("POST", f"/v1/rooms/{segment(room)}/leave", {})

    async def members(self, room: str) -> list[Json]:
        """Who is in a room, all pages of it."""
        return await self._pages(f"/v1/rooms/{segment(room)}/members", "members", {})

    async def say(self, room: str, body: str | None, **fields: object) -> Json:
        """Say something in a room: `{"message", "receipt"}`. `fields` are further fields of a message."""
        return await self._write(f"/v1/rooms/{segment(room)}/messages", {"body": body, **fields})

    async def send(self, to: str, body: str | None, **fields: object) -> Json:
        """Write to an address, outside any room; answers as `say` does."""
        return await self._write("/v1/messages", {"to": to, "body": body, **fields})

    async def poll(
        self,
        *,
        ack: Literal["auto", "lease"] = "lease",
        seen: str | None = None,
        limit: int | None = None,
        max_bytes: int | None = None,
        wait_seconds: float = 0,
        lease_seconds: int | None = None,
        rooms: list[str] | None = None,
    ) -> Json:
        """My unread messages, grouped by room; a lease stays open until `ack(lease)` or the next `seen`.

        Waits up to `wait_seconds` (at most 50) for something to arrive.
        """
        wanted = {
            "ack": ack,
            "seen": seen,
            "limit": limit,
            "max_bytes": max_bytes,
            "wait_seconds": wait_seconds or None,
            "lease_seconds": lease_seconds,
            "rooms": rooms,
            "poll_key": secrets.token_hex(16) if ack == "auto" else None,
        }
        return await self.call("POST", "/v1/poll", wanted, answer_within=wait_seconds + ANSWER_SECONDS)

    async def ack(self, lease: str | None = None, *, rooms: Mapping[str, int] | None = None) -> None:
        """Commit a lease; or move the cursors of `rooms` forward to a message id."""
        await self.call("POST", "/v1/ack", {"lease": lease, "rooms": dict(rooms) if rooms else None})

    async def history(
        self,
        room: str,
        *,
        before: int | None = None,
        after: int | None = None,
        limit: int | None = None,
        thread_id: str | None = None,
    ) -> list[Json]:
        """The newest `limit` messages of a room, oldest first; moves no cursor."""
        query = {"before": before, "after": after, "limit": limit, "thread_id": thread_id}
        answer = await self.call("GET", f"/v1/rooms/{segment(room)}/messages", query=query)
        messages: list[Json] = answer["messages"]
        return messages

    async def message(self, message_id: int) -> Json:
        """One message with its receipt as it stands now: `{"message", "receipt"}`."""
        return await self.call("GET", f"/v1/messages/{message_id}")

    async def undelivered(self) -> list[Json]:
        """What nobody took of what we said, all pages of it."""
        return await self._pages("/v1/undelivered", "messages", {})

    async def search(self, words: str, **filters: object) -> list[Json]:
        """The messages that hold all the words, best first; `filters` are the query's other fields."""
        answer = await self.call("GET", "/v1/search", query={"q": words, **filters})
        messages: list[Json] = answer["messages"]
        return messages

    async def webhooks(self) -> list[Json]:
        """Our webhooks and how each is doing, all pages of it."""
        return await self._pages("/v1/webhooks", "webhooks", {})

    async def add_webhook(self, url: str) -> Json:
        """Have an https address told: `{"webhook", "url", "secret", "created_at"}`.

        Never repeated: the secret of an answer that was lost would stay unknown.
        """
        return await self.call("POST", "/v1/webhooks", {"url": url}, repeatable=False)

    async def rotate_webhook(self, webhook: str, *, overlap_seconds: float | None = None) -> Json:
        """Another secret for one of our webhooks: `{"webhook", "url", "secret", "old_secret_until"}`.

        Never repeated: a second rotation would end the secret that signed until now.
        """
        return await self.call(
            "POST",
            f"/v1/webhooks/{segment(webhook)}/secret",
            {"overlap_seconds": overlap_seconds},
            repeatable=False,
        )

    async def remove_webhook(self, webhook: str) -> None:
        """Delete one of our webhooks."""
        await self.call("DELETE", f"/v1/webhooks/{segment(webhook)}")

    async def feed(self, cursor: str | None, *, limit: int | None = None, wait_seconds: float = 0) -> Json:
        """What comes behind a cursor that we hold: `{"messages", "next_cursor"}`; `newest` is the end."""
        query = {"cursor": cursor, "limit": limit, "wait_seconds": wait_seconds or None}
        return await self.call(
            "GET", "/v1/messages", query=query, answer_within=wait_seconds + ANSWER_SECONDS
        )

    async def _write(self, path: str, message: Json) -> Json:
        if message.get("client_id") is None:
            message["client_id"] = secrets.token_hex(16)
        return await self.call("POST", path, message)

    async def _pages(self, path: str, name: str, query: Mapping[str, object]) -> list[Json]:
        rows: list[Json] = []
        cursor: str | None = None
        while True:
            answer = await self.call("GET", path, query={**query, "cursor": cursor})
            rows += answer[name]
            cursor = answer.get("next_cursor")
            if cursor is None:
                return rows
