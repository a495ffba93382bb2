"""Who is calling: a token gives the box or person, a handle the session. Remembered, for every call asks."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import structlog

from api.db import Database
from api.errors import BadToken, RecordDown
from api.models import Caller
from api.services import handles, sessions
from api.services.hints import Hints
from api.services.metrics import Metrics
from api.services.seen import Seen
from api.store import identity as store

log = structlog.get_logger()

BEAT_SECONDS = 0.5
TRUSTED_SECONDS = 2.0
SEEN_SECONDS = 5.0
SWEEP_SECONDS = 30.0
REMEMBERED = 50_000


@dataclass(frozen=True, slots=True)
class Gone:
    """What stopped being valid: a token, all of a holder, all of a realm, or all but the `valid` tokens."""

    token_id: str | None = None
    realm: str | None = None
    name: str | None = None
    valid: frozenset[str] | None = None

    def covers(self, *, realm: str, name: str, token_id: str) -> bool:
        """Whether a call or link with this token must end."""
        if self.valid is not None:
            return token_id not in self.valid
        if self.token_id is not None:
            return token_id == self.token_id
        return realm == self.realm and self.name in (None, name)


@dataclass(slots=True)
class _Known:
    """What one token means, and the sessions that came with it."""

    bare: Caller
    read_at: float
    valid_until: float
    sessions: dict[str, Caller] = field(default_factory=dict)


class Identity:
    """Turns tokens and handles into callers.

    Answers are remembered. What is revoked or retired is forgotten at once, through whichever replica it
    came; while PostgreSQL's notifications do not arrive, nothing is remembered for longer than two seconds.
    """

    def __init__(self, db: Database, metrics: Metrics, *, handles_per_box: int) -> None:
        self._db = db
        self._handles_per_box = handles_per_box
        self._metrics = metrics
        self._known: dict[bytes, _Known] = {}
        self._generation = 0
        self._heard_at = -TRUSTED_SECONDS
        self._seen = Seen(db)
        self._hints = Hints(metrics)
        self._sweep_wanted = asyncio.Event()
        self._on_gone: list[Callable[[Gone], None]] = []

    def on_gone(self, callback: Callable[[Gone], None]) -> None:
        """Call back, on the event loop, whenever tokens stop being valid."""
        self._on_gone.append(callback)

    async def caller(self, token_hash: bytes, handle: str | None, count: Callable[[Caller], None]) -> Caller:
        """The effective identity behind a token's hash and the handle that came with it.

        A handle of the box's own namespace is registered at its first use. Before a handle that is not
        remembered is looked at, which can cost a transaction, `count` may refuse the token's holder.

        Raises:
            BadToken: the token is unknown, revoked or expired, or its realm is.
            BadHandle: the handle is none at all.
            NameTaken: the handle's role is somebody else's name.
            LimitReached: the box has as many sessions as it may register.
            RecordDown: PostgreSQL is away.
        """
        known = self._known.get(token_hash)
        if known is None or not self._trusted(known):
            known = await self._look_up(token_hash)
        caller = known.sessions.get(handle) if handle is not None else None
        count(caller or known.bare)
        if caller is None:
            caller = await self._compose(known, handle)
        self._seen.note(caller)
        return caller

    async def holder(self, token_hash: bytes) -> Caller | None:
        """The box or person that holds a token, looked up afresh; None for a token that is not valid."""
        found = await store.holder(self._db, token_hash)
        return found.bare if found else None

    def forget(self, word: str) -> None:
        """Stop believing something at once; the other replicas hear of it from the transaction that did it.

        Args:
            word: `token <id>`, `holder <realm> <name>`, `realm <realm>` or `agent <realm> <handle>`.
        """
        match word.split(" "):
            case ["token", token_id]:
                self._end(Gone(token_id=token_id))
            case ["holder", realm, name]:
                self._end(Gone(realm=realm, name=name))
            case ["realm", realm]:
                self._end(Gone(realm=realm))
            case ["agent", realm, handle]:
                self._generation += 1
                for known in self._known.values():
                    if known.bare.realm == realm:
                        known.sessions.pop(handle, None)

    def look_again(self) -> None:
        """Soon, end what expired or was revoked unheard."""
        self._sweep_wanted.set()

    async def run(self) -> None:
        """Listen for what other replicas have revoked, and note who has been seen, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._for_ever(self._listen, 1.0))
            tasks.create_task(self._for_ever(self._beat, BEAT_SECONDS))
            tasks.create_task(self._for_ever(self._seen.write, SEEN_SECONDS))
            tasks.create_task(self._for_ever(self._sweep, 1.0))

    async def _compose(self, known: _Known, handle: str | None) -> Caller:
        bare = known.bare
        if bare.box is None or handle == bare.box:
            return bare
        if not handle:
            return replace(bare, hint=self._hints.absent(bare, blank=handle is not None))
        if handles.is_unexpanded(handle):
            return replace(bare, hint=self._hints.unexpanded(bare))
        parsed = handles.parse(handle)
        if handles.compose_agent_id(bare.box, handle) != handle:
            return replace(bare, hint=self._hints.foreign(bare, handle))
        return await self._session(known, parsed)

    async def _session(self, known: _Known, handle: handles.Handle) -> Caller:
        generation, bare = self._generation, known.bare
        session = await store.session(self._db, realm_id=bare.realm_id, handle=handle.text)
        if session is None or session.retired or session.box_id != bare.box_id:
            session = await sessions.take(self._db, box=bare, handle=handle, most=self._handles_per_box)
        caller = replace(
            bare,
            agent_id=session.agent_id,
            handle=session.handle,
            kind="session",
            addresses=session.addresses,
        )
        if generation == self._generation and len(known.sessions) < REMEMBERED:
            known.sessions[handle.text] = caller
        return caller

    async def _look_up(self, token_hash: bytes) -> _Known:
        generation = self._generation
        found = await store.holder(self._db, token_hash)
        if found is None:
            self._known.pop(token_hash, None)
            self._metrics.tokens_refused.inc()
            raise BadToken
        now = time.monotonic()
        valid_until = float("inf") if found.valid_seconds is None else now + found.valid_seconds
        known = _Known(found.bare, now, valid_until)
        if generation == self._generation:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[token_hash] = known
        return known

    def _trusted(self, known: _Known) -> bool:
        now = time.monotonic()
        fresh = now - known.read_at < TRUSTED_SECONDS or now - self._heard_at < TRUSTED_SECONDS
        return fresh and now < known.valid_until

    async def _listen(self) -> None:
        await self._db.listen(store.CHANNEL, self._heard, self._missed)

    async def _beat(self) -> None:
        await store.beat(self._db)

    async def _sweep(self) -> None:
        """Twice a minute and on each new connection, end what expired or was revoked unheard."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SWEEP_SECONDS):
                await self._sweep_wanted.wait()
        self._sweep_wanted.clear()
        generation = self._generation
        valid = await store.valid_tokens(self._db)
        if generation == self._generation:
            self._end(Gone(valid=valid))
        else:
            self._sweep_wanted.set()

    def _missed(self) -> None:
        self._generation += 1
        self._known.clear()
        self._sweep_wanted.set()

    def _heard(self, word: str) -> None:
        self._heard_at = time.monotonic()
        self.forget(word)

    def _end(self, gone: Gone) -> None:
        self._generation += 1
        for token_hash, known in list(self._known.items()):
            bare = known.bare
            if gone.covers(realm=bare.realm, name=bare.name, token_id=bare.token_id):
                del self._known[token_hash]
        for callback in self._on_gone:
            callback(gone)

    @staticmethod
    async def _for_ever(act: Callable[[], Awaitable[None]], pause: float) -> None:
        while True:
            try:
                await act()
            except RecordDown:
                pass
            except Exception:
                log.exception("identity_task_failed", task=act.__name__)
            await asyncio.sleep(pause)
