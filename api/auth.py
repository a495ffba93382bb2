"""From a request's headers to who is calling."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Request

from api.errors import BadHandle, BadToken, NerveOnly, OperatorOnly
from api.models import Caller
from api.services.identity import Identity
from api.services.limits import Rate
from api.services.record import Record
from api.services.tokens import hash_of
from api.settings import read_secret

RawHeaders = Iterable[tuple[bytes, bytes]]

AGENT_HEADER = b"x-tyode-agent"


class Auth:
    """Reads the two headers that say who calls. A token counts nowhere else: not in a URL, not in a body."""

    def __init__(
        self,
        identity: Identity,
        *,
        rate: Rate,
        admin_token_file: Path | None,
        nerve_token_file: Path | None,
    ) -> None:
        self._identity = identity
        self._rate = rate
        self._admin_token_file = admin_token_file
        self._nerve_token_file = nerve_token_file

    async def authenticate(self, headers: RawHeaders) -> Caller:
        """The caller.

        Args:
            headers: raw ASGI headers, names in lower case.

        Raises:
            BadToken: no valid token of a box or person.
            BadHandle: X-Tyode-Agent holds no handle, or comes twice.
            NameTaken: the handle's role is somebody else's name.
            RecordDown: PostgreSQL is away.
        """
        token: bytes | None = None
        handle: bytes | None = None
        twice = False
        for name, value in headers:
            if name == b"authorization":
                if token is not None:
                    raise BadToken
                token = _bearer(value)
            elif name == AGENT_HEADER:
                twice = twice or handle is not None
                handle = value
        if token is None:
            raise BadToken
        wanted = handle.decode("latin-1").strip() if handle is not None else None
        caller = await self._identity.caller(hash_of(token), None if twice else wanted)
        if twice and caller.kind != "person":
            raise BadHandle
        return caller

    def count(self, caller: Caller) -> None:
        """Count one request of a box with all its sessions, or of a person.

        Raises:
            RateLimited: it goes too fast.
        """
        self._rate.spend(caller.agent_id if caller.box_id is None else caller.box_id)

    async def admit_operator(self, headers: RawHeaders) -> None:
        """Let the operator pass.

        Raises:
            BadToken: the token is nobody's.
            OperatorOnly: it is a box's or a person's.
            RecordDown: PostgreSQL is away, and it is not the operator's.
        """
        await self._admit_only(headers, self._admin_token_file, OperatorOnly)

    async def admit_nerve(self, headers: RawHeaders) -> None:
        """Let a nerve pass that stands apart.

        Raises:
            BadToken: the token is nobody's.
            NerveOnly: it is a box's or a person's.
            RecordDown: PostgreSQL is away, and it is not the nerve's.
        """
        await self._admit_only(headers, self._nerve_token_file, NerveOnly)

    async def _admit_only(
        self, headers: RawHeaders, file: Path | None, refusal: type[OperatorOnly | NerveOnly]
    ) -> None:
        given = [_bearer(value) for name, value in headers if name == b"authorization"]
        if len(given) != 1 or given[0] is None:
            raise BadToken
        digest = hash_of(given[0])
        expected = _hash_in(file)
        if expected is not None and hmac.compare_digest(digest, expected):
            return
        if await self._identity.holder(digest) is None:
            raise BadToken
        raise refusal()


def _hash_in(file: Path | None) -> bytes | None:
    """The hash of the token in a file, read anew each time: it may be changed while the record runs."""
    if file is None:
        return None
    try:
        token = read_secret(file)
    except (OSError, UnicodeDecodeError):
        return None
    return hash_of(token.encode()) if token else None


def _bearer(value: bytes) -> bytes | None:
    scheme, _, token = value.strip().partition(b" ")
    token = token.strip()
    return token if scheme.lower() == b"bearer" and token else None


def _caller(request: Request) -> Caller:
    caller: Caller = request.scope["caller"]
    return caller


def _record(request: Request) -> Record:
    record: Record = request.app.state.record
    return record


CallerDep = Annotated[Caller, Depends(_caller)]
"""Who calls; `routes/front.py` has found out."""

RecordDep = Annotated[Record, Depends(_record)]
