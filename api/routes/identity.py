"""Check-in, check-out, and who am I."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Header, Response
from pydantic import BaseModel

from api.auth import CallerDep, RecordDep
from api.errors import BadField
from api.models import Details, Kind
from api.routes.wire import Body, Nothing
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
    """The effective identity; `hint` says why it is the bare box, and the cure."""

    agent: str
    kind: Kind
    box: str | None
    realm: str
    hint: str | None = None


@router.post("/checkin", status_code=201, responses={200: {"model": CheckedIn}})
async def check_in(
    record: RecordDep,
    caller: CallerDep,
    response: Response,
    wanted: CheckIn | None = None,
    idempotency_key: Annotated[
        str | None, Header(description="The same key again gives the same session: 200.")
    ] = None,
) -> CheckedIn:
    """Mint a handle for a new session of this box, or take an earlier one up again."""
    wanted = wanted or CheckIn()
    details = Details(
        harness=fields.line("harness", wanted.harness),
        cwd=fields.line("cwd", wanted.cwd),
        title=fields.line("title", wanted.title),
    )
    if wanted.resume is not None:
        if wanted.role is not None:
            raise BadField("role", "a session that is resumed keeps its role; leave it out")
        session = await sessions.resume(record.db, caller=caller, handle=wanted.resume, details=details)
    else:
        session = await sessions.check_in(
            record.db, caller=caller, role=wanted.role, details=details, key=_key(idempotency_key)
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
async def whoami(caller: CallerDep) -> WhoAmI:
    """Say who the record takes the caller for."""
    hint = {} if caller.hint is None else {"hint": caller.hint}
    return WhoAmI(agent=caller.handle, kind=caller.kind, box=caller.box, realm=caller.realm, **hint)


def _key(key: str | None) -> str | None:
    if key is not None and not _KEY.fullmatch(key):
        raise BadField("Idempotency-Key", "1 to 128 printable ASCII characters without blanks")
    return key
