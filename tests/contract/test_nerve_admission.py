"""Who may be on the nerve, held against the nerve in the record and the one of `readyroom broker`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest
from tyo_mq_client import MessageQueue

from tests.contract.nerves import Ear, ear, free_port, until
from tests.contract.programs import broker_alone
from tests.http.running import Party, Running, running, settings_for

pytestmark = pytest.mark.long

TO_ALL = {"event": "done", "producer": "build"}
EVERY_WAY = (
    {"event": "msg", "producer": "agent-comms"},
    {"event": "msg", "producer": "TYO-MQ-ALL"},
    {"event": "#", "producer": "TYO-MQ-ALL", "mode": "topic"},
    {"event": "msg", "producer": "agent-comms", "scope": "all"},
    {"event": "msg", "producer": "agent-comms", "group": "g"},
)


@dataclass
class Nerve:
    """A record, and the address of its nerve."""

    record: Running
    url: str
    database_url: str

    async def token(self, name: str, role: str, realm: str = "main") -> dict[str, Any]:
        """A new nerve token."""
        wanted = {"name": name, "role": role, "realm": realm}
        made = await self.record.operator.post("/v1/admin/nerve-tokens", wanted)
        assert made.status == 201, made
        return dict(made.body)

    async def sql(self, statement: str) -> None:
        """Change the database behind everybody's back."""
        connection = await asyncpg.connect(self.database_url)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


@pytest.fixture(params=["in the record", "alone"])
async def nerve(request: pytest.FixtureRequest, database_url: str, tmp_path: Path) -> AsyncIterator[Nerve]:
    async with AsyncExitStack() as stack:
        if request.param == "in the record":
            record = await stack.enter_async_context(running(settings_for(database_url, tmp_path)))
            yield Nerve(record, record.url, database_url)
            return
        port, file = free_port(), tmp_path / "nerve.token"
        file.write_text("the-records-own\n")
        url = f"http://127.0.0.1:{port}"
        settings = settings_for(database_url, tmp_path, nerve_url=url, nerve_token_file=file)
        record = await stack.enter_async_context(running(settings))
        stack.enter_context(broker_alone(record.url, port, file, tmp_path / "broker.log"))
        await reached(record)
        yield Nerve(record, url, database_url)


async def reached(record: Running) -> None:
    """Wait until the record speaks to its nerve."""
    end = time.monotonic() + 60
    while (await record.stranger.get("/readyz")).body["parts"]["nerve"] != "ok":
        assert time.monotonic() < end, "the record never reached its nerve"
        await asyncio.sleep(0.02)


async def log_in(it: Ear, **credential: Any) -> dict[str, Any]:
    """Log in; the answer, whichever it is."""
    before = len(it.events("AUTH_OK", "AUTH_FAIL"))
    await it.send("AUTHENTICATION", credential)
    await until(lambda: len(it.events("AUTH_OK", "AUTH_FAIL")) > before, "an answer to the login")
    return dict(it.events("AUTH_OK", "AUTH_FAIL")[-1])


async def say(sender: Party, to: str) -> None:
    """Say something that `to` is nudged for."""
    sent = await sender.post("/v1/messages", {"to": to, "body": "hello"})
    assert sent.status == 201, sent


async def listen(it: Ear, *ways: dict[str, Any]) -> None:
    """Subscribe in each of the ways, and wait until that is done."""
    for way in ways:
        await it.subscribe("ear", **way)
    await it.barrier()


