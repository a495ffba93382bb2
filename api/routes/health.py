"""Alive, ready, and how it is going."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel

from api.auth import RecordDep
from api.errors import RecordDown, SchemaBehind

router = APIRouter(tags=["health"])


class Alive(BaseModel):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Parts(BaseModel):
    """The state of each part."""

    record: Literal["ok", "down", "schema_behind"]
    nerve: Literal["ok", "degraded"]


class Ready(BaseModel):
    """Whether it is worth calling: `degraded` works, only not at once. `schema_behind` wants a migration."""

    status: Literal["ok", "degraded", "down"]
    parts: Parts


@router.get("/healthz")
async def healthz() -> Alive:
    """Say that the process lives."""
    return Alive()


@router.get("/readyz", responses={503: {"model": Ready}})
async def readyz(record: RecordDep, response: Response) -> Ready:
    """Say whether the record can be used, with each part's state."""
    parts = Parts(record=await _record(record), nerve=record.nerve.state)
    if parts.record != "ok":
        response.status_code = 503
        return Ready(status="down", parts=parts)
    return Ready(status=parts.nerve, parts=parts)


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(record: RecordDep) -> Response:
    """Everything that the record counts, for Prometheus."""
    return Response(record.metrics.text(), media_type=CONTENT_TYPE_LATEST)


async def _record(record: RecordDep) -> Literal["ok", "down", "schema_behind"]:
    try:
        await record.db.check()
    except SchemaBehind:
        return "schema_behind"
    except RecordDown:
        return "down"
    return "ok"
