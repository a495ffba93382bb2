"""Single messages over REST, with where they stand."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Path, Response

from api.auth import CallerDep, RecordDep

router = APIRouter(tags=["messages"])


@router.get("/v1/messages/{message_id}", response_class=Response)
async def message(
    message_id: Annotated[int, Path(ge=1, lt=2**63)], caller: CallerDep, record: RecordDep
) -> Response:
    """One message, with its receipt as it stands now."""
    found, receipt = await record.messages.message(caller, message_id)
    content = msgspec.json.encode({"message": found, "receipt": receipt})
    return Response(content, media_type="application/json")
