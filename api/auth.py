"""From a request's headers to who is calling."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Request
from starlette.types import Scope

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

    async def authenticate(self, scope: Scope) -> Caller:
        """The caller, whose request is counted: a box's with all its sessions, or a person's.

        Whatever its handle is, `scope["caller"]` is who is known to call as soon as the token is.

        Raises:
            BadToken: there is not one token, or it is no valid one of a box or person.
            RateLimited: the box or person goes too fast.
            BadHandle: X-Tyode-Agent holds no handle, or comes twice.
            NameTaken: the handle's role is somebody else's name.
            RecordDown: PostgreSQL is away.
        """
        tokens: list[bytes | None] = []
        handles: list[bytes] = []
        for name, value in scope["headers"]:
            if name == b"authorization":
                tokens.append(_bearer(value))
            elif name == AGENT_HEADER:
                handles.append(value)
        if len(tokens) != 1 or tokens[0] is None:
            raise BadToken

        def count(known: Caller) -> None:
            scope["caller"] = known
            self._rate.spend(known.agent_id if known.box_id is None else known.box_id)

        wanted = handles[0].decode("latin-1").strip() if len(handles) == 1 else None
        caller = await self._identity.caller(hash_of(tokens[0]), wanted, count)
        if len(handles) > 1 and caller.kind != "person":
            raise BadHandle
        scope["caller"] = caller
        return caller

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
