"""Single messages over REST, with where they stand."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Path, Query, Response
from pydantic import AfterValidator, AwareDatetime

from api.auth import CallerDep, RecordDep
from api.routes.paging import FoundPage, Limit, MessageCursor, Page, SearchCursor, ShortLimit, UndeliveredPage
from api.services import fields
from api.services.envelope import Message
from api.services.messages import DEEPEST, SearchIn
from api.services.receipts import FullReceipt

router = APIRouter(tags=["messages"])


Since = Annotated[AwareDatetime, AfterValidator(lambda moment: fields.in_utc("since", moment))]


class MessageOut(msgspec.Struct):
    """A message, and where it stands."""

    message: Message
    receipt: FullReceipt


ANSWERS = {
    "/v1/messages/{message_id}": MessageOut,
    "/v1/threads/{thread_id}": Page,
    "/v1/undelivered": UndeliveredPage,
    "/v1/search": FoundPage,
}
"""What the GETs of this module answer, for the OpenAPI document."""


@router.get("/v1/messages/{message_id}", response_class=Response)
async def message(
    message_id: Annotated[int, Path(ge=1, lt=2**63)], caller: CallerDep, record: RecordDep
) -> Response:
    """One message, with its receipt as it stands now."""
    found, receipt = await record.messages.message(caller, message_id)
    content = msgspec.json.encode(MessageOut(found, receipt))
    return Response(content, media_type="application/json")


@router.get("/v1/threads/{thread_id}", response_class=Response)
async def thread(
    thread_id: str,
    caller: CallerDep,
    record: RecordDep,
    limit: Limit,
    cursor: MessageCursor = "0",
) -> Response:
    """The thread, oldest first: the audit trail, as far as the caller may read it."""
    messages, more = await record.messages.thread(caller, thread_id, after=int(cursor), limit=limit)
    behind = str(messages[-1].id) if more else None
    content = msgspec.json.encode(Page(messages, behind))
    return Response(content, media_type="application/json")


@router.get("/v1/undelivered", response_class=Response)
async def undelivered(
    caller: CallerDep,
    record: RecordDep,
    limit: Limit,
    cursor: MessageCursor = "0",
) -> Response:
    """What nobody took of what the caller, or a session of the bare box that calls, has said."""
    messages, more = await record.closing.undelivered(caller, after=int(cursor), limit=limit)
    behind = str(messages[-1].id) if more else None
    content = msgspec.json.encode(UndeliveredPage(messages, behind))
    return Response(content, media_type="application/json")


@router.get("/v1/search", response_class=Response)
async def search(
    caller: CallerDep,
    record: RecordDep,
    limit: ShortLimit,
    q: Annotated[str, Query(min_length=1, max_length=1000, description="Words; all of them must be there.")],
    room: str | None = None,
    sender: str | None = None,
    type: str | None = None,
    since: Since | None = None,
    cursor: SearchCursor = "0",
) -> Response:
    """Full text over what the caller may read, best first, with the words that were sought highlighted."""
    offset = int(cursor)
    what = SearchIn(q=q, room=room, sender=sender, type=type, since=since, offset=offset, limit=limit)
    messages, more = await record.messages.search(caller, what)
    behind = offset + len(messages)
    next_cursor = str(behind) if more and behind < DEEPEST else None
    content = msgspec.json.encode(FoundPage(messages, next_cursor))
    return Response(content, media_type="application/json")
