"""Generated over every parameter of every GET: whatever stands in it, the record does not fail."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from typing import Any

from tests.http.running import Running
from tests.http.test_rooms import said

NUMBERS = ["-1", "nan", "1e300", "9" * 18, "9" * 19, "9" * 20, "9" * 5000, "٣"]
MOMENTS = ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"]
TEXTS = ["\0", "é" * 500, "gQA", "3wABAA"]
NASTY = [*NUMBERS, *MOMENTS, *TEXTS]
SEALED = [base64.urlsafe_b64encode(each.encode()).decode() for each in NUMBERS]
FILLED = {"room": "api", "thread_id": "t1"}


async def test_no_parameter_makes_a_call_fail(record: Running) -> None:
    session = await record.session(await record.box("work3"))
    await session.post("/v1/rooms", {"name": "api"})
    FILLED["message_id"] = str(await said(session, "api", "a needle", thread_id="t1"))
    document = (await record.stranger.get("/openapi.json")).body

    async def status(path: str, query: dict[str, str]) -> int:
        party = record.operator if path.startswith("/v1/admin/") else session
        return (await party.call("GET", path, query=query)).status

    calls = list(_calls(document))
    statuses = await asyncio.gather(*(status(path, query) for path, query in calls))
    assert [call for call, each in zip(calls, statuses, strict=True) if each >= 500] == []
    assert len(calls) > 20 * len(NASTY)


def _calls(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    """Each parameter in turn with each value; the others as they must be."""
    for path, calls in document["paths"].items():
        parameters = calls.get("get", {}).get("parameters", ())
        needed = {each["name"]: "x" for each in parameters if each["in"] == "query" and each["required"]}
        for parameter in parameters:
            if parameter["in"] != "query":
                continue
            sealed = SEALED if parameter["name"] == "cursor" else []
            for value in [*NASTY, *sealed]:
                yield path.format(**FILLED), {**needed, parameter["name"]: value}
