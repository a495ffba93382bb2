"""Webhooks: nudges to an address that an agent chose, signed, and tried until they are taken."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import datetime as dt
import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal, Protocol

import structlog
from standardwebhooks import Webhook as Signer

from api.db import Database, Refused
from api.errors import NoSuchThing, RecordDown, TooManyWebhooks
from api.models import Caller
from api.services.metrics import Metrics
from api.services.system import SystemMessage, SystemVoice
from api.store import webhooks as store
from broker_bridge.nudge import Nudge

log = structlog.get_logger()

GATHER_SECONDS = 0.1
"""How long what moves is gathered into one look."""

LOOK_SECONDS = 60.0
"""How often every room is looked at, for what a record that died did not look at."""

TURN_SECONDS = 1.0
AT_ONCE = 16
CLAIM_SECONDS = 30.0
"""More than an attempt takes: then whoever made it is gone."""

GROWTH = 4
LONGEST_SECONDS = 6 * 3600.0
JITTER = 0.2
SECRET_BYTES = 32

_random = secrets.SystemRandom()


@dataclass(frozen=True, slots=True)
class Answer:
    """What a receiver answered; `status` 0: it did not, and `failure` says why."""

    status: int = 0
    failure: str = ""
    retry_after: float | None = None

    @property
    def is_taken(self) -> bool:
        """Whether the receiver has it."""
        return 200 <= self.status < 300

    @property
    def why(self) -> str:
        """The failure in a few words."""
        return self.failure or f"it answered {self.status}"


class Sender(Protocol):
    """Reaches addresses that others chose, and nothing that is not theirs to reach."""

    async def check(self, url: str) -> None:
        """Raise `BadField` for a URL that could not be posted to now."""

    async def post(self, url: str, *, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Post once; takes at most 20 seconds and raises nothing for the receiver's sake."""


@dataclass(frozen=True, slots=True)
class Made:
    """A new webhook, with the one sight of its secret."""

    webhook: str
    url: str
    secret: str
    created_at: dt.datetime


@dataclass(frozen=True, slots=True)
class Rotated:
    """A webhook's new secret, shown this once. Until `old_secret_until` the old one signs beside it."""

    webhook: str
    url: str
    secret: str
    old_secret_until: dt.datetime


@dataclass(frozen=True, slots=True)
class Listed:
    """A webhook as its owner sees it; `failure` says what became of the last attempt that failed."""

    webhook: str
    url: str
    state: Literal["active", "failing", "disabled"]
    created_at: dt.datetime
    failing_since: dt.datetime | None
    disabled_at: dt.datetime | None
    failure: str | None
    old_secret_until: dt.datetime | None


