"""A refusal says what is wrong with what was sent, in the words that it was sent in."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.services.limits import Rate
from tests.http.running import Party, Reply, Running, running, settings_for
from tests.http.test_openapi import NERVE
from tests.http.test_rooms import said

FILLED = {"room": "api", "message_id": 1, "letter_id": 1, "thread_id": "t1"}
NEEDED = {"string": "x", "integer": 1, "array": [], "object": {}, "boolean": True, "number": 1}
API, DOCS = Path("api"), Path("docs/reference")


@pytest.fixture
async def speaker(record: Running) -> Party:
    """A session alone in room `api`."""
    speaker = await record.session(await record.box("work3"))
    await speaker.post("/v1/rooms", {"name": "api"})
    return speaker


async def documented(record: Running) -> dict[str, Any]:
    document: dict[str, Any] = (await record.stranger.get("/openapi.json")).body
    return document


def calls(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Each call under /v1: its method, its path and what the document says of it."""
    for path, methods in document["paths"].items():
        for method, call in methods.items():
            if path.startswith("/v1/"):
                yield method.upper(), path, call


class Callers:
    """Who may make which call."""

    def __init__(self, record: Running, session: Party) -> None:
        self._record = record
        self._session = session

    async def call(self, method: str, path: str, body: Any = None, **how: Any) -> Reply:
        party = self._session
        if path.startswith("/v1/admin/"):
            party = self._record.operator
        elif path.startswith("/v1/nerve/admissions"):
            party = self._record.holding(NERVE)
        filled = re.sub(r"\{(\w+)\}", lambda name: str(FILLED.get(name[1], "x")), path)
        return await party.call(method, filled, body, **how)


@pytest.fixture
async def callers(database_url: str, tmp_path: Path) -> Any:
    """A record with a nerve that stands apart, and who calls it."""
    file = tmp_path / "nerve.token"
    file.write_text(NERVE)
    async with running(settings_for(database_url, tmp_path, nerve_token_file=file)) as record:
        session = await record.session(await record.box("work3"))
        await session.post("/v1/rooms", {"name": "api"})
        await said(session, "api", "first", thread_id="t1")
        yield record, Callers(record, session)


async def test_every_call_refuses_a_parameter_that_it_does_not_have(callers: Any) -> None:
    """Generated over the document: beside what it needs, and with the value left empty."""
    record, who = callers
    wrong = []
    for method, path, call in calls(await documented(record)):
        parameters = [each for each in call.get("parameters", ()) if each["in"] == "query"]
        needed = {each["name"]: "x" for each in parameters if each["required"]}
        for odd in ("befor", "room" if path != "/v1/search" else "romm"):
            for value in ("3", ""):
                reply = await who.call(method, path, query={**needed, odd: value})
                if (reply.status, reply.body["code"], reply.body["field"]) != (422, "invalid", odd):
                    wrong.append((method, path, odd, value, reply))
    assert wrong == []


async def test_every_call_takes_the_parameters_that_it_has(callers: Any) -> None:
    """Generated over the document."""
    record, who = callers
    for method, path, call in calls(await documented(record)):
        for each in call.get("parameters", ()):
            if each["in"] == "query":
                needed = {"q": "1"} if path == "/v1/search" else {}
                reply = await who.call(method, path, query={**needed, each["name"]: "1"})
                assert "no such parameter" not in str(reply.body), (method, path, each["name"])


async def test_a_parameter_comes_once(callers: Any) -> None:
    """Generated over the document."""
    record, who = callers
    wrong = []
    for method, path, call in calls(await documented(record)):
        for each in call.get("parameters", ()):
            if each["in"] == "query":
                reply = await who.call(method, f"{path}?{each['name']}=1&{each['name']}=1")
                if (reply.status, reply.body.get("field")) != (422, each["name"]):
                    wrong.append((method, path, each["name"], reply))
    assert wrong == []


async def test_a_name_that_is_not_known_is_repeated_cut_short(callers: Any) -> None:
    """Generated over the document: of a parameter, and of a field."""
    record, who = callers
    name = "n" * 3000
    wrong = []
    for method, path, call in calls(await documented(record)):
        needed = {"q": "x"} if path == "/v1/search" else {}
        replies = [await who.call(method, path, query={**needed, name: "1"})]
        if "requestBody" in call:
            replies.append(await who.call(method, path, {name: "1"}))
        for reply in replies:
            if reply.status != 422 or "n" * 121 in str(reply.body):
                wrong.append((method, path, reply))
    assert wrong == []


