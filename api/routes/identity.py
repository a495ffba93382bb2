"""Check-in, check-out, and who am I."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Request, Response
from pydantic import BaseModel

from api.auth import CallerDep, RecordDep
from api.errors import BadField
from api.models import Details, Key, Kind
from api.routes.wire import Body, Nothing, idempotency_key
from api.services import fields, sessions

router = APIRouter(prefix="/v1", tags=["identity"])

_KEY = re.compile(r"[\x21-\x7e]{1,128}")


class CheckIn(Body):
    """A new session, or with `resume` an earlier one; what is left out of an earlier one stays as it was."""

    role: str | None = None
    harness: str | None = None
    cwd: str | None = None
    title: str | None = None
    resume: str | None = None


class CheckedIn(BaseModel):
    """The session's handle; send it as X-Tyode-Agent from now on."""

    agent: str
    box: str
    role: str | None
    realm: str


class WhoAmI(BaseModel):
    """The effective identity; `hint` says why it is the bare box, or shared by two, and the cure."""

    agent: str
    kind: Kind
    box: str | None
    realm: str
    hint: str | None = None


def _sent_key(
    request: Request,
    _: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            description="The same key again gives the same session: 200; with another body: 409.",
        ),
    ] = None,
) -> str | None:
    """The Idempotency-Key; FastAPI, which describes it, would take the last of two."""
    return idempotency_key(request.headers.raw)


@router.post("/checkin", status_code=201, responses={200: {"model": CheckedIn}})
async def check_in(
    record: RecordDep,
    caller: CallerDep,
    response: Response,
    sent_key: Annotated[str | None, Depends(_sent_key)],
    wanted: CheckIn | None = None,
) -> CheckedIn:
    """Mint a handle for a new session of this box, or take an earlier one up again."""
    wanted = wanted or CheckIn()
    details = Details(
        harness=fields.line("harness", wanted.harness),
        cwd=fields.line("cwd", wanted.cwd),
        title=fields.line("title", wanted.title),
    )
    key = _key(sent_key, wanted)
    if wanted.resume is not None:
        if wanted.role is not None:
            raise BadField("role", "a session that is resumed keeps its role; leave it out")
        session = await sessions.resume(
            record.db,
            caller=caller,
            handle=wanted.resume,
            details=details,
            key=key,
            stale_seconds=record.settings.presence_stale_seconds,
        )
    else:
        session = await sessions.check_in(
            record.db, caller=caller, role=wanted.role, details=details, key=key
        )
    if session.again:
        response.status_code = 200
    return CheckedIn.model_validate(session, from_attributes=True)


@router.post("/checkout")
async def check_out(record: RecordDep, caller: CallerDep, nothing: Body | None = None) -> Nothing:
    """Retire the session that calls; its handle is never given to another."""
    record.identity.forget(await sessions.check_out(record.db, caller=caller))
    return Nothing()


@router.get("/whoami", response_model_exclude_unset=True)
async def whoami(record: RecordDep, caller: CallerDep) -> WhoAmI:
    """Say who the record takes the caller for."""
    stale_seconds = record.settings.presence_stale_seconds
    hint = await sessions.hint(record.db, caller=caller, stale_seconds=stale_seconds)
    told = {} if hint is None else {"hint": hint}
    return WhoAmI(agent=caller.handle, kind=caller.kind, box=caller.box, realm=caller.realm, **told)


def _key(key: str | None, wanted: CheckIn) -> Key | None:
    if key is None:
        return None
    if not _KEY.fullmatch(key):
        raise BadField("Idempotency-Key", "1 to 128 printable ASCII characters without blanks")
    content = json.dumps(wanted.model_dump(), sort_keys=True)
    return Key(key, hashlib.sha256(content.encode()).digest())
