"""Rooms over REST: start, list, join, leave, who, history."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict

from api.auth import CallerDep, RecordDep
from api.routes.paging import Cursor, Limit, MessageCursor, Page
from api.services.cursors import next_cursor
from api.services.rooms import DEFAULT_BACKFILL, Backfill, Listed, Member, Standing

router = APIRouter(tags=["rooms"])

ANSWERS = {"/v1/rooms/{room}/messages": Page}
"""What the GETs of this module answer, for the OpenAPI document, where FastAPI is not told."""

Room = Annotated[str, Path(description="The room's name.")]
MessageId = Annotated[int | None, Query(ge=0, lt=2**63)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class JoinIn(_Body):
    """How many earlier messages are still unread after joining."""

    backfill: Backfill = DEFAULT_BACKFILL


class StartIn(JoinIn):
    """A room to create, or to join when it exists."""

    name: str
    title: str | None = None


class RoomsOut(BaseModel):
    """Rooms, a page."""

    rooms: list[Listed]
    next_cursor: str | None


class MembersOut(BaseModel):
    """Members, a page."""

    members: list[Member]
    next_cursor: str | None


@router.post("/v1/rooms", status_code=201, responses={200: {"description": "Joined", "model": Standing}})
async def start(new: StartIn, caller: CallerDep, record: RecordDep, response: Response) -> Standing:
    """Start a room, or join it when it exists."""
    standing, is_new = await record.rooms.start(caller, new.name, title=new.title, backfill=new.backfill)
    response.status_code = 201 if is_new else 200
    return standing


@router.get("/v1/rooms")
async def listed(
    caller: CallerDep,
    record: RecordDep,
    limit: Limit,
    cursor: Cursor = "",
    scope: Literal["mine", "all"] = "mine",
) -> RoomsOut:
    """My rooms with unread counts; with `scope=all`, every room of the realm."""
    rooms = await record.rooms.listed(caller, mine=scope == "mine", after=cursor, limit=limit)
    return RoomsOut(rooms=rooms, next_cursor=next_cursor(rooms, limit, lambda room: room.room))


@router.post("/v1/rooms/{room}/join")
async def join(room: Room, caller: CallerDep, record: RecordDep, how: JoinIn | None = None) -> Standing:
    """Join a room that exists; for a member nothing changes."""
    return await record.rooms.join(caller, room, backfill=(how or JoinIn()).backfill)


@router.post("/v1/rooms/{room}/leave")
async def leave(room: Room, caller: CallerDep, record: RecordDep) -> dict[str, str]:
    """Leave a room; its messages are no longer mine to read."""
    await record.rooms.leave(caller, room)
    return {}


@router.get("/v1/rooms/{room}/members")
async def members(
    room: Room,
    caller: CallerDep,
    record: RecordDep,
    limit: Limit,
    cursor: Cursor = "",
) -> MembersOut:
    """Who is in the room, and how far each has read."""
    found = await record.rooms.members(caller, room, after=cursor, limit=limit)
    return MembersOut(members=found, next_cursor=next_cursor(found, limit, lambda member: member.agent))


@router.get("/v1/rooms/{room}/messages", response_class=Response)
async def history(
    room: Room,
    caller: CallerDep,
    record: RecordDep,
    limit: Limit,
    before: MessageId = None,
    after: MessageId = None,
    thread_id: str | None = None,
    cursor: MessageCursor | None = None,
) -> Response:
    """The newest messages, oldest first; moves no cursor. `next_cursor` leads to the older ones."""
    if cursor is not None:
        before = int(cursor)
    messages, more = await record.messages.history(
        caller, room, before=before, after=after, thread_id=thread_id, limit=limit
    )
    forwards = after is not None and before is None
    older = str(messages[0].id) if more and not forwards else None
    content = msgspec.json.encode(Page(messages, older))
    return Response(content, media_type="application/json")
