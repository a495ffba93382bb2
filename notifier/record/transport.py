"""One call of the REST API: one session, explicit timeouts, bounded retries, errors in plain words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import aiohttp
import stamina.instrumentation
from pydantic import SecretStr

from notifier.settings import in_words

Json = dict[str, Any]

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 20.0


class RecordError(Exception):
    """A call of the record came to nothing; the text says what to do next."""

    code = "error"

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class Refused(RecordError):
    """The record answered, and said no.

    Attributes:
        code: stable, such as `not_a_member`.
        detail: what to do next.
        facts: the problem's other fields, `status` among them.
    """

    def __init__(self, code: str, detail: str, facts: Json) -> None:
        super().__init__(detail)
        self.code = code
        self.facts = facts

    @property
    def status(self) -> int:
        """The HTTP status."""
        return int(self.facts.get("status", 0))


class RecordUnreachable(RecordError):
    """Nothing answered, or something that is no record."""

    code = "unreachable"


class _TryAgain(Exception):
    """A loss that a repetition may cure; carries what to raise when it does not."""

    def __init__(self, error: RecordError) -> None:
        super().__init__(error.code)
        self.error = error


class Transport:
    """Carries calls to one record on behalf of one box, or of one of its sessions.

    Attributes:
        url: the record's base URL.
        agent: the handle that calls are made as; None speaks as the bare box. May be set between calls.
        answered_as: the identity that the record gave the last call.
        answered_at: the last answer's HTTP date.
    """

    def __init__(
        self, url: str, token: str | SecretStr, agent: str | None = None, *, patience: float = 8.0
    ) -> None:
        """`patience`: seconds that a call is repeated for while the record does not answer; 0 tries once."""
        self.url = url.rstrip("/")
        self.agent = agent
        self.answered_as: str | None = None
        self.answered_at: str | None = None
        self._token = token if isinstance(token, SecretStr) else SecretStr(token)
        self._patience = patience
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        # stamina would print each retry to stdout, where answers for machines go.
        stamina.instrumentation.set_on_retry_hooks([])
        self._session = aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {self._token.get_secret_value()}"},
            trust_env=False,
            connector=aiohttp.TCPConnector(limit=16),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Give the connections back. Twice is fine."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def call(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        answer_within: float = ANSWER_SECONDS,
        repeatable: bool = True,
    ) -> Json:
        """Make one call and return its JSON object (`{}` for an empty answer).

        Fields of `body` and `query` that are None are left out. A `repeatable` call is made again, as long as
        the patience lasts, when its connection is lost, or when the record is not available or asks to slow
        down.

        Raises:
            Refused: the record said no.
            RecordUnreachable: no answer, or one that no record gives.
        """
        data = None if body is None else json.dumps(_present(body)).encode()
        params = {name: _word(value) for name, value in _present(query or {}).items()}
        sent = {**(headers or {}), **({"X-Tyode-Agent": self.agent} if self.agent else {})}
        if data is not None:
            sent["Content-Type"] = "application/json"
        patience = self._patience if repeatable else 0.0
        try:
            async for attempt in stamina.retry_context(
                on=_TryAgain,
                attempts=None if patience else 1,
                timeout=patience or None,
                wait_initial=0.1,
                wait_max=1.0,
                wait_jitter=0.2,
            ):
                with attempt:
                    return await self._once(method, path, data, params, sent, answer_within)
        except _TryAgain as lost:
            raise lost.error from lost.__cause__
        raise AssertionError("stamina returns or raises")

    async def _once(
        self,
        method: str,
        path: str,
        data: bytes | None,
        params: Mapping[str, str],
        headers: Mapping[str, str],
        answer_within: float,
    ) -> Json:
        if self._session is None:
            raise RuntimeError("use the record inside `async with`")
        timeout = aiohttp.ClientTimeout(total=answer_within, sock_connect=CONNECT_SECONDS)
        try:
            async with self._session.request(
                method,
                f"{self.url}{path}",
                data=data,
                params=params,
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
            ) as response:
                self.answered_as = response.headers.get("X-Tyode-Agent", self.answered_as)
                self.answered_at = response.headers.get("Date")
                return self._read(response.status, response.headers, await response.read())
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise _TryAgain(RecordUnreachable(_unreachable(self.url, error))) from error

    def _read(self, status: int, headers: Mapping[str, str], content: bytes) -> Json:
        try:
            answer = json.loads(content) if content.strip() else {}
        except ValueError:
            answer = None
        if 200 <= status < 300 and isinstance(answer, dict):
            return answer
        if isinstance(answer, dict) and "code" in answer:
            facts = {k: v for k, v in answer.items() if k not in ("type", "title", "detail", "code")}
            facts["status"] = status
            if "Retry-After" in headers:
                facts.setdefault("retry_after", headers["Retry-After"])
            refused = Refused(str(answer["code"]), str(answer.get("detail", answer["code"])), facts)
            raise _TryAgain(refused) if status in (429, 503) else refused
        stranger = RecordUnreachable(_stranger(self.url, status, headers))
        raise _TryAgain(stranger) if status in (502, 503, 504) else stranger


def segment(name: str) -> str:
    """One segment of a path, whatever the name holds."""
    return quote(name, safe="@")


def _present(fields: Mapping[str, object]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _unreachable(url: str, error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return (
            f"The certificate of {url} is not trusted here. Have this machine trust who signed it, or check "
            "READYROOM_URL."
        )
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        return (
            f"What answers at {url} does not speak TLS. On this machine or in a private network, use http:// "
            "in READYROOM_URL; elsewhere put a TLS proxy in front of the record."
        )
    return (
        f"The record at {url} cannot be reached ({in_words(error)}). Start it with `readyroom up`, or check "
        "READYROOM_URL and the network, then try again."
    )


def _stranger(url: str, status: int, headers: Mapping[str, str]) -> str:
    if "Location" in headers:
        return f"{url} sends callers on to {headers['Location']}. Use that address as READYROOM_URL."
    return f"What answers at {url} is no Readyroom record (HTTP {status}). Check READYROOM_URL."
