"""What each error costs in HTTP, and the one envelope for all of them: RFC 9457 problem+json."""

from __future__ import annotations

import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from api import errors
from api.errors import BadField, BadRequest, ServiceError
from api.services.inert import inert

log = structlog.get_logger()

Headers = list[tuple[bytes, bytes]]
Answer = tuple[int, Headers, bytes]

STATUS: dict[type[ServiceError], int] = {
    errors.Malformed: 400,
    errors.Oversized: 413,
    errors.Unauthenticated: 401,
    errors.Forbidden: 403,
    errors.Misdirected: 421,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.Invalid: 422,
    errors.TooMany: 429,
    errors.Unavailable: 503,
}
MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 2
DETAIL_CHARACTERS = 1000
INTERNAL = "Something is broken in the record, and it has been logged. If it stays so, tell the operator."


def answer_problem(error: Exception) -> Answer:
    """An error as an answer: (status, headers, body). A fault of ours is logged here, and told nobody."""
    if not isinstance(error, ServiceError):
        log.error("request_failed", exc_info=error)
        return envelope(500, code="internal", title="A fault of the record", detail=INTERNAL)
    status = next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)
    return envelope(
        status,
        code=error.code,
        title=error.title,
        detail=error.detail,
        facts=error.facts,
        headers=_headers(error),
    )


def words(error: Exception) -> tuple[str, str]:
    """An error without HTTP: (code, detail), which steers nobody. A fault of ours is logged here."""
    if not isinstance(error, ServiceError):
        log.error("request_failed", exc_info=error)
        return "internal", INTERNAL
    return error.code, str(_clean(error.detail))


def envelope(
    status: int,
    *,
    code: str,
    title: str | None = None,
    detail: str,
    facts: Mapping[str, Any] | None = None,
    headers: Headers | None = None,
) -> Answer:
    """A problem from its parts. What a caller wrote and it repeats steers nobody's terminal."""
    body = msgspec.json.encode(
        {
            "type": f"urn:readyroom:problem:{code}",
            "title": title or HTTPStatus(status).phrase,
            "status": status,
            "detail": _clean(detail),
            "code": code,
            **{name: _clean(value) for name, value in (facts or {}).items()},
        }
    )
    return status, [(b"content-type", MEDIA_TYPE.encode()), *(headers or [])], body


def _headers(error: ServiceError) -> Headers:
    if isinstance(error, errors.Unauthenticated):
        return [(b"www-authenticate", b"Bearer")]
    if isinstance(error, errors.TooMany | errors.Unavailable):
        seconds = math.ceil(error.facts.get("retry_after", RETRY_SECONDS))
        return [(b"retry-after", str(max(1, seconds)).encode()), *_rate_limit(error.facts, seconds)]
    return []


def _rate_limit(facts: Mapping[str, Any], seconds: int) -> Headers:
    """What a limit says of itself, as the draft on RateLimit headers writes it."""
    if "quota" not in facts:
        return []
    policy = f'"{facts["limit"]}";q={facts["quota"]};w={facts["window_seconds"]}'
    return [
        (b"ratelimit", f'"{facts["limit"]}";r=0;t={seconds}'.encode()),
        (b"ratelimit-policy", policy.encode()),
    ]


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return inert(value)[:DETAIL_CHARACTERS]
    if isinstance(value, list | tuple):
        return [_clean(each) for each in value]
    return value


def install(app: FastAPI) -> None:
    """Give every error of the app, FastAPI's own too, the one envelope."""

    async def service_error(_: Request, error: Exception) -> Response:
        return _response(answer_problem(error))

    async def validation_error(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return _response(answer_problem(_first(error)))

    async def http_error(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return _response(_of_starlette(error))

    app.add_exception_handler(ServiceError, service_error)
    app.add_exception_handler(RequestValidationError, validation_error)
    app.add_exception_handler(HTTPException, http_error)
    app.add_exception_handler(Exception, service_error)


def _first(error: RequestValidationError) -> ServiceError:
    """What is wrong with the first field; of a union, with each kind of value that it may have."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return BadRequest(f"The body must be one JSON object: {first['ctx']['error']}.")
    field = _field(first, error.body)
    if not field and first["loc"] == ("body",):
        return BadRequest("The body must be one JSON object, sent with Content-Type: application/json.")
    if first["type"] == "extra_forbidden":
        return BadField(field, "there is no such field; leave it out")
    whys = [each["msg"] for each in error.errors() if _field(each, error.body) == field]
    return BadField(field, " or ".join(f"{why[:1].lower()}{why[1:]}" for why in dict.fromkeys(whys)))


def _field(error: Mapping[str, Any], body: Any) -> str:
    """The field as its sender wrote it: Pydantic puts a union's kinds into the path."""
    place, *path = error["loc"]
    if place != "body":
        return str(path[0])
    field, value = "", body
    for part in path:
        if isinstance(value, list) and isinstance(part, int):
            field, value = f"{field}[{part}]", value[part]
        elif isinstance(value, dict) and (part in value or (error["type"] == "missing" and part == path[-1])):
            field, value = f"{field}.{part}", value.get(part)
    return field.removeprefix(".")


def _of_starlette(error: HTTPException) -> Answer:
    code, detail = _STARLETTE.get(error.status_code, ("error", str(error.detail)))
    headers = [(name.lower().encode(), value.encode()) for name, value in (error.headers or {}).items()]
    return envelope(error.status_code, code=code, detail=detail, headers=headers)


_STARLETTE = {
    400: ("bad_request", "The body must be one JSON object in UTF-8."),
    404: ("not_found", "There is no such call. /docs lists all of them."),
    405: ("method_not_allowed", "This address has other methods; the Allow header and /docs list them."),
    413: ("too_large", "The request is larger than any call may be. Split it."),
}


def _response(answer: Answer) -> Response:
    status, headers, body = answer
    return Response(body, status, {name.decode(): value.decode() for name, value in headers})
