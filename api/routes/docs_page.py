"""The page at /docs: every call and every shape of the OpenAPI document, on one page of its own.

It asks nothing of anybody: no scripts, no fonts, nothing from elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

STYLE = """
    body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
    table { border-collapse: collapse; margin: .5rem 0 } td, th { text-align: left; vertical-align: top;
    border-top: 1px solid #8884; padding: .2rem 1rem .2rem 0 } h2 { margin-top: 2.5rem }
    :root { color-scheme: light dark }
"""
HEADERS = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}


def routes(document: Callable[[], dict[str, Any]]) -> APIRouter:
    """The page of what `document` gives."""
    router = APIRouter()

    @router.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(page(document()), headers=HEADERS)

    return router


def page(document: dict[str, Any]) -> str:
    """An OpenAPI document for people."""
    title = escape(f"{document['info']['title']} {document['info']['version']}")
    calls = [
        "".join(_call(method.upper(), path, call))
        for path, methods in document["paths"].items()
        for method, call in methods.items()
    ]
    schemas = document.get("components", {}).get("schemas", {})
    shapes = ["".join(_shape(name, schema)) for name, schema in sorted(schemas.items())]
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style><h1>{title}</h1>'
        '<p>Every call, then every <a href="#shapes">shape</a>; the same for programs: '
        f'<a href="openapi.json">openapi.json</a>.</p>{"".join(calls)}<h1 id="shapes">Shapes</h1>'
        f"{''.join(shapes)}</html>\n"
    )


def _call(method: str, path: str, call: dict[str, Any]) -> Iterator[str]:
    yield f"<h2><code>{method} {escape(path)}</code></h2><p>{escape(call.get('summary', ''))}</p>"
    if said := call.get("description"):
        yield f"<p>{escape(said)}</p>"
    if parameters := call.get("parameters"):
        rows = [(each["name"], each["in"], each["schema"], each) for each in parameters]
        yield _table("parameter", [(name, f"{_kind(schema)}, {at}", each) for name, at, schema, each in rows])
    for what, content in (("Body", call.get("requestBody", {})), *_answers(call)):
        for media, each in content.get("content", {}).items():
            yield f"<p>{what}: {_kind(each.get('schema', {}))} <small>{escape(media)}</small></p>"


def _answers(call: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for status, answer in call["responses"].items():
        yield f"Answer {escape(status)}", answer


def _shape(name: str, schema: dict[str, Any]) -> Iterator[str]:
    yield f'<h2 id="{escape(name)}"><code>{escape(name)}</code></h2>'
    if said := schema.get("description"):
        yield f"<p>{escape(said)}</p>"
    fields = schema.get("properties", {})
    required = schema.get("required", ())
    if fields:
        rows = [(field, each | {"required": field in required}) for field, each in fields.items()]
        yield _table("field", [(field, _kind(each), each) for field, each in rows])
    else:
        yield f"<p>{_kind(schema)}</p>"


def _table(what: str, rows: list[tuple[str, str, dict[str, Any]]]) -> str:
    """Rows of (name, what it is, as HTML, and its part of the document)."""
    lines = [
        f"<tr><td><code>{escape(name)}</code>{'' if each.get('required') else ' <small>optional</small>'}"
        f"<td>{kind}<td>{escape(each.get('description', ''))}"
        for name, kind, each in rows
    ]
    return f"<table><tr><th>{what}<th><th>{''.join(lines)}</table>"


def _kind(schema: dict[str, Any]) -> str:
    """What a value may be, as HTML."""
    if reference := schema.get("$ref"):
        name = escape(reference.rsplit("/", 1)[-1])
        return f'<a href="#{name}">{name}</a>'
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return " or ".join(_kind(each) for each in schema[choice])
    if "const" in schema or "enum" in schema:
        values = schema.get("enum", [schema.get("const")])
        return " or ".join(f"<code>{escape(str(each))}</code>" for each in values)
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    of = schema.get("additionalProperties")
    if isinstance(of, dict) and of:
        return f"object of {_kind(of)}"
    bounds = [f"{word} {schema[key]}" for key, word in _BOUNDS.items() if key in schema]
    kind = schema.get("type", "anything")
    return escape(", ".join([" or ".join(kind) if isinstance(kind, list) else str(kind), *bounds]))


_BOUNDS = {
    "minimum": "at least",
    "maximum": "at most",
    "minLength": "length at least",
    "maxLength": "length at most",
}
