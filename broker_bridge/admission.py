"""Admission for a nerve that stands apart from the record: it asks the record, over HTTP."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection
from dataclasses import asdict
from typing import Any

import aiohttp

from broker_bridge.names import Name
from broker_bridge.nerve import ANY_REALM, Admission, Credential
from broker_bridge.nudge import PRODUCER
from broker_bridge.queues import Unkept

ASK_SECONDS = 4.0
IDS_A_CALL = 5000
NAMES_A_CALL = 100
LONGEST_KEY = 200
"""Characters that the record takes; no realm's name is as long."""


class AskTheRecord:
    """Asks the record whom to admit, by the token that the two share. Tokens and tickets travel as hashes."""

    def __init__(self, http: aiohttp.ClientSession, record_url: str, *, record_token: str) -> None:
        """`record_token` is what the record logs in with here, to speak to every realm, and we there."""
        self._http, self._url = http, record_url.rstrip("/")
        self.share(record_token)

    def share(self, record_token: str) -> None:
        """Share another token with the record from now on."""
        self._token = record_token
        record_id = f"record_{_hash(record_token)[:16]}"
        self.record = Admission(ANY_REALM, PRODUCER, "producer", record_id, "record")
        """What the record is admitted as."""

    async def admit(self, credential: Credential) -> Admission | None:
        """See `Doorkeeper.admit`.

        Raises:
            aiohttp.ClientError, TimeoutError: the record cannot be asked, or gives no answer.
        """
        if credential.by == "realm":
            named = len(credential.value) <= LONGEST_KEY
            return await self._admitted(credential.by, credential.value) if named else None
        key = _hash(credential.value)
        if credential.by == "token" and hmac.compare_digest(key, _hash(self._token)):
            return self.record
        return await self._admitted(credential.by, key)

    async def valid(self, token_ids: Collection[str]) -> set[str]:
        """See `Doorkeeper.valid`.

        Raises:
            aiohttp.ClientError, TimeoutError: the record cannot be asked, or gives no answer.
        """
        valid = {self.record.token_id}
        asked = sorted(set(token_ids) - valid)
        for first in range(0, len(asked), IDS_A_CALL):
            answer = await self._ask("/valid", {"token_ids": asked[first : first + IDS_A_CALL]})
            valid.update(answer["token_ids"])
        return valid

    async def is_taken(self, realm: str, name: str) -> bool:
        """See `Doorkeeper.is_taken`.

        Raises:
            aiohttp.ClientError, TimeoutError: the record cannot be asked, or gives no answer.
        """
        return bool((await self._ask("/name", {"realm": realm, "name": name}))["taken"])

    async def claim(self, name: Name) -> bool:
        """See `Names.claim`."""
        return bool(await self._names("claim", [name]))

    async def renew(self, names: Collection[Name]) -> Collection[Name]:
        """See `Names.renew`."""
        return await self._names("renew", names)

    async def release(self, names: Collection[Name]) -> None:
        """See `Names.release`."""
        await self._names("release", names)

    async def _names(self, act: str, names: Collection[Name]) -> list[Name]:
        """Have the record do something with names; those that are their holders' then."""
        wanted, held = list(names), []
        for first in range(0, len(wanted), NAMES_A_CALL):
            some = wanted[first : first + NAMES_A_CALL]
            try:
                answer = await self._ask("/names", {"act": act, "names": [asdict(name) for name in some]})
            except (aiohttp.ClientError, TimeoutError) as exc:
                raise Unkept from exc
            held += [some[place] for place in answer["places"]]
        return held

    async def _admitted(self, by: str, key: str) -> Admission | None:
        admission = (await self._ask("", {"by": by, "key": key}))["admission"]
        return Admission(**admission) if admission is not None else None

    async def _ask(self, path: str, body: dict[str, Any]) -> Any:
        async with self._http.post(
            f"{self._url}/v1/nerve/admissions{path}",
            json=body,
            headers={"Authorization": f"Bearer {self._token}"},
            timeout=aiohttp.ClientTimeout(total=ASK_SECONDS),
            allow_redirects=False,
        ) as reply:
            reply.raise_for_status()
            return await reply.json()


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
