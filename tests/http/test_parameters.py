"""Over every parameter of every GET: whatever stands in it, the record does not fail, and names it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from typing import Any

from tests.http.running import Reply, Running
from tests.http.test_rooms import said

NUMBERS = ["-1", "nan", "1e300", "9" * 18, "9" * 19, "9" * 20, "9" * 5000, "٣"]
MOMENTS = ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"]
TEXTS = ["\0", "é" * 500, "gQA", "3wABAA"]
NASTY = [*NUMBERS, *MOMENTS, *TEXTS]
SEALED = [base64.urlsafe_b64encode(each.encode()).decode() for each in NUMBERS]
FILLED = {"room": "api", "thread_id": "t1"}


async def test_no_parameter_makes_a_call_fail_and_what_is_refused_is_named(record: Running) -> None:
    session = await record.session(await record.box("work3"))
    await session.post("/v1/rooms", {"name": "api"})
    FILLED["message_id"] = str(await said(session, "api", "a needle", thread_id="t1"))
    document = (await record.stranger.get("/openapi.json")).body

    async def reply(path: str, query: dict[str, str]) -> Reply:
        party = record.operator if path.startswith("/v1/admin/") else session
        return await party.call("GET", path, query=query)

    calls = list(_calls(document))
    replies = await asyncio.gather(*(reply(path, query) for _, path, query in calls))
    told = list(zip(calls, replies, strict=True))
    assert [call for call, each in told if each.status >= 500] == []
    assert [call for call, each in told if each.status == 422 and each.body["field"] != call[0]] == []
    assert [call for call, each in told if each.status == 422 and "pattern" in each.body["detail"]] == []
    nul = [(call, each) for call, each in told if "%00" in call[1] or "\0" in call[2].values()]
    assert [call for call, each in nul if each.status != 422] == []
    assert len(nul) > 20
    assert len(calls) > 20 * len(NASTY)


def _calls(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Each parameter in turn with each value, and what it belongs to; the others as they must be."""
    for path, calls in document["paths"].items():
        parameters = calls.get("get", {}).get("parameters", ())
        needed = {each["name"]: "x" for each in parameters if each["in"] == "query" and each["required"]}
        for parameter in parameters:
            name = parameter["name"]
            if parameter["in"] == "path":
                yield name, path.format(**{**FILLED, name: "%00"}), needed
            if parameter["in"] == "query":
                for value in [*NASTY, *(SEALED if name == "cursor" else [])]:
                    yield name, path.format(**FILLED), {**needed, name: value}