async def test_every_body_that_is_no_object_is_a_bad_request(callers: Any) -> None:
    """Generated over the document."""
    record, who = callers
    document = await documented(record)
    answers = {}
    for method, path, call in calls(document):
        if "requestBody" in call:
            for raw in (b"[1]", b"null", b" null\n", b'"x"', b"1"):
                reply = await who.call(method, path, raw=raw)
                answers[method, path, raw] = (reply.status, reply.code, reply.body.get("field"))
    assert {key: got for key, got in answers.items() if got != (400, "bad_request", None)} == {}
    assert len(answers) > 50


async def test_every_field_of_every_body_is_named_as_it_was_sent(callers: Any) -> None:
    """Generated over the document: no kind of a union stands in a field's name."""
    record, who = callers
    document = await documented(record)
    schemas = document["components"]["schemas"]
    wrong, seen = [], 0
    for method, path, call in calls(document):
        if "requestBody" not in call:
            continue
        schema = _body_schema(call, schemas)
        needed = {name: _needed(schema["properties"][name], schemas) for name in schema.get("required", ())}
        for name, kind in schema.get("properties", {}).items():
            bad: Any = {"odd": 1.5} if "array" in str(kind) else [[1.5]]
            reply = await who.call(method, path, {**needed, name: bad})
            seen += 1
            if (reply.status, reply.body.get("field")) != (422, name):
                wrong.append((method, path, name, reply.body))
    assert wrong == []
    assert seen > 40


