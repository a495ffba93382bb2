"""The OpenAPI document tells the truth: whatever is sent, the answer is one that it promises."""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.http.running import OPERATOR, Running, running, settings_for
from tests.http.test_rooms import said

NERVE = "the-nerves-own-token"
CODES = {
    (code, int(status))
    for code, status in re.findall(
        r"^\| `(\w+)` \| (\d+) \|", Path("docs/reference/errors.md").read_text(encoding="utf-8"), re.MULTILINE
    )
}
CHECKS = [
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
]
Operation = APIOperation[Any, Any, Any, Any]


@dataclass(frozen=True)
class Place:
    """A record with something in it, and the tokens of those who call it."""

    url: str
    tokens: dict[str, str | None]
    known: dict[str, Any]


@pytest.fixture
def place(database_url: str, tmp_path: Path) -> Iterator[Place]:
    """A record that answers from a thread of its own: schemathesis calls without awaiting."""
    ready: threading.Event = threading.Event()
    made: list[Place] = []
    loop = asyncio.new_event_loop()
    done = asyncio.Event()

    async def serve() -> None:
        file = tmp_path / "nerve.token"
        file.write_text(NERVE)
        settings = settings_for(database_url, tmp_path, say_burst=100_000, nerve_token_file=file)
        async with running(settings) as record:
            made.append(await furnished(record))
            ready.set()
            await done.wait()

    def run() -> None:
        with contextlib.closing(loop):
            try:
                loop.run_until_complete(serve())
            finally:
                ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert ready.wait(60)
        yield made[0]
    finally:
        with contextlib.suppress(RuntimeError):  # the loop has ended by itself, with its error
            loop.call_soon_threadsafe(done.set)
        thread.join()


async def furnished(record: Running) -> Place:
    box, other = await record.box("work3"), await record.box("devmac")
    eric = await record.person("eric")
    session = await record.session(other, "reach")
    for party in (box, eric, session):
        await party.post("/v1/rooms", {"name": "api"})
    message_id = await said(session, "api", "a needle", type="task.request", thread_id="t1")
    tokens = {"nobody": None, "box": box.token, "person": eric.token, "operator": OPERATOR, "nerve": NERVE}
    known = {"room": "api", "message_id": message_id, "thread_id": "t1", "name": "devmac"}
    return Place(record.url, tokens, known)


def operations(url: str) -> list[Operation]:
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    found = list(schema.get_all_operations())
    assert all(isinstance(each, Ok) for each in found), "the document is no OpenAPI"
    return [each.ok() for each in found if isinstance(each, Ok)]


def held_to_its_word(place: Place, operation: Operation, *, examples: int) -> None:
    """Send what the document allows, and what it does not."""
    cases = st.one_of(
        operation.as_strategy(generation_mode=GenerationMode.POSITIVE),
        operation.as_strategy(generation_mode=GenerationMode.NEGATIVE),
    )

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases, who=st.sampled_from(sorted(place.tokens)), is_known=st.booleans())
    def send(case: Any, who: str, is_known: bool) -> None:
        if is_known and isinstance(case.path_parameters, dict):
            case.path_parameters |= {k: v for k, v in place.known.items() if k in case.path_parameters}
        for part in (case.body, case.query):
            if isinstance(part, dict) and "wait_seconds" in part:
                part["wait_seconds"] = 0
        token = place.tokens[who]
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        response = case.call(base_url=place.url, headers=headers)
        assert response.status_code < 500, (case.as_curl_command(), response.text)
        if response.status_code >= 400:
            documented(response, case)
        case.validate_response(response, checks=CHECKS)

    send()


def documented(response: Any, case: Any) -> None:
    """An error has the one shape, and a code that the reference lists with this status."""
    assert response.headers["content-type"] == ["application/problem+json"], case.as_curl_command()
    problem = response.json()
    assert {"type", "title", "status", "detail", "code"} <= problem.keys()
    assert problem["status"] == response.status_code
    assert (problem["code"], response.status_code) in CODES, (problem, case.as_curl_command())


@pytest.mark.long
def test_every_call_answers_as_the_document_says(place: Place) -> None:
    for operation in operations(place.url):
        held_to_its_word(place, operation, examples=6)


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_every_call_answers_as_the_document_says_at_length(place: Place) -> None:
    for operation in operations(place.url):
        held_to_its_word(place, operation, examples=300)


def test_every_answer_with_content_has_a_schema(place: Place) -> None:
    document = schemathesis.openapi.from_url(f"{place.url}/openapi.json").raw_schema
    for path, calls in document["paths"].items():
        for method, call in calls.items():
            for status, answer in call["responses"].items():
                shown = answer.get("content", {}).values()
                assert status == "204" or (shown and all(each["schema"] for each in shown)), (method, path)


def test_every_list_says_what_it_holds_and_every_reference_leads_somewhere(place: Place) -> None:
    document = schemathesis.openapi.from_url(f"{place.url}/openapi.json").raw_schema
    schemas = document["components"]["schemas"]
    vague, lost = [], []

    def look(node: Any, at: str) -> None:
        if isinstance(node, dict):
            if node.get("type") == "array" and not {"$ref", "type", "anyOf"} & node.get("items", {}).keys():
                vague.append(at)
            if node.get("type") == "array" and node.get("items") == {"type": "object"}:
                vague.append(at)
            if {} in node.get("anyOf", ()):
                vague.append(at)
            if str(node.get("$ref", "")).rpartition("/")[2] not in {"", *schemas}:
                lost.append(at)
        for name, part in node.items() if isinstance(node, dict) else enumerate(node):
            if isinstance(part, dict | list):
                look(part, f"{at}/{name}")

    look(document, "")
    assert (vague, lost) == ([], [])
    shown = schemas["Receipt"]["properties"]["accepted"]["items"]
    assert set(schemas[shown["$ref"].rpartition("/")[2]]["properties"]) == {"agent", "state"}


NUL_PATHS = (
    "/v1/search?q=x&room=%00",
    "/v1/search?q=x&sender=a%00",
    "/v1/search?q=x&type=%00",
    "/v1/threads/%00",
    "/v1/rooms/api/messages?thread_id=%00",
    "/v1/rooms/%00/members",
)
NUL_BODIES = (
    ("/v1/poll", {"rooms": ["\0"]}),
    ("/v1/poll", {"seen": "\0"}),
    ("/v1/ack", {"rooms": {"\0": 1}}),
    ("/v1/ack", {"lease": "\0"}),
    ("/v1/rooms/api/messages", {"body": "x", "seen": "\0"}),
    ("/v1/messages", {"body": "x", "to": "\0"}),
)


async def test_the_character_nul_is_refused_wherever_it_stands(record: Running) -> None:
    session = await record.session(await record.box("work3"))
    await session.post("/v1/rooms", {"name": "api"})
    replies = [(path, await session.get(path)) for path in NUL_PATHS]
    replies += [(path, await session.post(path, body)) for path, body in NUL_BODIES]
    removed = await record.operator.delete("/v1/admin/boxes/%00")
    assert {(path, reply.code) for path, reply in [*replies, ("remove", removed)]} == {
        (path, "invalid") for path in (*NUL_PATHS, *(path for path, _ in NUL_BODIES), "remove")
    }
