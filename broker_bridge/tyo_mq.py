"""Our two clients of a tyo-mq broker, ours or an original one: the notifier's ear and the record's voice."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection
from typing import Any, Literal

import structlog

from broker_bridge import frames
from broker_bridge.handlers import LOOK_AGAIN
from broker_bridge.link import Line, Link, Lost, Refused
from broker_bridge.nerve import ANY_REALM
from broker_bridge.nudge import DELIVERED, EVENT, PRODUCER, Nudge
from broker_bridge.outbox import Outbox, Parcel
from broker_bridge.protocol import SERVER

log = structlog.get_logger()

NAMES_A_FRAME = 5000
BATCH = 200
"""Nudges between two words of the broker; a loaded one manages so many in the time it is given."""
RENEWAL = 50.0
"""Seconds, at most, until a listener subscribes again: a broker may lose a subscription without a word."""
LIMITED_PAUSE = 1.0
"""Seconds, at least, until a broker that dropped frames is told again; it says so once a second."""


class Listener:
    """Hears the nudges of one box or person, whatever becomes of the broker."""

    def __init__(
        self,
        url: str,
        token: str,
        name: str,
        on_nudge: Callable[[Nudge], None],
        on_state: Callable[[bool], None],
    ) -> None:
        """`name` is the consumer's name, one for each listener of a box.

        `on_state` is told True when every nudge from then on will be heard, False when that ends; what was
        missed in between is for the caller to look up. Both are called on the loop of `run`; they must not
        block, nor raise.
        """
        self._name, self._on_nudge, self._on_state = name, on_nudge, on_state
        self._link = Link(url, token, use=self._listen, on_event=self._on_event)

    @property
    def trouble(self) -> str | None:
        """Why nothing is heard now, in the broker's words or ours; None while all is well."""
        return self._link.trouble

    async def run(self) -> None:
        """Listen until `close`, coming back after every failure."""
        await self._link.run()

    async def close(self) -> None:
        """Stop listening; twice is fine."""
        await self._link.close()

    async def _listen(self, line: Line) -> None:
        named = {"name": self._name, "id": self._name, "consumer_id": self._name}
        await line.emit("CONSUMER", named)
        await self._subscribe(line)
        log.info("nerve_link_up", name=self._name)
        self._on_state(True)
        try:
            while not await _lost_within(line, RENEWAL):
                await self._subscribe(line)
        finally:
            self._on_state(False)

    async def _subscribe(self, line: Line) -> None:
        """Hear nudges from now on; again is fine, and shows that the broker still answers."""
        wanted = {"event": EVENT, "producer": PRODUCER, "consumer": self._name, "consumer_id": self._name}
        await line.emit("SUBSCRIBE", wanted)
        await line.barrier()

    def _on_event(self, event: str, payload: object) -> None:
        body = frames.body(payload)
        if event == DELIVERED and body is not None and body.get("from") == PRODUCER:
            nudge = Nudge.from_wire(body.get("message"))
            if nudge is not None:
                self._on_nudge(nudge)


