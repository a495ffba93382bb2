"""What requests have in common."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from fastapi import Request
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Query
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict

from api.decoding import NO_OBJECT
from api.errors import BadField, BadRequest


class Body(BaseModel):
    """A request body: unknown fields are refused, and no value is guessed from another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Nothing(BaseModel):
    """An answer that says no more than that it is done."""


async def plain(request: Request) -> None:
    """See that a call is made of what it takes: parameters that it has, once each, and no null for a body.

    FastAPI would pass over the others and the earlier ones, and take null for a body that was left out.

    Raises:
        BadField, BadRequest
    """
    route = request.scope["route"]
    if request.url.query and isinstance(route, APIRoute):
        known = {
            each.alias for each in get_flat_params(route.dependant) if isinstance(each.field_info, Query)
        }
        check_query(request.query_params.multi_items(), known)
    if request.method != "GET" and (await request.body()).strip() == b"null":
        raise BadRequest(NO_OBJECT)


def check_query(given: Iterable[tuple[str, str]], known: Collection[str]) -> None:
    """See that a query has no parameters but these, and each once.

    Raises:
        BadField: it has; this names the first.
    """
    seen: set[str] = set()
    for name, _ in given:
        if name not in known:
            raise BadField(name, "there is no such parameter; leave it out")
        if name in seen:
            raise BadField(name, "comes twice; give it once")
        seen.add(name)


def idempotency_key(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The key in a request's raw headers; None: there is none.

    Raises:
        BadField: there are two.
    """
    keys = [value.decode("latin-1").strip() for name, value in headers if name == b"idempotency-key"]
    if len(keys) > 1:
        raise BadField("Idempotency-Key", "comes twice; send it once")
    return keys[0] if keys else None
