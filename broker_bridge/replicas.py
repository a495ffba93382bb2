"""An embedded nerve that stands several times: what one replica is told, the listeners of all hear."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Collection
from typing import Literal

import structlog

from broker_bridge import parcels
from broker_bridge.broker import EmbeddedBroker
from broker_bridge.channel import Channel, ChannelLost, Seat
from broker_bridge.link import LONGEST_PAUSE, pause
from broker_bridge.nudge import Nudge
from broker_bridge.outbox import Outbox, Parcel
from broker_bridge.racing import unless_lost

log = structlog.get_logger()

BEAT_SECONDS = 0.5
SILENT_BEATS = 5
"""A replica, or the channel, that was not heard for so many beats is gone."""

LAST_SECONDS = 0.5
"""For what still waits at the end."""


class Replicas:
    """The nerve of one replica, which passes its nudges on to the others and theirs to its listeners.

    Nothing that is passed on delays its own listeners, or whoever nudges. When nudges of another replica may
    have been lost (the channel was away, or a replica fell silent without a last word), everybody who
    listens here is nudged once: to look costs little, and nothing is missed until the next sweep.
    """

    def __init__(self, broker: EmbeddedBroker, channel: Channel, *, tick: float = 0.008) -> None:
        """`broker` is started and closed with this."""
        self._broker, self._channel, self._tick = broker, channel, tick
        self._id = secrets.token_hex(8)
        self._outbox = Outbox()
        self._wanted = asyncio.Event()
        self._closing = False
        self._keeping: asyncio.Task[None] | None = None
        self._peers: dict[str, float] = {}
        self._unheard = 0
        self.up = False
        """Whether the others are reached now."""
        self.trouble: str | None = None
        """Why the others are not reached now; None while they are, and before the first attempt."""
        broker.on_produced(self._pass_on)

    @property
    def state(self) -> Literal["ok", "degraded"]:
        """`degraded` while the listeners of other replicas are not reached."""
        return "degraded" if self.trouble is not None else self._broker.state

    @property
    def dropped(self) -> int:
        """How many nudges were dropped because too many rooms waited at once."""
        return self._broker.dropped + self._outbox.dropped

    def nudge(self, nudge: Nudge, *, realm: str, names: Collection[str]) -> None:
        """See `Nerve.nudge`."""
        self._broker.nudge(nudge, realm=realm, names=names)
        self._pass_on(Parcel(realm, frozenset(names), nudge))

    async def start(self) -> None:
        """Begin to carry and to seek the others."""
        await self._broker.start()
        if self._keeping is None:
            self._closing = False
            self._keeping = asyncio.create_task(self._keep())

    async def close(self) -> None:
        """Pass on what waits, within half a second, and stop."""
        if self._keeping is not None:
            self._closing = True
            self._wanted.set()
            await asyncio.wait({self._keeping}, timeout=LAST_SECONDS)
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
            self._keeping = None
        await self._broker.close()

    def _pass_on(self, parcel: Parcel) -> None:
        self._outbox.put(parcel.nudge, realm=parcel.realm, names=parcel.names)
        self._wanted.set()

    async def _keep(self) -> None:
        failures = 0
        while not self._closing:
            try:
                async with self._channel.joined(self._heard) as seat:
                    await unless_lost(self._talk(seat), seat.lost)
                    if not self._closing:
                        raise ChannelLost("the channel was closed")
            except Exception as exc:
                failures = 1 if self.up else failures + 1
                self._lost(exc)
            await self._pause(failures)

    async def _pause(self, failures: int) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause(LONGEST_PAUSE, failures)):
                while not self._closing:
                    self._wanted.clear()
                    await self._wanted.wait()

    async def _talk(self, seat: Seat) -> None:
        clock, beat_at = asyncio.get_running_loop(), 0.0
        self._unheard = 0
        while True:
            if clock.time() >= beat_at:
                await self._beat(seat)
                beat_at = clock.time() + BEAT_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(beat_at):
                    await self._wanted.wait()
            self._wanted.clear()
            await self._say(seat, self._outbox.take())
            if self._closing:
                await seat.say(parcels.beat(self._id, last=True))
                return
            await asyncio.sleep(self._tick)

    async def _beat(self, seat: Seat) -> None:
        if self._unheard >= SILENT_BEATS:
            raise ChannelLost("what is said there does not come back")
        self._unheard += 1
        await seat.say(parcels.beat(self._id))

    async def _say(self, seat: Seat, waiting: list[Parcel]) -> None:
        """Say all of it; what may not have been heard is said again at the next seat."""
        try:
            for text in parcels.written(waiting, by=self._id):
                await seat.say(text)
        except BaseException:
            self._outbox.restore(waiting)
            self._wanted.set()
            raise

    def _heard(self, text: str) -> None:
        word = parcels.read(text)
        if word is None:
            return
        if word.by == self._id:
            self._came_back()
        elif word.last:
            self._peers.pop(word.by, None)
        else:
            self._peers[word.by] = asyncio.get_running_loop().time()
            for parcel in word.parcels:
                self._broker.nudge(parcel.nudge, realm=parcel.realm, names=parcel.names)

    def _came_back(self) -> None:
        """Our own text came back, so everything that the others said before it has been heard."""
        self._unheard = 0
        if not self.up:
            self.up = True
            log.info("nerve_replicas_up")
            if self.trouble is not None:
                self.trouble = None
                self._broker.remind()
        now = asyncio.get_running_loop().time()
        silent = [id for id, at in self._peers.items() if now - at > SILENT_BEATS * BEAT_SECONDS]
        for id in silent:
            log.warning("nerve_replica_silent", replica=id)
            del self._peers[id]
        if silent:
            self._broker.remind()

    def _lost(self, exc: Exception) -> None:
        if not isinstance(exc, ChannelLost):
            log.exception("nerve_replicas_failed")
        why = str(exc) if isinstance(exc, ChannelLost) else "a fault of ours"
        self.up = False
        self._peers.clear()
        if self.trouble != why:
            self.trouble = why
            log.warning("nerve_replicas_lost", reason=why)
