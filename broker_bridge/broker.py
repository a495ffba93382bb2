"""The embedded nerve: the tyo-mq protocol on the record's own port."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Sequence
from typing import Any, Literal

import socketio
import structlog

from broker_bridge.actions import (
    Acknowledge,
    Action,
    Answer,
    Ask,
    Attach,
    Claim,
    Detach,
    Emit,
    Find,
    Forget,
    HangUp,
    Keep,
    LookAgain,
    Open,
    PassOn,
    Question,
    Release,
    Whose,
)
from broker_bridge.engine import Encoded
from broker_bridge.guard import ASGI, guarded, mounted
from broker_bridge.limits import Limits
from broker_bridge.names import RENEW_SECONDS, TRUSTED_SECONDS, Names
from broker_bridge.nerve import Admission, Credential, Doorkeeper
from broker_bridge.nudge import Nudge
from broker_bridge.outbox import Outbox, Parcel
from broker_bridge.protocol import Protocol
from broker_bridge.pumps import Pumps
from broker_bridge.queues import Kept, Store, Unkept
from broker_bridge.sockets import FRAME, Sockets

log = structlog.get_logger()

ADMISSION_SECONDS = 5
STORE_SECONDS = 5
BEAT_SECONDS = 1
AT_ONCE = 50
"""Deliveries without a pause; about two milliseconds."""


class EmbeddedBroker:
    """A nerve and its own broker. Use it from the event loop that it was started on."""

    def __init__(
        self,
        *,
        door: Doorkeeper,
        limits: Limits | None = None,
        tick: float = 0.008,
        recheck_seconds: float | None = None,
        store: Store | None = None,
        names: Names | None = None,
    ) -> None:
        """Nudges of one room leave at most once in `tick` seconds.

        Every `recheck_seconds` the door is asked who may stay; None: only after `look_again`.
        Without a `store` nothing of other programs is durable; nudges never are. Without `names` a producer's
        name is its holder's in this process alone.
        """
        self._door, self._tick, self._recheck_seconds = door, tick, recheck_seconds
        self._limits = limits or Limits()
        self._protocol = Protocol(self._limits, keeps=store is not None, claims=names is not None)
        self._store, self._names = store, names
        self._pumps = Pumps(store, self._deliver) if store is not None else None
        self._sockets = Sockets(self._limits)
        self._outbox = Outbox()
        self._loops: list[asyncio.Task[None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._on_produced: Callable[[Parcel], None] = lambda _: None
        self._look_again = asyncio.Event()
        self._revocations = 0
        self._running = False
        server = self._sockets.server
        server.on("connect", self._on_connect)
        server.on("disconnect", self._on_disconnect)
        server.on(FRAME, self._on_event)

    def asgi(self, app: ASGI | None = None) -> ASGI:
        """`app` with the nerve at /socket.io/; everything else, lifespan included, goes to `app`."""
        nerve = socketio.ASGIApp(self._sockets.server)
        return mounted(guarded(nerve), app if app is not None else nerve)

    @property
    def state(self) -> Literal["ok", "degraded"]:
        """`ok` between start and close."""
        return "ok" if self._running else "degraded"

    @property
    def connections(self) -> int:
        """How many connections are logged in."""
        return len(self._protocol.admissions)

    @property
    def dropped(self) -> int:
        """How many nudges were dropped because too many rooms waited at once."""
        return self._outbox.dropped

    def nudge(self, nudge: Nudge, *, realm: str, names: Collection[str]) -> None:
        """See `Nerve.nudge`."""
        self._outbox.put(nudge, realm=realm, names=names)

    def on_produced(self, callback: Callable[[Parcel], None]) -> None:
        """Call back with each nudge that a record produced over a connection, once it is delivered here."""
        self._on_produced = callback

    def wake(self, queue: int) -> None:
        """Something was put into a queue by another way than a frame."""
        if self._pumps is not None:
            self._pumps.wake((queue,))

    def remind(self) -> None:
        """Nudge everybody who listens here once, for nudges may have been lost."""
        names: dict[str, set[str]] = {}
        for admission in self._protocol.admissions.values():
            names.setdefault(admission.realm, set()).add(admission.name)
        for realm, told in names.items():
            self.nudge(Nudge.now(conv="@everyone", sender="system"), realm=realm, names=told)

    def hang_up(self, which: Callable[[Admission], bool]) -> int:
        """Close every connection whose admission is among `which`, at once; returns how many.

        A login that is being looked up at this moment is checked once more.
        """
        self._revocations += 1
        ids = [id for id, admission in self._protocol.admissions.items() if which(admission)]
        for id in ids:
            self._forget(id)
        return len(ids)

    def look_again(self) -> None:
        """Soon, ask the door who may stay, and hang up on the others."""
        self._look_again.set()

    async def start(self) -> None:
        """Begin to carry nudges and to hang up on strangers."""
        if self._running:
            return
        self._running = True
        self._loops = [
            asyncio.create_task(loop()) for loop in (self._carry, self._beat, self._sweep, self._recheck)
        ]
        if self._names is not None:
            self._loops.append(asyncio.create_task(self._renew(self._names)))

    async def close(self) -> None:
        """Hang up on everybody and stop."""
        if not self._running:
            return
        self._running = False
        self.hang_up(lambda _: True)
        await self._sockets.sweep((), now=time.monotonic(), grace=0)
        for loop in self._loops:
            loop.cancel()
        if self._pumps is not None:
            await self._pumps.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                while self._tasks:  # a farewell may release names
                    await asyncio.wait(self._tasks)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._loops, *self._tasks, return_exceptions=True)
        self._loops.clear()
        await self._sockets.server.shutdown()

    async def _carry(self) -> None:
        while True:
            await self._outbox.filled()
            for parcel in self._outbox.take():
                emits = self._protocol.nudge(parcel.nudge, realm=parcel.realm, names=parcel.names)
                await self._kept(self._perform(emits))
            await asyncio.sleep(self._tick)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            self._sockets.ask_on()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(self._limits.grace / 4)
            admitted = self._protocol.admissions
            work = self._sockets.sweep(admitted, now=time.monotonic(), grace=self._limits.grace)
            await self._kept(work)
            await self._kept(self._perform(self._protocol.tidy(now=time.monotonic())))

    async def _recheck(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._recheck_seconds):
                    await self._look_again.wait()
            self._look_again.clear()
            held = {admission.token_id for admission in self._protocol.admissions.values()}
            try:
                over = held.difference(await self._door.valid(held))
            except Exception as exc:
                log.warning("nerve_recheck_failed", error=type(exc).__name__)
                continue  # who was admitted stays while the door does not answer
            self.hang_up(lambda admission: admission.token_id in over)  # noqa: B023 - called at once

    async def _renew(self, names: Names) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            await self._kept(self._renew_once(names))

    async def _renew_once(self, names: Names) -> None:
        """Renew the producers' names held here; what cannot be renewed is claimed again when it is used."""
        asked, began = self._protocol.claimed, time.monotonic()
        try:
            async with asyncio.timeout(STORE_SECONDS):
                still = await names.renew(asked)
        except (Unkept, TimeoutError) as exc:
            log.warning("nerve_store_failed", error=type(exc).__name__)
        else:
            self._protocol.renewed(asked, still, until=began + TRUSTED_SECONDS)

    async def _kept(self, work: Awaitable[None]) -> None:
        """Do one piece of work; what goes wrong in it ends nothing else."""
        try:
            await work
        except Exception:
            log.exception("nerve_task_failed")

    async def _on_connect(self, id: str, *_: Any) -> bool:
        self._protocol.connected(id, now=time.monotonic())
        return self._running

    async def _on_disconnect(self, id: str, *_: Any) -> None:
        self._sockets.release(id)
        await self._perform(self._protocol.disconnected(id))

    async def _on_event(self, id: str, event: object, *payload: Any) -> Any:
        frame: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        first = payload[0] if payload else None
        await self._perform(self._protocol.frame(id, event, first, now=time.monotonic(), ref=frame))
        ack = await frame
        return self._sockets.server.not_handled if ack is None else ack

    async def _perform(self, actions: Iterable[Action]) -> None:
        last: tuple[str, Any] = ("", None)
        packets: list[Encoded] = []
        for number, action in enumerate(actions, start=1):
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)  # the record shares this loop
            match action:
                case Emit(to, event, payload):
                    if last[0] != event or last[1] is not payload:  # one nudge goes to many
                        last, packets = (event, payload), self._sockets.encode(event, payload)
                    if not await self._sockets.send(to, packets):
                        self._forget(to, cut=True)
                case HangUp(connection):
                    self._forget(connection)
                case Ask(connection, credential):
                    self._spawn(self._ask(connection, credential))
                case LookAgain():
                    self.look_again()
                case PassOn(parcel):
                    self._on_produced(parcel)
                case Answer(frame, ack):
                    if not frame.done():
                        frame.set_result(ack)
                case Open() | Find() | Keep() | Acknowledge() | Whose() | Claim():
                    self._spawn(self._put(action))
                case Attach() | Detach() | Forget():
                    self._move(action)
                case Release():
                    self._spawn(self._release(action))

    async def _ask(self, connection: str, credential: Credential) -> None:
        try:
            async with asyncio.timeout(ADMISSION_SECONDS):
                admission = await self._admitted(credential)
        except Exception as exc:
            log.warning("nerve_admission_failed", error=type(exc).__name__)
            await self._perform(self._protocol.unanswered(connection))
        else:
            actions = self._protocol.admitted(connection, admission)
            if (admission := self._protocol.admission(connection)) is not None:
                self._sockets.admitted(connection, admission)
            await self._perform(actions)

    async def _admitted(self, credential: Credential) -> Admission | None:
        """Whom the door admits, and still does after whatever was revoked while it was asked."""
        revocations = self._revocations
        admission = await self._door.admit(credential)
        while admission is not None and revocations != self._revocations:
            revocations = self._revocations
            if admission.token_id not in await self._door.valid({admission.token_id}):
                return None
        return admission

    async def _put(self, asked: Question) -> None:
        """Ask the store, or the door, and go on with what it says."""
        try:
            async with asyncio.timeout(STORE_SECONDS):
                asks = self._door_says(asked) if isinstance(asked, Whose) else self._store_says(asked)
                answer = await asks
        except (Unkept, TimeoutError) as exc:
            log.warning("nerve_store_failed", error=type(exc).__name__)
            answer = Unkept()
        await self._perform(self._protocol.answered(asked, answer))

    async def _door_says(self, asked: Whose) -> bool:
        try:
            return await self._door.is_taken(asked.realm, asked.name)
        except Exception as exc:
            raise Unkept from exc

    async def _store_says(self, asked: Question) -> Any:
        if isinstance(asked, Claim):
            assert self._names is not None
            return await self._names.claim(asked.name)
        assert self._store is not None
        assert self._pumps is not None
        match asked:
            case Open(connection, _, queue):
                return await self._store.open(queue, connection=connection)
            case Find(_, _, realm, said):
                return await self._store.matching(realm, producer=said.producer, event=said.event)
            case Keep(_, _, realm, said, _, queues):
                kept = await self._store.keep(realm, queues, said.envelope, seconds=said.seconds)
                self._pumps.wake(kept)
                return kept
            case Acknowledge(connection, _, realm, holder, id):
                verdict, done = await self._store.acknowledged(realm, holder, id, connection=connection)
                self._pumps.acknowledged(done)
                return verdict

    async def _release(self, gone: Release) -> None:
        assert self._names is not None
        try:
            async with asyncio.timeout(STORE_SECONDS):
                await self._names.release(gone.names)
        except (Unkept, TimeoutError) as exc:
            log.warning("nerve_store_failed", error=type(exc).__name__)  # the lease will be over

    def _move(self, action: Attach | Detach | Forget) -> None:
        assert self._store is not None
        assert self._pumps is not None
        match action:
            case Attach():
                self._pumps.attach(action)
            case Detach(connection, queue):
                self._pumps.detach(connection, queue)
            case Forget(realm, queue):
                self._spawn(self._store.forget(realm, queue))

    async def _deliver(self, connection: str, queue: int, messages: Sequence[Kept]) -> bool:
        """Send messages of a queue; whether the connection was there for all of them."""
        emits = self._protocol.deliver(connection, queue, messages)
        await self._perform(emits)
        still = self._sockets.is_open(connection) and self._protocol.knows(connection)
        return still and len(emits) == len(messages)

    def _forget(self, id: str, *, cut: bool = False) -> None:
        """From now on this connection hears nothing and can do nothing; its socket follows."""
        farewell = self._protocol.disconnected(id)
        self._spawn(self._part(id, farewell, cut=cut))

    async def _part(self, id: str, farewell: list[Action], *, cut: bool) -> None:
        await self._perform(farewell)
        await (self._sockets.cut(id) if cut else self._sockets.part(id))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(self._kept(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
