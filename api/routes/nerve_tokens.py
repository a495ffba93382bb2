"""The operator's acts on nerve tokens, by which programs that are no agents are on the nerve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel

from api.auth import RecordDep
from api.models import NerveClient, NerveRole, NewToken
from api.routes.paging import Cursor, Limit
from api.routes.wire import Body
from api.services import nerve_clients, tokens
from api.services.cursors import next_cursor
from api.services.realms import FIRST

router = APIRouter(prefix="/v1/admin/nerve-tokens", tags=["operator"])

RealmQuery = Annotated[str, Query(description="The realm.")]
NamePath = Annotated[str, Path(max_length=200)]


class NerveTokenIn(Body):
    """A program that is no agent, and what it may do on the nerve."""

    name: str
    realm: str | None = None
    role: NerveRole = "consumer"


class NerveTokenOut(BaseModel):
    """A new nerve client, with the one sight of its token."""

    name: str
    realm: str
    role: NerveRole
    token: str
    token_id: str


class NerveTokens(BaseModel):
    """A page of nerve clients, with the ids of their valid tokens."""

    nerve_tokens: Sequence[NerveClient]
    next_cursor: str | None


@router.post("", status_code=201)
async def add_nerve_token(record: RecordDep, new: NerveTokenIn) -> NerveTokenOut:
    """Let a program onto the nerve; its token is shown this once, and is good for nothing else."""
    realm = new.realm or FIRST
    made = await nerve_clients.add(record.db, realm=realm, name=new.name, role=new.role)
    return NerveTokenOut(name=new.name, realm=realm, role=new.role, token=made.token, token_id=made.token_id)


@router.get("")
async def list_nerve_tokens(
    record: RecordDep, realm: RealmQuery = FIRST, cursor: Cursor = "", limit: Limit = 100
) -> NerveTokens:
    """List the nerve clients of a realm."""
    rows = await nerve_clients.listed(record.db, realm=realm, after=cursor, limit=limit)
    return NerveTokens(nerve_tokens=rows, next_cursor=next_cursor(rows, limit, lambda row: row.name))


@router.post("/{name}/tokens", status_code=201)
async def rotate_nerve_token(record: RecordDep, name: NamePath, realm: RealmQuery = FIRST) -> NewToken:
    """Make a second token for a nerve client, so that it can change over without a gap."""
    return await tokens.add_token(record.db, realm=realm, name=name, kind="nerve client")


@router.delete("/{name}", status_code=204)
async def remove_nerve_client(record: RecordDep, name: NamePath, realm: RealmQuery = FIRST) -> None:
    """Take a nerve client and its tokens away; its links end at once."""
    await nerve_clients.remove(record.db, record.identity, realm=realm, name=name)
