"""Invites: made by the operator, redeemed by whoever has the code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field

from api.auth import RecordDep
from api.models import Invite, NewInvite, Redeemed
from api.routes.paging import Cursor, Limit
from api.routes.wire import Body
from api.services import invites
from api.services.cursors import next_cursor
from api.services.realms import FIRST

router = APIRouter(prefix="/v1", tags=["invites"])


class InviteIn(Body):
    """The box to let in, and for how many seconds the code can be redeemed."""

    box: str
    realm: str | None = None
    ttl_seconds: int = Field(default=600, ge=1, le=7 * 24 * 3600)


class CodeIn(Body):
    """The code as it was shown; dashes, blanks and capitals do not matter."""

    code: str = Field(max_length=100)


class Invites(BaseModel):
    """A page of invites that can be redeemed."""

    invites: Sequence[Invite]
    next_cursor: str | None


@router.post("/admin/invites", status_code=201)
async def add_invite(record: RecordDep, new: InviteIn) -> NewInvite:
    """Make a one-use code for a box; it is shown this once."""
    return await invites.add(record.db, realm=new.realm or FIRST, box=new.box, ttl_seconds=new.ttl_seconds)


@router.get("/admin/invites")
async def list_invites(
    record: RecordDep,
    limit: Limit,
    realm: Annotated[str, Query(description="The realm.")] = FIRST,
    cursor: Cursor = "",
) -> Invites:
    """List the invites of a realm that can be redeemed."""
    rows = await invites.listed(record.db, realm=realm, after=cursor, limit=limit)
    return Invites(invites=rows, next_cursor=next_cursor(rows, limit, lambda row: row.invite_id))


@router.delete("/admin/invites/{invite_id}", status_code=204)
async def revoke_invite(
    record: RecordDep,
    invite_id: Annotated[str, Path(max_length=200)],
    realm: Annotated[str | None, Query(description="Only this realm's.", max_length=64)] = None,
) -> None:
    """Make an invite worthless."""
    await invites.revoke(record.db, invite_id, realm)


@router.post("/redeem", status_code=201)
async def redeem(record: RecordDep, given: CodeIn, request: Request) -> Redeemed:
    """Turn a code into a box's token, once. The one call that needs no token."""
    address = request.client.host if request.client else ""
    return await record.redeeming.redeem(given.code, address=address)
