"""The service around the calls: document, health, metrics, the way to the nerve."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import socketio
from structlog.testing import capture_logs

from api.services.metrics import Metrics
from tests.http.running import Running, running, settings_for, until


async def test_the_document_tells_of_every_call_its_token_and_its_problems(record: Running) -> None:
    reply = await record.stranger.get("/openapi.json")
    document = reply.body
    assert document["openapi"].startswith("3.1")
    wanted = {
        *("POST /v1/checkin", "POST /v1/checkout", "GET /v1/whoami", "GET /v1/agents", "PUT /v1/presence"),
        *("POST /v1/rooms", "GET /v1/rooms", "POST /v1/rooms/{room}/messages", "POST /v1/poll"),
        *("GET /v1/nerve", "POST /v1/admin/boxes", "DELETE /v1/admin/tokens/{token_id}", "GET /readyz"),
    }
    calls = {
        f"{method.upper()} {path}": call
        for path, methods in document["paths"].items()
        for method, call in methods.items()
    }
    assert wanted <= set(calls)
    for name, call in calls.items():
        if " /v1/" in name:
            assert call["security"] == ([] if name == "POST /v1/redeem" else [{"token": []}]), name
            assert "application/problem+json" in call["responses"]["4XX"]["content"], name
    assert "ValidationError" not in document["components"]["schemas"]


async def test_the_docs_page_has_every_call_and_shape_and_asks_nobody_else(record: Running) -> None:
    document = (await record.stranger.get("/openapi.json")).body
    shown = await record.stranger.get("/docs")
    assert (shown.status, shown.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert shown.headers["content-security-policy"].startswith("default-src 'none'")
    assert re.findall(r"<script|<link|\bsrc=|url\(|@import", shown.body) == []
    targets = set(re.findall(r'href="([^"]*)"', shown.body))
    assert {target for target in targets if not target.startswith("#")} == {"openapi.json"}
    named = re.findall(r'id="([^"]*)"', shown.body)
    assert {target.removeprefix("#") for target in targets} - {"openapi.json"} <= set(named)
    assert sorted(named) == sorted([*document["components"]["schemas"], "shapes"])
    calls = {f"{method.upper()} {path}" for path, each in document["paths"].items() for method in each}
    assert set(re.findall(r"<h2><code>(\w+ /[^<]*)</code>", shown.body)) == calls
    for schema in document["components"]["schemas"].values():
        assert all(f"<code>{field}</code>" in shown.body for field in schema.get("properties", ()))
    assert (await record.stranger.get("/redoc")).status == 404


async def test_a_record_that_runs_is_ready(record: Running) -> None:
    assert (await record.stranger.get("/healthz")).body == {"status": "ok"}
    ready = await record.stranger.get("/readyz")
    assert (ready.status, ready.body) == (200, {"status": "ok", "parts": {"record": "ok", "nerve": "ok"}})


async def test_a_nerve_that_is_away_degrades_and_stops_nothing(database_url: str, tmp_path: Path) -> None:
    settings = settings_for(database_url, tmp_path, nerve_url="http://127.0.0.1:9")
    async with running(settings) as record:
        ready = await record.stranger.get("/readyz")
        assert (ready.status, ready.body["status"]) == (200, "degraded")
        session = await record.session(await record.box("work3"))
        assert (await session.get("/v1/nerve")).body == {"url": "http://127.0.0.1:9", "realm": "main"}


async def test_metrics_are_the_operators_when_others_can_reach_them(
    database_url: str, tmp_path: Path
) -> None:
    async with running(settings_for(database_url, tmp_path, host="0.0.0.0")) as record:
        box = await record.box("work3")
        assert (await record.stranger.get("/metrics")).status == 401
        assert (await box.get("/metrics")).status == 403
        reply = await record.operator.get("/metrics")
        assert reply.status == 200
        assert 'route="/v1/admin/boxes",status="201"} 1.0' in reply.body
        assert "readyroom_nudges_dropped_total 0.0" in reply.body
        assert str(box.token) not in reply.body


def test_nudges_that_were_dropped_are_counted() -> None:
    metrics = Metrics()
    metrics.watch_nerve(lambda: 7)
    assert b"readyroom_nudges_dropped_total 7.0" in metrics.text()


async def test_too_large_a_request_is_refused(record: Running) -> None:
    box = await record.box("work3")
    reply = await box.post("/v1/checkin", raw=b'{"title": "' + b"x" * (5 * 1024 * 1024) + b'"}')
    assert (reply.status, reply.code) == (413, "too_large")
    assert (await box.post("/v1/checkin", raw=endless())).code == "too_large"


async def endless() -> AsyncIterator[bytes]:
    """A body whose length is not announced."""
    for _ in range(80):
        yield b" " * 65536


async def test_a_body_that_is_not_called_json_is_refused_with_what_to_do(record: Running) -> None:
    box = await record.box("work3")
    async with record.http.post(
        f"{record.url}/v1/checkin", data=b'{"role": "x"}', headers={"Authorization": f"Bearer {box.token}"}
    ) as answer:
        problem = await answer.json(content_type=None)
    assert (answer.status, problem["code"]) == (400, "bad_request")
    assert "Content-Type: application/json" in problem["detail"]


async def test_a_link_to_the_nerve_ends_when_its_token_is_revoked(record: Running) -> None:
    box, other = await record.box("work3"), await record.box("devmac")
    links = {box: socketio.AsyncClient(reconnection=False), other: socketio.AsyncClient(reconnection=False)}
    heard: list[str] = []
    for party, link in links.items():
        where = (await party.get("/v1/nerve")).body
        assert where["realm"] == "main"
        link.on("AUTH_OK", lambda _, name=party.token_id: heard.append(str(name)))
        await link.connect(where["url"], transports=["websocket"])
        await link.emit("AUTHENTICATION", {"token": party.token})
    await until(lambda: len(heard) == 2, "both are let in")
    await record.operator.delete(f"/v1/admin/tokens/{box.token_id}")
    await until(lambda: not links[box].connected, "the revoked one is hung up on")
    assert links[other].connected
    await links[other].disconnect()


async def test_a_request_is_one_line_without_token_body_or_query(record: Running) -> None:
    session = await record.session(await record.box("work3"), "reach")
    with capture_logs() as lines:
        await session.get("/v1/agents?limit=7")
        await session.post("/v1/rooms", {"name": "a-secret-room"})
        await session.post("/v1/rooms/a-secret-room/messages", {"body": "a secret"})
        await session.get("/v1/nowhere/a-secret")
        await record.stranger.get("/readyz")
    answered = [line for line in lines if line["event"] == "request_answered"]
    assert [(line["method"], line["route"], line["status"], line["log_level"]) for line in answered] == [
        ("GET", "/v1/agents", 200, "info"),
        ("POST", "/v1/rooms", 201, "info"),
        ("POST", "/v1/rooms/{room}/messages", 201, "debug"),
        ("GET", "none", 404, "info"),
        ("GET", "/readyz", 200, "debug"),
    ]
    assert {line["agent"] for line in answered[:4]} == {"work3-agent-reach#1"}
    assert all(line["duration_ms"] > 0 for line in answered)
    assert "secret" not in str(lines)
    assert str(session.token) not in str(lines)


async def test_other_methods_of_the_quick_calls_are_refused_by_name(record: Running) -> None:
    session = await record.session(await record.box("work3"))
    for method, path, allow in (
        ("DELETE", "/v1/poll", "POST"),
        ("GET", "/v1/ack", "POST"),
        ("POST", "/v1/unread", "GET"),
        ("PUT", "/v1/messages", "GET, POST"),
        ("DELETE", "/v1/rooms/api/messages", "GET, POST"),
    ):
        reply = await session.call(method, path)
        assert (reply.status, reply.code, reply.headers.get("allow")) == (405, "method_not_allowed", allow), (
            path
        )
        assert reply.headers["x-tyode-agent"] == "work3-agent#1"
        assert (await record.stranger.call(method, path)).status == 401
