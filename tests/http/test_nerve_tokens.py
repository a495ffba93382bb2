"""Nerve tokens, tickets and anonymous listeners as the operator and the callers see them."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import socketio

from tests.http.running import Party, Running, running, settings_for

NERVE = "/v1/admin/nerve-tokens"
ASKS = (
    "/v1/nerve/admissions",
    "/v1/nerve/admissions/valid",
    "/v1/nerve/admissions/name",
    "/v1/nerve/admissions/names",
)


async def test_a_nerve_token_is_made_listed_rotated_and_revoked(record: Running, database_url: str) -> None:
    await record.box("ci")  # names of agents are another space
    made = await record.operator.post(NERVE, {"name": "ci", "role": "both"})
    assert (made.status, set(made.body)) == (201, {"name", "realm", "role", "token", "token_id"})
    assert (await record.operator.post(NERVE, {"name": "ci"})).code == "name_taken"
    more = await asyncio.gather(*(record.operator.post(f"{NERVE}/ci/tokens") for _ in range(4)))
    assert sorted(reply.status for reply in more) == [201, 409, 409, 409]
    assert {reply.code for reply in more if reply.status == 409} == {"too_many_tokens"}
    second = next(reply.body for reply in more if reply.status == 201)
    [listed] = (await record.operator.get(NERVE)).body["nerve_tokens"]
    ids = [token["token_id"] for token in listed.pop("tokens")]
    assert ids == [made.body["token_id"], second["token_id"]]
    assert (listed["name"], listed["realm"], listed["role"]) == ("ci", "main", "both")
    for _ in range(2):
        assert (await record.operator.delete(f"/v1/admin/tokens/{ids[0]}")).status == 204
    assert (await record.operator.post(f"{NERVE}/ci/tokens")).status == 201
    assert (await record.operator.delete(f"{NERVE}/ci")).status == 204
    assert (await record.operator.get(NERVE)).body["nerve_tokens"] == []
    acts = [
        (act["act"], act["target"]) for act in (await record.operator.get("/v1/admin/audit")).body["acts"]
    ]
    assert ("nerve_client_added", f"ci both {ids[0]}") in acts
    assert ("token_added", f"nerve client ci {ids[1]}") in acts
    assert ("token_revoked", f"ci {ids[0]}") in acts
    assert acts[0] == ("nerve_client_removed", "ci")
    connection = await asyncpg.connect(database_url)
    try:
        tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        dump = [str(await connection.fetch(f"SELECT * FROM {row['tablename']}")) for row in tables]
    finally:
        await connection.close()
    assert made.body["token"] not in "".join(dump)


async def test_a_nerve_token_and_a_ticket_are_nobody_at_the_record(record: Running) -> None:
    token = (await record.operator.post(NERVE, {"name": "ci", "role": "both"})).body["token"]
    ticket = (await (await record.box("work3")).post("/v1/nerve/tickets")).body["ticket"]
    document = (await record.stranger.get("/openapi.json")).body
    calls = [
        (method, path.replace("{", "").replace("}", ""))
        for path, methods in document["paths"].items()
        for method in methods
        if path.startswith("/v1/") and path != "/v1/redeem"
    ]
    assert ("post", "/v1/poll") in calls
    for secret in (token, ticket):
        party = record.holding(secret)
        replies = [await party.call(method.upper(), path) for method, path in calls]
        assert {reply.status for reply in replies} == {401}
        assert len({str(reply.body) for reply in replies}) == 1


BAD: list[tuple[dict[str, Any], str]] = [
    ({"name": "CI"}, "invalid"),
    ({"name": "system"}, "invalid"),
    ({"name": "ci", "role": "admin"}, "invalid"),
    ({"name": "ci", "realm": "nowhere"}, "not_found"),
    ({"name": "ci", "more": 1}, "invalid"),
]


async def test_what_cannot_be_a_nerve_token(record: Running, subtests: pytest.Subtests) -> None:
    for wanted, code in BAD:
        with subtests.test(wanted=wanted):
            assert (await record.operator.post(NERVE, wanted)).code == code
    for call in (
        record.operator.post(f"{NERVE}/nobody/tokens"),
        record.operator.delete(f"{NERVE}/nobody"),
        record.operator.get(f"{NERVE}?realm=nowhere"),
    ):
        assert (await call).code == "not_found"


async def test_nerve_tokens_go_with_their_realm_and_never_cross_it(record: Running) -> None:
    await record.operator.post("/v1/admin/realms", {"name": "other"})
    for realm in ("main", "other"):
        assert (await record.operator.post(NERVE, {"name": "ci", "realm": realm})).status == 201
    assert (await record.operator.delete(f"{NERVE}/ci?realm=other")).status == 204
    assert len((await record.operator.get(NERVE)).body["nerve_tokens"]) == 1
    await record.operator.post(NERVE, {"name": "ci", "realm": "other"})
    assert (await record.operator.delete("/v1/admin/realms/other")).status == 204


async def test_what_was_kept_for_somebody_goes_with_them(
    record: Running, database_url: str, subtests: pytest.Subtests
) -> None:
    wanted = {"producer": "build", "event": "job", "consumer": "ear", "consumer_id": "ear", "durable": True}
    for kind in ("boxes", "people", "nerve-tokens"):
        for again in (False, True):
            with subtests.test(kind, again=again):
                made = await record.operator.post(f"/v1/admin/{kind}", {"name": "ci"})
                client = socketio.AsyncClient(reconnection=False, http_session=record.http)
                await client.connect(record.url, transports=["websocket"])
                await client.emit("AUTHENTICATION", {"token": made.body["token"]})
                await client.emit("CONSUMER", {"name": "ear", "id": "ear", "consumer_id": "ear"})
                assert await queues(database_url) == 0
                await client.emit("SUBSCRIBE", wanted)
                await client.call("PING", {})
                assert await queues(database_url) == 1
                await client.disconnect()
                assert (await record.operator.delete(f"/v1/admin/{kind}/ci")).status == 204
                assert await queues(database_url) == 0


async def queues(database_url: str) -> int:
    """How many queues are kept."""
    connection = await asyncpg.connect(database_url)
    try:
        count: int = await connection.fetchval("SELECT count(*) FROM nerve_queues")
        return count
    finally:
        await connection.close()


async def test_only_the_operator_says_who_may_listen(record: Running) -> None:
    box = await record.box("work3")
    assert (await box.put("/v1/admin/realms/main/listeners", {"anonymous": True})).code == "operator_only"
    assert (await box.post(NERVE, {"name": "ci"})).code == "operator_only"
    [main] = (await record.operator.get("/v1/admin/realms")).body["realms"]
    assert main["anonymous_listeners"] is False
    changed = await record.operator.put("/v1/admin/realms/main/listeners", {"anonymous": True})
    assert changed.body["anonymous_listeners"] is True
    kept = await record.operator.put("/v1/admin/realms/main", {"keep_days": 3})
    assert (kept.body["keep_days"], kept.body["anonymous_listeners"]) == (3, True)
    missing = await record.operator.put("/v1/admin/realms/nowhere/listeners", {"anonymous": True})
    assert missing.code == "not_found"
    made = await record.operator.post("/v1/admin/realms", {"name": "open", "anonymous_listeners": True})
    assert made.body["anonymous_listeners"] is True
    acts = (await record.operator.get("/v1/admin/audit?realm=main")).body["acts"]
    assert "anonymous_listeners True" in [act["target"] for act in acts]


async def test_only_a_nerve_asks_whom_to_admit(database_url: str, tmp_path: Path) -> None:
    file = tmp_path / "nerve.token"
    file.write_text("the-nerves-own\n")
    async with running(settings_for(database_url, tmp_path, nerve_token_file=file)) as record:
        box = await record.box("work3")
        nerve = record.holding("the-nerves-own")
        key = hashlib.sha256(str(box.token).encode()).hexdigest()
        for path, body in zip(
            ASKS,
            (
                {"by": "token", "key": key},
                {"token_ids": [box.token_id]},
                {"realm": "main", "name": "ci"},
                {"act": "renew", "names": []},
            ),
            strict=True,
        ):
            assert (await record.stranger.post(path, body)).status == 401
            assert (await record.operator.post(path, body)).status == 401
            assert (await box.post(path, body)).code == "nerve_only"
            assert (await nerve.post(path, body)).status == 200
        assert (await nerve.get("/v1/whoami")).status == 401
        admitted = (await nerve.post(ASKS[0], {"by": "token", "key": key})).body["admission"]
        assert admitted == {
            "realm": "main",
            "name": "work3",
            "role": "consumer",
            "token_id": box.token_id,
            "kind": "holder",
        }
        assert (await nerve.post(ASKS[0], {"by": "ticket", "key": key})).body["admission"] is None
        assert (await nerve.post(ASKS[0], {"by": "token", "key": "x" * 64})).code == "invalid"
        asked = {"token_ids": [box.token_id, "tok_nope", "a\0b", "anonymous_1"]}
        assert (await nerve.post(ASKS[1], asked)).body["token_ids"] == [box.token_id]
        assert (await record.operator.post(NERVE, {"name": "ci"})).status == 201
        wanted = [("main", "ci"), ("main", "work3"), ("other", "ci"), ("main", "c\0i"), ("main", "é" * 300)]
        for realm, name in wanted:
            answer = await nerve.post(ASKS[2], {"realm": realm, "name": name})
            assert answer.body == {"taken": (realm, name) == ("main", "ci")}
        file.write_text("another\n")
        assert (await nerve.post(ASKS[1], asked)).status == 401


async def test_a_record_without_a_nerve_token_lets_no_nerve_ask(record: Running) -> None:
    for token in ("", "x"):
        assert (await record.holding(token).post(ASKS[1], {"token_ids": []})).status == 401


async def test_a_ticket_needs_a_token_and_is_kept_as_a_hash(record: Running, database_url: str) -> None:
    eric = await record.person("eric")
    session = await record.session(await record.box("work3"))
    assert (await record.stranger.post("/v1/nerve/tickets")).status == 401
    made: list[Party] = [eric, session]
    tickets = [(await party.post("/v1/nerve/tickets")).body for party in made]
    assert len({ticket["ticket"] for ticket in tickets}) == 2
    connection = await asyncpg.connect(database_url)
    try:
        kept = await connection.fetch("SELECT hash FROM nerve_tickets")
        assert {row["hash"] for row in kept} == {
            hashlib.sha256(ticket["ticket"].encode()).digest() for ticket in tickets
        }
        await connection.execute("UPDATE nerve_tickets SET expires_at = clock_timestamp()")
        await eric.post("/v1/nerve/tickets")
        assert await connection.fetchval("SELECT count(*) FROM nerve_tickets") == 1
    finally:
        await connection.close()


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        (
            {"nerve_url": "http://127.0.0.1:9", "nerve_public_url": "https://nerve.example/"},
            "https://nerve.example",
        ),
        ({"nerve_url": "http://127.0.0.1:9"}, "http://127.0.0.1:9"),
        ({"public_url": "https://record.example"}, "https://record.example"),
        (
            {"public_url": "https://record.example", "nerve_public_url": "https://nerve.example"},
            "https://nerve.example",
        ),
    ],
)
async def test_where_a_caller_listens(
    settings: dict[str, str], url: str, database_url: str, tmp_path: Path
) -> None:
    async with running(settings_for(database_url, tmp_path, **settings)) as record:
        box = await record.box("work3")
        assert (await box.get("/v1/nerve")).body == {"url": url, "realm": "main"}
