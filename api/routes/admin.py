"""The operator's acts: realms, boxes, people and their tokens."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from api.auth import RecordDep
from api.models import Act, DeadLetter, Named, NewToken, Realm
from api.routes.paging import HIGHEST, Cursor, Limit, opened_number
from api.routes.wire import Body
from api.services import auditing, realms, tokens
from api.services.cursors import next_cursor
from api.services.realms import FIRST

router = APIRouter(prefix="/v1/admin", tags=["operator"])

RealmQuery = Annotated[str, Query(description="The realm.")]
AnyRealm = Annotated[str | None, Query(description="Only this realm's.", max_length=64)]
NamePath = Annotated[str, Path(max_length=200)]


LetterId = Annotated[int, Path(ge=1, le=HIGHEST)]
KeepDays = Field(default=None, ge=1, le=36_500)


class RealmIn(Body):
    """A realm; with `ttl_seconds`, it and all in it is swept after that time, with `keep_days`, messages.

    With `anonymous_listeners` anybody may hear on the nerve what other programs produce in it, but no nudges.
    """

    name: str
    ttl_seconds: int | None = Field(default=None, ge=1, le=10 * 366 * 24 * 3600)
    keep_days: int | None = KeepDays
    anonymous_listeners: bool = False


class RealmSettings(Body):
    """What may change of a realm; what is left out is as the service's settings say."""

    keep_days: int | None = KeepDays


class Listeners(Body):
    """Whether anybody may hear on the nerve what other programs produce in the realm."""

    anonymous: bool


class HolderIn(Body):
    """A box or a person."""

    name: str
    realm: str | None = None


class RealmOut(BaseModel):
    """A realm."""

    name: str
    realm: str
    created_at: dt.datetime
    expires_at: dt.datetime | None
    keep_days: int | None
    anonymous_listeners: bool


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


class Audit(BaseModel):
    """A page of the audit log."""

    acts: Sequence[Act]
    next_cursor: str | None


class DeadLetters(BaseModel):
    """A page of dead letters."""

    dead_letters: Sequence[DeadLetter]
    next_cursor: str | None


@router.post("/realms", status_code=201)
async def add_realm(record: RecordDep, new: RealmIn) -> RealmOut:
    """Add a realm."""
    return _realm(
        await realms.add_realm(
            record.db,
            name=new.name,
            ttl_seconds=new.ttl_seconds,
            keep_days=new.keep_days,
            anonymous_listeners=new.anonymous_listeners,
        )
    )


@router.put("/realms/{name}")
async def change_realm(record: RecordDep, name: NamePath, wanted: RealmSettings) -> RealmOut:
    """Change for how many days a realm's messages are kept."""
    return _realm(await realms.keep(record.db, name, days=wanted.keep_days))


@router.put("/realms/{name}/listeners")
async def let_in(record: RecordDep, name: NamePath, wanted: Listeners) -> RealmOut:
    """Say whether a realm lets anonymous listeners onto the nerve; those that are there leave at once."""
    return _realm(await realms.let_in(record.db, record.identity, name, anonymous=wanted.anonymous))


@router.get("/realms")
async def list_realms(
    record: RecordDep,
    limit: Limit,
    cursor: Cursor = "",
) -> Realms:
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
    record: RecordDep,
    limit: Limit,
    realm: RealmQuery = FIRST,
    cursor: Cursor = "",
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
    record: RecordDep,
    limit: Limit,
    realm: RealmQuery = FIRST,
    cursor: Cursor = "",
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
async def revoke_token(
    record: RecordDep, token_id: Annotated[str, Path(max_length=200)], realm: AnyRealm = None
) -> None:
    """Revoke a token; calls and links that came with it end at once."""
    await tokens.revoke(record.db, record.identity, token_id, realm)


@router.get("/dead-letters")
async def list_dead_letters(
    record: RecordDep, realm: RealmQuery = FIRST, cursor: Cursor = "", limit: Limit = 100
) -> DeadLetters:
    """List messages of other programs on the nerve that no consumer acknowledged, newest first."""
    before = opened_number(cursor)
    rows = await record.queues.dead_letters(realm=realm, before=before, limit=limit)
    return DeadLetters(dead_letters=rows, next_cursor=next_cursor(rows, limit, lambda row: str(row.id)))


@router.post("/dead-letters/{letter_id}/revive", status_code=204)
async def revive_dead_letter(record: RecordDep, letter_id: LetterId, realm: RealmQuery = FIRST) -> None:
    """Put a dead letter back into its queue, as if it had never been sent."""
    await record.queues.revive(realm=realm, id=letter_id)


@router.delete("/dead-letters/{letter_id}", status_code=204)
async def discard_dead_letter(record: RecordDep, letter_id: LetterId, realm: RealmQuery = FIRST) -> None:
    """Delete a dead letter."""
    await record.queues.discard(realm=realm, id=letter_id)


@router.get("/audit")
async def audit_log(
    record: RecordDep,
    limit: Limit,
    realm: AnyRealm = None,
    cursor: Cursor = "",
) -> Audit:
    """What was done by the operator, and with the operator's invites, newest first."""
    rows = await auditing.acts(record.db, realm=realm, before=opened_number(cursor), limit=limit)
    return Audit(acts=rows, next_cursor=next_cursor(rows, limit, lambda act: str(act.audit_id)))


def _realm(realm: Realm) -> RealmOut:
    return RealmOut(
        name=realm.name,
        realm=realm.name,
        created_at=realm.created_at,
        expires_at=realm.expires_at,
        keep_days=realm.keep_days,
        anonymous_listeners=realm.anonymous_listeners,
    )


async def _add(record: RecordDep, new: HolderIn, kind: Literal["box", "person"]) -> HolderOut:
    realm = new.realm or FIRST
    made = await realms.add_holder(record.db, realm=realm, name=new.name, kind=kind)
    return HolderOut(name=new.name, realm=realm, token=made.token, token_id=made.token_id)
