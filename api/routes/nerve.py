"""Where to listen for nudges."""

from __future__ import annotations

from fastapi import APIRouter, Request
from pydantic import BaseModel

from api.auth import CallerDep, RecordDep

router = APIRouter(prefix="/v1", tags=["nerve"])


class Listen(BaseModel):
    """A socket.io address, and the realm whose nudges are heard there."""

    url: str
    realm: str


@router.get("/nerve")
async def nerve(request: Request, record: RecordDep, caller: CallerDep) -> Listen:
    """Say where this caller listens; the embedded nerve is where the record is."""
    settings = record.settings
    url = settings.nerve_url or settings.public_url or str(request.base_url)
    return Listen(url=url.rstrip("/"), realm=caller.realm)