async def test_a_nerve_token_does_what_its_role_says_and_hears_no_nudge(nerve: Nerve) -> None:
    work3 = await nerve.record.box("work3")
    eric = await nerve.record.person("eric")
    twin = await nerve.token("work3", "both")  # of the box's own name
    dumb, deaf = await nerve.token("dashboard", "consumer"), await nerve.token("ci", "producer")
    async with (
        ear(nerve.url, work3.token) as box,
        ear(nerve.url, None) as both,
        ear(nerve.url, None) as consumer,
        ear(nerve.url, None) as producer,
    ):
        assert await log_in(both, token=twin["token"]) == {
            "realm": "main",
            "role": "both",
            "server": "readyroom",
        }
        assert (await log_in(consumer, token=dumb["token"]))["role"] == "consumer"
        assert (await log_in(producer, token=deaf["token"]))["role"] == "producer"
        for listener in (both, consumer):
            await listener.send("CONSUMER", {"name": "ear", "id": "ear"})
            await listen(listener, *EVERY_WAY, TO_ALL)
        await listen(box, TO_ALL)
        await producer.send("SUBSCRIBE", TO_ALL)
        await consumer.send("PRODUCE", {"event": "done", "from": "build", "message": "forged"})
        await consumer.barrier()
        await producer.send("PRODUCE", {"event": "msg", "from": "agent-comms", "message": {"conv": "x"}})
        await producer.send("PRODUCE", {"event": "done", "from": "build", "message": "green"})
        await say(eric, "work3")
        await until(lambda: box.nudges, "the box's nudge")
        heard = {"event": "done", "message": "green", "from": "build"}
        await until(lambda: all(heard in [p for _, p in it.consumed] for it in (box, both, consumer)))
        for listener in (both, consumer, producer):
            await listener.barrier()
            assert [p for _, p in listener.consumed if p != heard] == []
        assert [refusal["code"] for refusal in consumer.events("AUTH_FAIL")] == [403]
        assert [refusal["code"] for refusal in producer.events("AUTH_FAIL")] == [403, 403]
        assert box.client.connected


async def test_a_token_that_is_revoked_is_hung_up_on_at_once_and_its_sibling_is_not(nerve: Nerve) -> None:
    first = await nerve.token("ci", "both")
    second = (await nerve.record.operator.post("/v1/admin/nerve-tokens/ci/tokens")).body
    async with ear(nerve.url, first["token"]) as gone, ear(nerve.url, second["token"], "other") as stays:
        began = time.monotonic()
        revoked = await nerve.record.operator.delete(f"/v1/admin/tokens/{first['token_id']}")
        assert revoked.status == 204
        await until(lambda: not gone.client.connected, "the hang-up")
        assert time.monotonic() - began < 15
        await stays.barrier()
        async with ear(nerve.url, None) as back:
            assert (await log_in(back, token=first["token"]))["code"] == 401
        await nerve.record.operator.delete("/v1/admin/nerve-tokens/ci")
        await until(lambda: not stays.client.connected, "the end of the client")


async def test_strangers_listen_only_where_the_realm_says_so_and_never_to_nudges(nerve: Nerve) -> None:
    operator = nerve.record.operator
    await operator.post("/v1/admin/realms", {"name": "open", "anonymous_listeners": True})
    work3 = await nerve.record.box("work3", realm="open")
    eric = await nerve.record.person("eric", realm="open")
    tool = await nerve.token("ci", "both", "open")
    async with (
        ear(nerve.url, work3.token) as box,
        ear(nerve.url, None) as stranger,
        ear(nerve.url, None) as another,
        ear(nerve.url, tool["token"]) as producer,
    ):
        for realm in ("main", "nowhere", "no\0where", "Open", {"name": "open"}):
            assert (await log_in(another, realm=realm, role="consumer"))["code"] == 401, realm
        assert (await log_in(stranger, realm="open", role="producer"))["code"] == 403
        for who in (stranger, another):
            admitted = await log_in(who, realm="open")
            assert admitted == {"realm": "open", "role": "consumer", "server": "readyroom"}
            await who.send("CONSUMER", {"name": "ANONYMOUS-6f1c", "id": "ear"})
            await listen(who, *EVERY_WAY, TO_ALL)
            await who.send("PRODUCE", {"event": "done", "from": "build", "message": "forged"})
            await who.barrier()
            assert who.events("AUTH_FAIL")[-1]["code"] == 403
        await producer.send("PRODUCE", {"event": "done", "from": "build", "message": "green"})
        await say(eric, "work3")
        await until(lambda: box.nudges, "the box's nudge")
        heard = {"event": "done", "message": "green", "from": "build"}
        for who in (stranger, another):
            await until(lambda who=who: who.consumed)  # type: ignore[misc]
            await who.barrier()
            assert [payload for _, payload in who.consumed if payload != heard] == []
        closed = await operator.put("/v1/admin/realms/open/listeners", {"anonymous": False})
        assert closed.body["anonymous_listeners"] is False
        await until(lambda: not stranger.client.connected and not another.client.connected)
        await producer.barrier()
        await box.barrier()