def _body_schema(call: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    schema = call["requestBody"]["content"]["application/json"]["schema"]
    for one in [schema, *schema.get("anyOf", ())]:
        if "$ref" in one:
            found: dict[str, Any] = schemas[one["$ref"].rpartition("/")[2]]
            return found
    raise AssertionError(schema)


def _needed(kind: dict[str, Any], schemas: dict[str, Any]) -> Any:
    return kind["enum"][0] if "enum" in kind else NEEDED[kind.get("type", "string")]


async def test_a_field_within_fields_is_named_with_its_place(speaker: Party) -> None:
    session = {"agent": speaker.agent, "state": "idle"}
    for odd, field in (
        ({"wake": 3}, "wake"),
        ({"wake": {"rung": "pty", "outcome": "lost"}}, "wake.outcome"),
        ({"wake": {"rung": "pty"}}, "wake.outcome"),
        ({"wake": {"rung": "pty", "outcome": "sent", "odd": 1}}, "wake.odd"),
    ):
        refused = await speaker.put("/v1/presence", {"sessions": [session, {**session, **odd}]})
        assert (refused.code, refused.body["field"]) == ("invalid", f"sessions[1].{field}")


async def test_a_union_says_all_that_it_takes(speaker: Party) -> None:
    refused = await speaker.post("/v1/rooms", {"name": "web", "backfill": "some"})
    assert (refused.code, refused.body["field"]) == ("invalid", "backfill")
    assert "integer" in refused.body["detail"]
    assert "'none' or 'all'" in refused.body["detail"]


async def test_only_whom_the_caller_can_address_is_offered(record: Running) -> None:
    """Whoever is offered can be sent to, and whoever can be sent to is offered."""
    box, other = await record.box("work3"), await record.box("devmac")
    parties = {
        each.agent or name: each
        for name, each in {
            "work3": box,
            "reach": await record.session(box, "reach"),
            "sibling": await record.session(box),
            "devmac": other,
            "front": await record.session(other, "front"),
            "eric": await record.person("eric"),
        }.items()
    }
    for name, party in parties.items():
        refused = await party.post("/v1/messages", {"to": "nobody", "body": "x"})
        assert refused.code == "no_such_agent"
        reached = set()
        for each in parties:
            sent = await party.post("/v1/messages", {"to": each, "body": "x"})
            if sent.status == 201 and (not sent.body["receipt"]["accepted"] or _got(sent, each)):
                reached.add(each)
        assert set(refused.body["addressable"]) == reached, name


def _got(sent: Reply, whom: str) -> bool:
    return whom in [one["agent"] for one in sent.body["receipt"]["accepted"]]


async def test_the_address_is_named_by_the_word_that_it_was_sent_under(speaker: Party) -> None:
    for word in ("to", "recipient"):
        for address in ("nobody", "a\nb", ""):
            refused = await speaker.post("/v1/messages", {word: address, "body": "x"})
            assert (refused.status, refused.body["field"]) == (422, word), (word, address)
            assert refused.body["detail"].startswith(f"{word}: ")


async def test_a_key_is_named_by_the_word_that_it_was_sent_under(speaker: Party) -> None:
    long = "k" * 65
    for path in ("/v1/rooms/api/messages", "/v1/messages"):
        body = {"body": "x"} | ({"to": "everyone"} if path == "/v1/messages" else {})
        by_header = await speaker.post(path, body, headers={"Idempotency-Key": long})
        by_field = await speaker.post(path, {**body, "client_id": long})
        assert (by_header.status, by_header.body["field"]) == (422, "Idempotency-Key")
        assert (by_field.status, by_field.body["field"]) == (422, "client_id")
    await speaker.post(path, body, headers={"Idempotency-Key": "k1"})
    other = await speaker.post(path, {**body, "body": "y"}, headers={"Idempotency-Key": "k1"})
    assert other.code == "client_id_reused"
    assert "Idempotency-Key" in other.body["detail"]


async def test_who_leaves_a_room_that_he_is_not_in_is_not_told_to_join_it(
    record: Running, speaker: Party
) -> None:
    stranger = await record.session(speaker.speaking_as(None))
    for path, joins in (("leave", False), ("messages", True)):
        refused = await stranger.post(f"/v1/rooms/api/{path}", {"body": "x"} if joins else None)
        assert (refused.status, refused.code) == (403, "not_a_member")
        assert ("Join it first" in refused.body["detail"]) is joins


async def test_a_result_that_does_not_fit_is_refused_with_paths_alone(speaker: Party) -> None:
    schema = {"type": "object", "required": ["b"], "properties": {"a": {"items": {"type": "integer"}}}}
    asked = await speaker.post(
        "/v1/rooms/api/messages",
        {"type": "task.request", "payload": {"summary": "x", "output_schema": schema}},
    )
    payload = {"summary": "x", "content": {"a": [1, "two"]}}
    answer = {"type": "task.result", "in_reply_to": asked.body["message"]["id"], "payload": payload}
    refused = await speaker.post("/v1/rooms/api/messages", answer)
    assert (refused.status, refused.body["field"]) == (422, "payload.content")
    assert sorted(refused.body["paths"]) == ["$", "$.a[1]"]
    assert "$.a[1]: type does not hold" in refused.body["detail"]
    bad = {"summary": "x", "output_schema": {"properties": {"a": {"type": "integre"}}}}
    refused = await speaker.post("/v1/rooms/api/messages", {"payload": bad})
    assert (refused.body["field"], refused.body["paths"]) == (
        "payload.output_schema",
        ["$.properties.a.type"],
    )


async def test_a_page_has_the_same_bounds_everywhere(database_url: str, tmp_path: Path) -> None:
    """What nobody may ask for is refused; what the operator does not give comes in more pages."""
    async with running(settings_for(database_url, tmp_path, page_max=2)) as record:
        session = await record.session(await record.box("work3"))
        await session.post("/v1/rooms", {"name": "api"})
        await said(session, "api", "x", thread_id="t1")
        who, asked, answers = Callers(record, session), {}, {}
        for method, path, call in calls(await documented(record)):
            most, needed = (200, {"q": "x"}) if path == "/v1/search" else (1000, {})
            if "limit" in [each["name"] for each in call.get("parameters", ())]:
                for limit in (0, 1, most, most + 1):
                    asked[path, limit] = 200 if 1 <= limit <= most else 422
                    query = {**needed, "limit": str(limit)}
                    answers[path, limit] = await who.call(method, path, query=query)
        for limit in (0, 1, 1000, 1001):
            asked["poll", limit] = 200 if 1 <= limit <= 1000 else 422
            answers["poll", limit] = await session.post("/v1/poll", {"limit": limit})
        assert {key: reply.status for key, reply in answers.items()} == asked
        assert {reply.body["field"] for reply in answers.values() if reply.status == 422} == {"limit"}
        assert len(answers) > 40


def test_every_limit_is_documented() -> None:
    """What a 429 may name, read from the code that names it."""
    names = set()
    for file in API.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                if node.func.id == Rate.__name__:
                    names.add(ast.literal_eval(node.args[0]))
                elif node.func.id == "RateLimited":
                    names |= {
                        each.value.value
                        for each in node.keywords
                        if each.arg == "limit" and isinstance(each.value, ast.Constant)
                    }
    assert {"say", "waiting"} <= names
    (line,) = [
        line
        for line in (DOCS / "errors.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| `rate_limited`")
    ]
    assert {name for name in names if f"`{name}`" not in line} == set()
