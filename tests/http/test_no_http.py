"""What is no HTTP is refused in the shape of every other error."""

from __future__ import annotations

import asyncio
import json

from tests.http.running import DEADLINE
from tests.http.test_half_open import port

__all__ = ["port"]

HEAD = b"GET /v1/whoami HTTP/1.1\r\nHost: record\r\n"
NO_HTTP = (
    HEAD + b"X-Tyode-Agent: work3\x01\r\n\r\n",
    HEAD + b"X-Tyode-Agent: work3\x7f\r\n\r\n",
    HEAD + b"no header at all\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
)


async def test_what_is_no_http_is_refused_with_a_problem(port: int) -> None:
    for sent in NO_HTTP:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        head, _, body = (await asyncio.wait_for(reader.read(), DEADLINE)).partition(b"\r\n\r\n")
        writer.close()
        lines = head.lower().split(b"\r\n")
        assert lines[0].startswith(b"http/1.1 400 "), sent
        assert {b"content-type: application/problem+json", b"connection: close"} <= set(lines)
        assert b"content-length: %d" % len(body) in lines
        problem = json.loads(body)
        assert (problem["status"], problem["code"]) == (400, "bad_request")