class TyoMqNerve:
    """The record's voice at a broker elsewhere.

    A batch is in flight at a time and the next waits for the broker's word that it took it: a slow or hung
    broker makes bursts coalesce, and costs the record nothing. What it did not take is said again later.
    """

    def __init__(self, url: str, token: str, *, realm: str = "main", tick: float = 0.008) -> None:
        """`realm` is the one whose nudges go to an original broker, which knows no other of ours."""
        self._realm, self._tick = realm, tick
        self._outbox = Outbox()
        self._link = Link(url, token, use=self._talk, on_event=self._on_event)
        self._batch, self._limited = BATCH, False
        self._running: asyncio.Task[None] | None = None
        self._state: Literal["ok", "degraded"] = "degraded"
        self._look_again = False
        self.foreign = 0
        """Nudges that were not said because the broker has no such realm of ours."""

    @property
    def state(self) -> Literal["ok", "degraded"]:
        """`ok` while the broker takes what it is told."""
        return self._state

    @property
    def trouble(self) -> str | None:
        """Why nudges cannot leave now; None while they can."""
        return self._link.trouble

    @property
    def dropped(self) -> int:
        """How many nudges were dropped because too many rooms waited at once."""
        return self._outbox.dropped

    def nudge(self, nudge: Nudge, *, realm: str, names: Collection[str]) -> None:
        """See `Nerve.nudge`."""
        self._outbox.put(nudge, realm=realm, names=names)

    def look_again(self) -> None:
        """Have a broker of ours find out who may stay, for somebody may have to go. Returns at once."""
        self._look_again = True
        self._outbox.ring()

    def renew(self, token: str) -> None:
        """Log in with this token from now on."""
        self._link.renew(token)

    async def start(self) -> None:
        """Begin to seek the broker."""
        if self._running is None:
            self._running = asyncio.create_task(self._link.run())

    async def close(self) -> None:
        """Stop; what still waits is not said."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running}, timeout=1)
            self._running = None

    async def _talk(self, line: Line) -> None:
        if line.welcome.get("role") not in ("producer", "both"):
            raise Refused("the nerve token may not produce; give the record one with the role producer")
        try:
            await line.barrier()
            log.info("nerve_link_up", realm=line.welcome.get("realm"))
            while True:
                self._state = "ok"
                await self._outbox.filled()
                await self._pass_on(line)
                await self._say(line, self._outbox.take())
                await asyncio.sleep(self._tick)
        finally:
            self._state = "degraded"

    async def _pass_on(self, line: Line) -> None:
        """Tell the broker to look again. One that misses it looks by itself a little later."""
        wanted, self._look_again = self._look_again, False
        if wanted and line.welcome.get("server") == SERVER:
            await line.emit(LOOK_AGAIN, {})

    async def _say(self, line: Line, parcels: list[Parcel]) -> None:
        """Say all of them, a batch at a time; what the broker did not confirm waits for the next line."""
        try:
            while parcels:
                self._limited = False
                for parcel in parcels[: self._batch]:
                    for frame in self._frames(line.welcome, parcel):
                        await line.emit("PRODUCE", frame)
                await line.barrier()
                if self._limited:
                    await self._slow_down()
                else:
                    del parcels[: self._batch]
                    self._batch = min(BATCH, self._batch * 2)
        except (Lost, asyncio.CancelledError):
            self._outbox.restore(parcels)
            raise

    async def _slow_down(self) -> None:
        """Fewer at a time, and later: some of what was said is dropped, and all of it will be said again."""
        self._state = "degraded"
        self._batch = max(1, self._batch // 2)
        await asyncio.sleep(LIMITED_PAUSE * random.uniform(1, 1.5))  # noqa: S311 - spreads load

    def _on_event(self, event: str, _: object) -> None:
        if event == "RATE_LIMITED":
            self._limited = True

    def _frames(self, welcome: frames.Body, parcel: Parcel) -> list[frames.Body]:
        """The frames of one nudge: only a broker of ours learns whom it is for."""
        frame: dict[str, Any] = {"event": EVENT, "from": PRODUCER, "message": parcel.nudge.to_wire()}
        ours = welcome.get("server") == SERVER
        carried = welcome.get("realm") if ours else self._realm
        if carried not in (parcel.realm, ANY_REALM):
            self.foreign += 1
            return []
        if not ours:
            return [frame]
        names = sorted(parcel.names)
        parts = [names[i : i + NAMES_A_FRAME] for i in range(0, len(names), NAMES_A_FRAME)]
        return [{**frame, "realm": parcel.realm, "to": part} for part in parts]


async def _lost_within(line: Line, seconds: float) -> bool:
    """Whether the line is lost within some time, half to all of `seconds`."""
    done, _ = await asyncio.wait({line.lost}, timeout=seconds * random.uniform(0.5, 1))  # noqa: S311 - spreads load
    return bool(done)
