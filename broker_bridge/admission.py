"""Admission for a nerve that stands apart from the record: it asks the record, over HTTP."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
from collections.abc import Callable

import aiohttp
import structlog

from broker_bridge.nerve import ANY_REALM, Admission
from broker_bridge.nudge import PRODUCER

log = structlog.get_logger()

FRESH_SECONDS = 10.0
ASK_SECONDS = 4.0


class AskTheRecord:
    """Looks tokens up by asking the record whom they belong to; an answer is believed for ten seconds."""

    def __init__(self, http: aiohttp.ClientSession, record_url: str, *, record_token: str | None) -> None:
        """`record_token` is what the record itself logs in with, to speak to every realm."""
        self._http, self._url, self._record_token = http, record_url.rstrip("/"), record_token
        self._known: dict[str, tuple[float, Admission]] = {}

    async def admit(self, token: str) -> Admission | None:
        """Whom the token belongs to; None when to nobody.

        Raises:
            aiohttp.ClientError: the record cannot be asked, or gives no answer.
        """
        if self._record_token and hmac.compare_digest(token.encode(), self._record_token.encode()):
            return Admission(ANY_REALM, PRODUCER, "producer", "the record")
        if not (token.isascii() and token.isprintable()):
            return None
        asked, admission = self._known.get(token, (float("-inf"), None))
        if time.monotonic() - asked < FRESH_SECONDS:
            return admission
        return await self._ask(token)

    async def recheck(self, hang_up: Callable[[Callable[[Admission], bool]], object]) -> None:
        """For ever: hang up on those whose tokens the record no longer knows, ten seconds later at most."""
        while True:
            await asyncio.sleep(FRESH_SECONDS)
            for token, (_, admission) in list(self._known.items()):
                try:
                    still = await self._ask(token)
                except (aiohttp.ClientError, TimeoutError) as exc:
                    log.warning("nerve_recheck_failed", error=type(exc).__name__)
                    break  # who was admitted stays while the record is away
                if still != admission:
                    hang_up(lambda one, gone=admission.token_id: one.token_id == gone)  # type: ignore[misc]

    async def _ask(self, token: str) -> Admission | None:
        timeout = aiohttp.ClientTimeout(total=ASK_SECONDS)
        headers = {"Authorization": f"Bearer {token}"}
        whoami = f"{self._url}/v1/whoami"
        async with self._http.get(whoami, headers=headers, timeout=timeout, allow_redirects=False) as reply:
            self._known.pop(token, None)
            if reply.status == 401:
                return None
            reply.raise_for_status()
            who = await reply.json()
        digest = hashlib.sha256(token.encode()).hexdigest()[:16]
        admission = Admission(who["realm"], who["agent"], "consumer", digest)
        self._known[token] = (time.monotonic(), admission)
        return admission
