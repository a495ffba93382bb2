"""Webhooks over REST: add, list, rotate, remove; each caller its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from api.auth import CallerDep, RecordDep
from api.routes.paging import Cursor, Limit
from api.routes.wire import Body
from api.services.cursors import next_cursor
from api.services.webhooks import Listed, Made, Rotated

router = APIRouter(prefix="/v1/webhooks", tags=["nerve"])


class WebhookIn(Body):
    """The https address that is to be told."""

    url: str


class RotateIn(Body):
    """For how many seconds the old secret signs beside the new one; a day unless given, 0 ends it at once."""

    overlap_seconds: float = Field(default=86_400, ge=0, le=30 * 86_400)


Webhook = Annotated[str, Path(max_length=200)]


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
    caller: CallerDep,
    record: RecordDep,
    limit: Limit,
    cursor: Cursor = "",
) -> WebhooksOut:
    """My webhooks, and how each is doing."""
    rows = await record.webhooks.listed(caller, after=cursor, limit=limit)
    return WebhooksOut(webhooks=rows, next_cursor=next_cursor(rows, limit, lambda each: each.webhook))


@router.post("/{webhook}/secret")
async def rotate(
    webhook: Webhook, caller: CallerDep, record: RecordDep, how: RotateIn | None = None
) -> Rotated:
    """Give one of my webhooks another secret, shown this once; for a time both sign."""
    overlap_seconds = (how or RotateIn()).overlap_seconds
    return await record.webhooks.rotate(caller, webhook, overlap_seconds=overlap_seconds)


@router.delete("/{webhook}", status_code=204)
async def remove(webhook: Webhook, caller: CallerDep, record: RecordDep) -> None:
    """Remove one of my webhooks."""
    await record.webhooks.remove(caller, webhook)
