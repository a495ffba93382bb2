"""The operator's acts: realms, boxes, people and their tokens."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from api.auth import RecordDep
from api.models import Named, NewToken, Realm
from api.routes.paging import Cursor, Limit, next_cursor
from api.routes.wire import Body
from api.services import realms, tokens
from api.services.realms import FIRST

router = APIRouter(prefix="/v1/admin", tags=["operator"])

RealmQuery = Annotated[str, Query(description="The realm.")]
NamePath = Annotated[str, Path(max_length=200)]


class RealmIn(Body):
    """A realm; with `ttl_seconds`, it and all in it is swept after that time."""

    name: str
    ttl_seconds: int | None = Field(default=None, ge=1, le=10 * 366 * 24 * 3600)


class HolderIn(Body):
    """A box or a person."""

    name: str
    realm: str | None = None


class RealmOut(BaseModel):
    """A new realm."""

    name: str
    realm: str
    created_at: dt.datetime
    expires_at: dt.datetime | None


class HolderOut(BaseModel):
    """A new box or person, with the one sight of its token."""

    name: str
    realm: str
    token: str
    token_id: str


class Realms(BaseModel):
    """A page of realms."""

    realms: Sequence[Realm]
    next_cursor: str | None


class Boxes(BaseModel):
    """A page of boxes, with the ids of their valid tokens."""

    boxes: Sequence[Named]
    next_cursor: str | None


class People(BaseModel):
    """A page of people, with the ids of their valid tokens."""

    people: Sequence[Named]
    next_cursor: str | None


@router.post("/realms", status_code=201)
async def add_realm(record: RecordDep, new: RealmIn) -> RealmOut:
    """Add a realm."""
    made = await realms.add_realm(record.db, name=new.name, ttl_seconds=new.ttl_seconds)
    return RealmOut(name=made.name, realm=made.name, created_at=made.created_at, expires_at=made.expires_at)


@router.get("/realms")
async def list_realms(record: RecordDep, cursor: Cursor = "", limit: Limit = 100) -> Realms:
    """List realms."""
    rows = await realms.realms(record.db, after=cursor, limit=limit)
    return Realms(realms=rows, next_cursor=next_cursor(rows, limit, lambda realm: realm.name))


@router.delete("/realms/{name}", status_code=204)
async def remove_realm(record: RecordDep, name: NamePath) -> None:
    """Delete a realm with everything in it."""
    await realms.remove_realm(record.db, record.identity, name)


@router.post("/boxes", status_code=201)
async def add_box(record: RecordDep, new: HolderIn) -> HolderOut:
    """Add a box; its token is shown this once."""
    return await _add(record, new, "box")


@router.get("/boxes")
async def list_boxes(
    record: RecordDep, realm: RealmQuery = FIRST, cursor: Cursor = "", limit: Limit = 100
) -> Boxes:
    """List the boxes of a realm."""
    rows = await realms.holders(record.db, realm=realm, kind="box", after=cursor, limit=limit)
    return Boxes(boxes=rows, next_cursor=next_cursor(rows, limit, lambda box: box.name))


@router.delete("/boxes/{name}", status_code=204)
async def remove_box(record: RecordDep, name: NamePath, realm: RealmQuery = FIRST) -> None:
    """Take a box away, with its tokens and sessions; what they said stays."""
    await realms.remove_holder(record.db, record.identity, realm=realm, name=name, kind="box")


@router.post("/boxes/{name}/tokens", status_code=201)
async def add_box_token(record: RecordDep, name: NamePath, realm: RealmQuery = FIRST) -> NewToken:
    """Make a second token for a box, so that it can change over without a gap."""
    return await tokens.add_token(record.db, realm=realm, name=name, kind="box")


@router.post("/people", status_code=201)
async def add_person(record: RecordDep, new: HolderIn) -> HolderOut:
    """Add a person; the token is shown this once."""
    return await _add(record, new, "person")


@router.get("/people")
async def list_people(
    record: RecordDep, realm: RealmQuery = FIRST, cursor: Cursor = "", limit: Limit = 100
) -> People:
    """List the people of a realm."""
    rows = await realms.holders(record.db, realm=realm, kind="person", after=cursor, limit=limit)
    return People(people=rows, next_cursor=next_cursor(rows, limit, lambda person: person.name))


@router.delete("/people/{name}", status_code=204)
async def remove_person(record: RecordDep, name: NamePath, realm: RealmQuery = FIRST) -> None:
    """Take a person and their tokens away; what they said stays."""
    await realms.remove_holder(record.db, record.identity, realm=realm, name=name, kind="person")


@router.post("/people/{name}/tokens", status_code=201)
async def add_person_token(record: RecordDep, name: NamePath, realm: RealmQuery = FIRST) -> NewToken:
    """Make a second token for a person, so that they can change over without a gap."""
    return await tokens.add_token(record.db, realm=realm, name=name, kind="person")


@router.delete("/tokens/{token_id}", status_code=204)
async def revoke_token(record: RecordDep, token_id: Annotated[str, Path(max_length=200)]) -> None:
    """Revoke a token; calls and links that came with it end at once."""
    await tokens.revoke(record.db, record.identity, token_id)


async def _add(record: RecordDep, new: HolderIn, kind: Literal["box", "person"]) -> HolderOut:
    realm = new.realm or FIRST
    made = await realms.add_holder(record.db, realm=realm, name=new.name, kind=kind)
    return HolderOut(name=new.name, realm=realm, token=made.token, token_id=made.token_id)
