"""Keeps a listener at the nerve: learns from the record where it is, and comes back after every failure."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable

import structlog

from broker_bridge.nudge import Nudge
from broker_bridge.tyo_mq import Listener
from notifier.record import Record, RecordError

log = structlog.get_logger()

ASK_AGAIN_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
ASK_ANEW_SECONDS = 300.0
"""How often the record is asked whether the nerve has moved, while it cannot be heard."""


class Ear:
    """One listener after another.

    Attributes:
        url: where we listen; None before the record has told.
        hears: whether every nudge of this moment is heard.
    """

    def __init__(
        self,
        record: Record,
        token: str,
        *,
        on_nudge: Callable[[str, str], None],
        on_heard: Callable[[], None],
    ) -> None:
        """`on_heard` is called each time that the nerve can be heard again: nudges may have been lost."""
        self._record = record
        self._token = token
        self._on_nudge = on_nudge
        self._on_heard = on_heard
        self._name = f"notifier-{os.getpid()}-{secrets.token_hex(4)}"
        self._listener: Listener | None = None
        self.url: str | None = None
        self.hears = False

    @property
    def trouble(self) -> str | None:
        """Why nothing is heard; None while all is well."""
        if self.hears:
            return None
        return (self._listener.trouble if self._listener else None) or "not reached yet"

    async def run(self) -> None:
        """Listen until cancelled."""
        while True:
            url, token = await self._where()
            self.url = url
            self._listener = Listener(url, token, self._name, self._nudged, self._heard)
            listening = asyncio.create_task(self._listener.run())
            try:
                await self._until_deaf_for_long(listening)
            finally:
                await self._listener.close()
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)
                self.hears = False

    async def _where(self) -> tuple[str, str]:
        tries = 0
        while True:
            try:
                told = await self._record.nerve()
                return str(told["url"]), str(told.get("token") or self._token)
            except (RecordError, KeyError) as error:
                if tries == 0:
                    log.info("nerve_not_known_yet", error=str(error))
            await asyncio.sleep(ASK_AGAIN_SECONDS[min(tries, len(ASK_AGAIN_SECONDS) - 1)])
            tries += 1

    async def _until_deaf_for_long(self, listening: asyncio.Task[None]) -> None:
        deaf_since = asyncio.get_running_loop().time()
        while not listening.done():
            await asyncio.wait([listening], timeout=1.0)
            now = asyncio.get_running_loop().time()
            if self.hears:
                deaf_since = now
            elif now - deaf_since >= ASK_ANEW_SECONDS:
                return
        if not listening.cancelled() and listening.exception() is not None:
            log.error("nerve_listener_failed", error=str(listening.exception()))
            await asyncio.sleep(ASK_AGAIN_SECONDS[-1])

    def _nudged(self, nudge: Nudge) -> None:
        self._on_nudge(nudge.conv, nudge.sender)

    def _heard(self, hears: bool) -> None:
        self.hears = hears
        log.info("nerve_heard" if hears else "nerve_lost", url=self.url)
        if hears:
            self._on_heard()
