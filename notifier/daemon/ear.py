"""Keeps a listener at the nerve: learns from the record where it is, and comes back after every failure."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import secrets
from collections.abc import Callable

import structlog

from broker_bridge.nudge import Nudge
from broker_bridge.tyo_mq import Listener
from notifier.record import Record, RecordError, Refused

log = structlog.get_logger()

ASK_SECONDS = 3.0
ASK_AGAIN_SECONDS = (0.5, 1.0, 1.5)
"""Pauses while the record does not say where the nerve is; one that is back is heard within five seconds."""
REFUSED_SECONDS = 30.0
"""The pause after a token that the record will not have, or after a fault of ours."""
ASK_ANEW_SECONDS = 300.0
"""How often the record is asked whether the nerve has moved, while it cannot be heard."""

Where = tuple[str, str]
"""A nerve's URL, and the token to log in with."""


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
        where = await self._found()
        while True:
            where = await self._listen(where)

    async def _found(self) -> Where:
        tries = 0
        while True:
            try:
                return await self._ask()
            except RecordError as error:
                if tries == 0:
                    log.info("nerve_not_known_yet", error=str(error))
                await asyncio.sleep(_pause(error, tries))
            tries += 1

    async def _ask(self) -> Where:
        """Where the nerve is now.

        Raises:
            RecordError: the record does not say.
        """
        try:
            async with asyncio.timeout(ASK_SECONDS):
                told = await self._record.nerve()
            return str(told["url"]), str(told.get("token") or self._token)
        except (TimeoutError, KeyError) as error:
            raise RecordError("The record does not say where the nerve is.") from error

    async def _listen(self, where: Where) -> Where:
        """Listen there until the nerve has moved; returns where it is then."""
        self.url, token = where
        self._listener = Listener(self.url, token, self._name, self._nudged, self._heard)
        listening = asyncio.create_task(self._listener.run())
        try:
            return await self._moved(where, listening)
        finally:
            await self._listener.close()
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            self.hears = False

    async def _moved(self, where: Where, listening: asyncio.Task[None]) -> Where:
        """Wait until it has; a listener that is deaf for long goes on trying meanwhile."""
        asked_at = asyncio.get_running_loop().time()
        while not listening.done():
            await asyncio.wait([listening], timeout=1.0)
            now = asyncio.get_running_loop().time()
            if self.hears:
                asked_at = now
            elif now - asked_at >= ASK_ANEW_SECONDS:
                asked_at = now
                with contextlib.suppress(RecordError):
                    if (answer := await self._ask()) != where:
                        return answer
        if not listening.cancelled() and listening.exception() is not None:
            log.error("nerve_listener_failed", error=str(listening.exception()))
            await asyncio.sleep(REFUSED_SECONDS)
        return where

    def _nudged(self, nudge: Nudge) -> None:
        self._on_nudge(nudge.conv, nudge.sender)

    def _heard(self, hears: bool) -> None:
        self.hears = hears
        log.info("nerve_heard" if hears else "nerve_lost", url=self.url)
        if hears:
            self._on_heard()


def _pause(error: RecordError, tries: int) -> float:
    if isinstance(error, Refused) and error.status in (401, 403):
        return REFUSED_SECONDS
    longest = ASK_AGAIN_SECONDS[min(tries, len(ASK_AGAIN_SECONDS) - 1)]
    return longest * random.uniform(0.5, 1)  # noqa: S311 - spreads load, keeps no secret
