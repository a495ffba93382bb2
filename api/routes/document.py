"""What every call has in common, written into the OpenAPI document once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from api.problems import MEDIA_TYPE

REFERENCE = "#/components/schemas/{name}"

_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What to do next."},
        "code": {"type": "string", "description": "Stable."},
    },
}
_ERRORS = {
    "description": "A problem",
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
_TOKEN = {
    "type": "http",
    "scheme": "bearer",
    "description": "A box's or person's token; the operator's under /v1/admin, the nerve's own under "
    "/v1/nerve/admissions.",
}
_AGENT = {
    "name": "X-Tyode-Agent",
    "in": "header",
    "required": False,
    "schema": {"type": "string"},
    "description": "The session's handle. Without it, the bare box calls.",
}


def references(document: dict[str, Any], types: Iterable[Any]) -> list[dict[str, Any]]:
    """Keep the schemas of msgspec types in the document; a reference for each of them."""
    schemas, components = msgspec.json.schema_components(types, ref_template=REFERENCE)
    document.setdefault("components", {}).setdefault("schemas", {}).update(components)
    return list(schemas)


def describe_answers(document: dict[str, Any], answers: dict[str, Any]) -> None:
    """Say what GET on each path answers: those calls whose bytes msgspec writes past FastAPI."""
    for path, schema in zip(answers, references(document, answers.values()), strict=True):
        answer = document["paths"][path]["get"]["responses"]["200"]
        answer["content"] = {"application/json": {"schema": schema}}


def complete(document: dict[str, Any]) -> dict[str, Any]:
    """Add the token, the session's header and the one shape of errors to every call of the document."""
    components = document.setdefault("components", {})
    components.setdefault("securitySchemes", {})["token"] = _TOKEN
    components.setdefault("schemas", {})["Problem"] = _PROBLEM
    for unused in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(unused, None)
    for path, calls in document["paths"].items():
        for call in calls.values():
            _complete_call(path, call)
    return document


def _complete_call(path: str, call: dict[str, Any]) -> None:
    call["responses"].pop("422", None)
    if not path.startswith("/v1/"):
        return
    call["responses"] |= {"4XX": _ERRORS, "5XX": _ERRORS}
    if path == "/v1/redeem":
        call["security"] = []
        return
    call["security"] = [{"token": []}]
    if not path.startswith(("/v1/admin/", "/v1/nerve/admissions")):
        call.setdefault("parameters", []).append(_AGENT)