class Webhooks:
    """Makes webhooks, and tells them what their agents would be nudged about.

    Args:
        db: the record's connections.
        system: tells an owner that a webhook was disabled.
        sender: the way out.
        metrics: counts attempts.
        most: how many webhooks one agent may have.
        retry_seconds: how long the first pause after a failure is; each further one is four times as long.
        give_up_seconds: after how long without any success a webhook is disabled.
    """

    def __init__(
        self,
        db: Database,
        *,
        system: SystemVoice,
        sender: Sender,
        metrics: Metrics,
        most: int,
        retry_seconds: float,
        give_up_seconds: float,
    ) -> None:
        self._db = db
        self._system = system
        self._sender = sender
        self._metrics = metrics
        self._most = most
        self._retry_seconds = retry_seconds
        self._give_up_seconds = give_up_seconds
        self._moved: set[int] = set()
        self._look_wanted = asyncio.Event()
        self._due = asyncio.Event()

    async def add(self, caller: Caller, url: str) -> Made:
        """A webhook for the caller: from now on it hears what the caller would be nudged about.

        Raises:
            BadField: the address is malformed, not https, not to be found or not public.
            TooManyWebhooks: the caller has as many as it may have.
        """
        await self._sender.check(url)
        webhook_id = f"wh_{secrets.token_hex(12)}"
        secret = _new_secret()
        async with self._db.transaction() as tx:
            created_at = await store.add(
                tx,
                realm_id=caller.realm_id,
                agent_id=caller.agent_id,
                webhook_id=webhook_id,
                url=url,
                secret=secret,
                most=self._most,
            )
        if created_at is None:
            raise TooManyWebhooks(self._most)
        log.info("webhook_added", webhook=webhook_id, agent=caller.handle)
        return Made(webhook_id, url, secret, created_at)

    async def listed(self, caller: Caller, *, after: str, limit: int) -> list[Listed]:
        """The caller's webhooks by id, beginning after `after`."""
        rows = await store.listed(
            self._db, realm_id=caller.realm_id, agent_id=caller.agent_id, after=after, limit=limit
        )
        return [_listed(row) for row in rows]

    async def rotate(self, caller: Caller, webhook_id: str, *, overlap_seconds: float) -> Rotated:
        """Give one of the caller's webhooks another secret; both sign for `overlap_seconds`.

        A secret that was replaced earlier ends at once.

        Raises:
            NoSuchThing: the caller has none of this id.
        """
        _check_id(webhook_id)
        secret = _new_secret()
        async with self._db.transaction() as tx:
            rotated = await store.rotate(
                tx,
                realm_id=caller.realm_id,
                agent_id=caller.agent_id,
                webhook_id=webhook_id,
                secret=secret,
                overlap_seconds=overlap_seconds,
            )
        if rotated is None:
            raise _no_such_webhook()
        log.info("webhook_rotated", webhook=webhook_id, agent=caller.handle)
        return Rotated(webhook_id, rotated.url, secret, rotated.old_secret_until)

    async def remove(self, caller: Caller, webhook_id: str) -> None:
        """Delete one of the caller's webhooks.

        Raises:
            NoSuchThing: the caller has none of this id.
        """
        _check_id(webhook_id)
        async with self._db.transaction() as tx:
            if not await store.remove(
                tx, realm_id=caller.realm_id, agent_id=caller.agent_id, webhook_id=webhook_id
            ):
                raise _no_such_webhook()
        log.info("webhook_removed", webhook=webhook_id, agent=caller.handle)

    def moved(self, conv_id: int) -> None:
        """A message was committed in this room. Returns at once."""
        self._moved.add(conv_id)
        self._look_wanted.set()

    async def run(self) -> None:
        """Look and deliver until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._look())
            tasks.create_task(self._deliver())

    async def _look(self) -> None:
        clock = asyncio.get_running_loop().time
        everything_at = clock()
        while True:
            moved, self._moved = self._moved, set()
            everything = clock() >= everything_at
            try:
                if await store.look(self._db, None if everything else moved):
                    self._due.set()
                everything_at = clock() + LOOK_SECONDS if everything else everything_at
            except (RecordDown, Refused):  # refused: a webhook or a room went at this very moment
                everything_at = clock() + TURN_SECONDS
            await asyncio.sleep(GATHER_SECONDS)
            self._look_wanted.clear()
            if not self._moved:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(everything_at):
                        await self._look_wanted.wait()

    async def _deliver(self) -> None:
        trying: set[asyncio.Task[None]] = set()
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._due.clear()
                with contextlib.suppress(RecordDown):
                    for nudge in await self._claimed(AT_ONCE - len(trying)):
                        task = tasks.create_task(self._attempt(nudge))
                        trying.add(task)
                        task.add_done_callback(trying.discard)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(TURN_SECONDS):
                        await self._due.wait()

    async def _claimed(self, most: int) -> list[Any]:
        return await store.claim(self._db, most=most, seconds=CLAIM_SECONDS) if most else []

    async def _attempt(self, nudge: Any) -> None:
        body = json.dumps(Nudge(nudge["room"], nudge["sender"], nudge["at"]).to_wire())
        answer = await self._sender.post(nudge["url"], body=body.encode(), headers=_signed(nudge, body))
        with contextlib.suppress(RecordDown):  # it is tried again, under the same id
            await self._settle(nudge, answer)
        self._due.set()

    async def _settle(self, nudge: Any, answer: Answer) -> None:
        which = {"realm_id": nudge["realm_id"], "webhook_id": nudge["webhook_id"]}
        if answer.is_taken:
            self._metrics.webhook_attempts.labels("taken").inc()
            await store.told(self._db, **which, conv_id=nudge["conv_id"], nudged_id=nudge["nudged_id"])
            return
        self._metrics.webhook_attempts.labels("failed").inc()
        log.info(
            "webhook_failed", webhook=nudge["webhook_id"], status=answer.status, attempt=nudge["attempts"] + 1
        )
        if answer.status == HTTPStatus.GONE:
            await self._disable(nudge, f"{answer.why}: it wants no more nudges")
        elif nudge["failing_seconds"] >= self._give_up_seconds:
            await self._disable(
                nudge, f"nothing was taken for {nudge['failing_seconds']:.0f} seconds; {answer.why}"
            )
        else:
            pause = self._pause(nudge["attempts"], answer.retry_after)
            await store.failed(self._db, **which, seconds=pause, failure=answer.why)

    def _pause(self, failed_before: int, retry_after: float | None) -> float:
        seconds: float = min(LONGEST_SECONDS, self._retry_seconds * GROWTH ** min(failed_before, 20))
        jittered = seconds * _random.uniform(1 - JITTER, 1 + JITTER)
        return max(jittered, min(LONGEST_SECONDS, retry_after or 0.0))

    async def _disable(self, nudge: Any, why: str) -> None:
        told = None
        async with self._db.transaction() as tx:
            owner = await store.disable(
                tx, realm_id=nudge["realm_id"], webhook_id=nudge["webhook_id"], failure=why
            )
            if owner is not None:
                told = await self._system.store(tx, _report(nudge, owner, why))
        log.warning("webhook_disabled", webhook=nudge["webhook_id"])
        self._system.announce([told] if told else [])


def _new_secret() -> str:
    return f"whsec_{base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()}"


def _check_id(webhook_id: str) -> None:
    if not (webhook_id.isascii() and webhook_id.isprintable()):
        raise _no_such_webhook()


def _no_such_webhook() -> NoSuchThing:
    return NoSuchThing("You have no such webhook. GET /v1/webhooks lists yours.")


def _signed(nudge: Any, body: str) -> dict[str, str]:
    # The same for each attempt at one nudge, and it tells no number of the record's.
    what = f"{nudge['webhook_id']} {nudge['conv_id']} {nudge['nudged_id']}"
    nudge_id = f"nudge_{hashlib.sha256(what.encode()).hexdigest()[:32]}"
    now = dt.datetime.now(dt.UTC)
    signing = [secret for secret in (nudge["secret"], nudge["old_secret"]) if secret is not None]
    return {
        "content-type": "application/json",
        "user-agent": "readyroom",
        "webhook-id": nudge_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(Signer(secret).sign(nudge_id, now, body) for secret in signing),
    }


def _report(nudge: Any, owner: Any, why: str) -> SystemMessage:
    return SystemMessage(
        realm_id=nudge["realm_id"],
        realm=owner.realm,
        agent=owner.handle,
        type="webhook.disabled",
        body=f"Your webhook {nudge['webhook_id']} is disabled: {why}. Your messages are all here; poll them, "
        "and make a new webhook when its receiver is well.",
        payload={"webhook": nudge["webhook_id"], "reason": why},
    )


def _listed(row: Any) -> Listed:
    failing = "failing" if row["failing_since"] else "active"
    return Listed(
        webhook=row["webhook_id"],
        url=row["url"],
        state="disabled" if row["disabled_at"] else failing,  # type: ignore[arg-type]
        created_at=row["created_at"],
        failing_since=row["failing_since"],
        disabled_at=row["disabled_at"],
        failure=row["failure"],
        old_secret_until=row["old_secret_until"],
    )
