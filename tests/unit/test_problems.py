"""One envelope for every error."""

from __future__ import annotations

import json
from collections.abc import MutableMapping
from typing import Any, cast

import pytest
from fastapi import FastAPI
from starlette.types import ASGIApp
from structlog.testing import capture_logs

from api import errors, problems
from api.auth import Auth
from api.errors import ServiceError
from api.problems import STATUS, answer_problem
from api.routes.front import Front


def kinds(root: type[ServiceError] = ServiceError) -> list[type[ServiceError]]:
    return [kind for child in root.__subclasses__() for kind in (child, *kinds(child))]


def test_every_error_has_a_status_and_a_code_of_its_own() -> None:
    last = [kind for kind in kinds() if not kind.__subclasses__()]
    for kind in last:
        assert any(parent in STATUS for parent in kind.__mro__), kind
    codes = [kind.code for kind in last]
    assert len(set(codes)) == len(codes)
    assert "error" not in codes


@pytest.mark.parametrize(
    ("error", "status", "header"),
    [
        (errors.BadHandle(), 400, None),
        (errors.TooLarge(9), 413, None),
        (errors.BadToken(), 401, (b"www-authenticate", b"Bearer")),
        (errors.NotAMember("api"), 403, None),
        (errors.RoomNotFound("api"), 404, None),
        (errors.TooManyTokens("work3"), 409, None),
        (errors.BadField("role", "no"), 422, None),
        (errors.RateLimited("slow down", retry_after=2.3), 429, (b"retry-after", b"3")),
        (errors.RecordDown(), 503, (b"retry-after", b"2")),
    ],
    ids=lambda value: getattr(value, "code", ""),
)
def test_an_error_becomes_a_problem(
    error: ServiceError, status: int, header: tuple[bytes, bytes] | None
) -> None:
    got, headers, body = answer_problem(error)
    problem = json.loads(body)
    assert (got, problem["status"]) == (status, status)
    assert (problem["code"], problem["title"], problem["detail"]) == (error.code, error.title, error.detail)
    assert problem["type"] == f"urn:readyroom:problem:{error.code}"
    assert {name: problem[name] for name in error.facts} == error.facts
    assert (b"content-type", b"application/problem+json") in headers
    assert header is None or header in headers


def test_what_steers_a_reader_is_made_visible_and_what_is_long_is_cut() -> None:
    _, _, body = answer_problem(errors.BadField("\ud800", "x" * 5000))
    problem = json.loads(body)
    assert problem["field"] == "<U+D800>"
    assert json.loads(answer_problem(errors.RoomNotFound("\0\x1b[2J"))[2])["room"] == "␀␛[2J"
    assert len(problem["detail"]) == problems.DETAIL_CHARACTERS


async def test_a_fault_of_ours_is_logged_once_and_told_nobody() -> None:
    api = FastAPI()
    problems.install(api)

    @api.get("/broken")
    async def broken() -> None:
        raise ZeroDivisionError("a secret")

    async def below(scope: object, receive: object, send: object) -> None:
        raise ZeroDivisionError("a secret")

    for app in (api, below):
        with capture_logs() as lines:
            status, body = await get(app, "/broken")
        assert (status, json.loads(body)["code"]) == (500, "internal")
        assert b"secret" not in body
        assert [line["event"] for line in lines] == ["request_failed"]
        assert isinstance(lines[0]["exc_info"], ZeroDivisionError)


async def get(app: ASGIApp, path: str) -> tuple[int, bytes]:
    """One GET without a server between."""
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [],
        "root_path": "",
        "scheme": "http",
    }
    front = Front(app, auth=cast(Auth, None), guarded_metrics=False, max_bytes=9)
    await front(scope, receive, send)
    return sent[0]["status"], sent[1]["body"]
