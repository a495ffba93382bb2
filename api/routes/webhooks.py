"""Webhooks over REST: add, list, remove; each caller its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel

from api.auth import CallerDep, RecordDep
from api.routes.paging import Cursor, Limit, next_cursor
from api.routes.wire import Body
from api.services.webhooks import Listed, Made

router = APIRouter(prefix="/v1/webhooks", tags=["nerve"])


class WebhookIn(Body):
    """The https address that is to be told."""

    url: str


class WebhooksOut(BaseModel):
    """Webhooks, a page."""

    webhooks: Sequence[Listed]
    next_cursor: str | None


@router.post("", status_code=201)
async def add(new: WebhookIn, caller: CallerDep, record: RecordDep) -> Made:
    """Have an https address told, without a word of what was said; the secret is shown this once."""
    return await record.webhooks.add(caller, new.url)


@router.get("")
async def listed(
    caller: CallerDep, record: RecordDep, cursor: Cursor = "", limit: Limit = 100
) -> WebhooksOut:
    """My webhooks, and how each is doing."""
    rows = await record.webhooks.listed(caller, after=cursor, limit=limit)
    return WebhooksOut(webhooks=rows, next_cursor=next_cursor(rows, limit, lambda each: each.webhook))


@router.delete("/{webhook}", status_code=204)
async def remove(webhook: Annotated[str, Path(max_length=200)], caller: CallerDep, record: RecordDep) -> None:
    """Remove one of my webhooks."""
    await record.webhooks.remove(caller, webhook)
