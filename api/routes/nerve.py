"""Where to listen for nudges, and who may."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import astuple
from typing import Annotated, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from api.auth import CallerDep, RecordDep
from api.errors import BadField
from api.models import Admitted, Ticket
from api.routes.wire import Body
from broker_bridge.names import Name

router = APIRouter(prefix="/v1", tags=["nerve"])

HASH_DIGITS = 64


class Listen(BaseModel):
    """A socket.io address, and the realm whose nudges are heard there."""

    url: str
    realm: str


class Login(Body):
    """What somebody logs in with: `key` is the SHA-256 of the token or ticket in hexadecimal, or a realm."""

    by: Literal["token", "ticket", "realm"]
    key: str = Field(max_length=200)


class Decision(BaseModel):
    """Whom to admit; null when nobody."""

    admission: Admitted | None


class Held(Body):
    """The ids of what others were admitted by."""

    token_ids: list[Annotated[str, Field(max_length=200)]] = Field(max_length=5000)


class Valid(BaseModel):
    """Those of the ids that are valid now."""

    token_ids: list[str]


class Wanted(Body):
    """A name, in lower case, under which a program wants to produce, and in which realm."""

    realm: str = Field(max_length=200)
    name: str = Field(max_length=1000)


class Taken(BaseModel):
    """Whether a nerve token bears the name, whose alone it is then."""

    taken: bool


class NameHeld(Body):
    """A producer's name in lower case, whose it is, and the connection over which they go by it."""

    realm: str = Field(max_length=200)
    name: str = Field(max_length=1000)
    holder: str = Field(max_length=200)
    link: str = Field(max_length=200)


class Names(Body):
    """What is wanted of producers' names: to have them, to have them for longer, or to let them go."""

    act: Literal["claim", "renew", "release"]
    names: list[NameHeld] = Field(max_length=100)


class Places(BaseModel):
    """Which of the names, counted from 0, are their holders' now."""

    places: list[int]


@router.get("/nerve")
async def nerve(request: Request, record: RecordDep, caller: CallerDep) -> Listen:
    """Say where this caller listens; the embedded nerve is where the record is."""
    settings = record.settings
    elsewhere = settings.nerve_public_url or settings.nerve_url
    url = elsewhere or settings.public_url or str(request.base_url)
    return Listen(url=url.rstrip("/"), realm=caller.realm)


@router.post("/nerve/tickets", status_code=201)
async def ticket(record: RecordDep, caller: CallerDep) -> Ticket:
    """Make a ticket by which a browser logs in to the nerve, once and soon, without the token in it."""
    return await record.admissions.ticket(caller)


@router.post("/nerve/admissions")
async def admit(record: RecordDep, login: Login) -> Decision:
    """Say whom a nerve that stands apart is to admit. A ticket is used up by it."""
    if login.by != "realm" and not _is_hash(login.key):
        raise BadField("key", f"the SHA-256 of the {login.by}, {HASH_DIGITS} hexadecimal digits")
    return Decision(admission=await record.admissions.admitted(login.by, login.key))


@router.post("/nerve/admissions/valid")
async def valid(record: RecordDep, held: Held) -> Valid:
    """Say which of those who were admitted may stay."""
    known = [token_id for token_id in held.token_ids if "\0" not in token_id]
    return Valid(token_ids=sorted(await record.admissions.valid(known)))


@router.post("/nerve/admissions/name")
async def name(record: RecordDep, wanted: Wanted) -> Taken:
    """Say whether a name belongs to a nerve token."""
    known = "\0" not in wanted.realm and "\0" not in wanted.name
    return Taken(taken=known and await record.admissions.is_taken(wanted.realm, wanted.name))


@router.post("/nerve/admissions/names")
async def names(record: RecordDep, wanted: Names) -> Places:
    """Claim producers' names for all nerves of this record, renew or release them."""
    named = [Name(each.realm, each.name, each.holder, each.link) for each in wanted.names]
    if not all(text.isprintable() for each in named for text in astuple(each)):
        raise BadField("names", "printable characters alone, in each of them")
    held: Collection[Name] = ()
    match wanted.act:
        case "claim":
            held = {each for each in named if await record.names.claim(each)}
        case "renew":
            held = set(await record.names.renew(named))
        case "release":
            await record.names.release(named)
    return Places(places=[place for place, each in enumerate(named) if each in held])


def _is_hash(key: str) -> bool:
    return len(key) == HASH_DIGITS and all(digit in "0123456789abcdef" for digit in key)