async def test_a_realm_that_is_swept_takes_its_links_with_it(nerve: Nerve) -> None:
    wanted = {"name": "brief", "ttl_seconds": 3, "anonymous_listeners": True}
    await nerve.record.operator.post("/v1/admin/realms", wanted)
    box = await nerve.record.box("work3", realm="brief")
    tool, lasting = await nerve.token("ci", "both", "brief"), await nerve.record.box("devmac")
    url = urlsplit(nerve.url)
    assert url.port is not None
    stock = MessageQueue(host=url.hostname, port=url.port, auth={"token": tool["token"]}).createConsumer("c")
    async with (
        ear(nerve.url, box.token) as it,
        ear(nerve.url, None) as stranger,
        ear(nerve.url, lasting.token) as other,
    ):
        assert (await log_in(stranger, realm="brief"))["realm"] == "brief"
        await asyncio.to_thread(stock.connect)
        await until(lambda: stock.authenticated, "the stock client")
        link = stock.socket.eio.ws
        parted: list[str] = []
        it.client.on("disconnect", parted.append)
        await until(lambda: not it.client.connected and not stranger.client.connected, "the sweep")
        await until(lambda: not stock.connected, "the stock client's hang-up")
        await asyncio.to_thread(stock.disconnect)
        link.shutdown()
        assert parted == ["server disconnect"]
        await other.barrier()
        async with ear(nerve.url, None) as late:
            assert (await log_in(late, token=box.token))["code"] == 401
            assert (await log_in(late, token=tool["token"]))["code"] == 401
            assert (await log_in(late, realm="brief"))["code"] == 401


async def test_a_ticket_admits_once_and_soon_and_ends_with_its_token(
    nerve: Nerve, database_url: str, tmp_path: Path
) -> None:
    eric = await nerve.record.person("eric")
    session = await nerve.record.session(await nerve.record.box("work3"))
    async with (
        running(settings_for(database_url, tmp_path)) as replica,
        ear(nerve.url, None) as browser,
        ear(nerve.url, None) as thief,
    ):
        made = await replica.holding(str(eric.token)).post("/v1/nerve/tickets")
        assert (made.status, made.body["expires_in"]) == (201, 30)
        assert (await log_in(browser, ticket=made.body["ticket"]))["realm"] == "main"
        await listen(browser, EVERY_WAY[0])
        assert (await log_in(thief, ticket=made.body["ticket"]))["code"] == 401
        assert (await log_in(thief, token=made.body["ticket"]))["code"] == 401
        assert (await log_in(thief, ticket=eric.token))["code"] == 401
        late = (await eric.post("/v1/nerve/tickets")).body["ticket"]
        await nerve.sql("UPDATE nerve_tickets SET expires_at = clock_timestamp()")
        assert (await log_in(thief, ticket=late))["code"] == 401
        await say(session, "eric")
        await until(lambda: browser.nudges, "the person's nudge")
        unused = (await eric.post("/v1/nerve/tickets")).body["ticket"]
        await nerve.record.operator.delete(f"/v1/admin/tokens/{eric.token_id}")
        await until(lambda: not browser.client.connected, "the hang-up")
        assert (await log_in(thief, ticket=unused))["code"] == 401


async def test_of_many_who_bring_one_ticket_one_is_admitted(nerve: Nerve) -> None:
    eric = await nerve.record.person("eric")
    ticket = (await eric.post("/v1/nerve/tickets")).body["ticket"]
    async with AsyncExitStack() as stack:
        many = [await stack.enter_async_context(ear(nerve.url, None)) for _ in range(6)]
        answers = await asyncio.gather(*(log_in(it, ticket=ticket) for it in many))
    assert sorted(answer.get("code", 0) for answer in answers) == [0, 401, 401, 401, 401, 401]
