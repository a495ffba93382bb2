"""Webhooks: signed nudges without a word of what was said, delivered once, tried until they are taken."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from tests.http.receiving import Receiver, receiving, self_signed
from tests.http.running import Party, Running, running, settings_for, until
from tests.http.test_process import process
from tests.http.test_rooms import said
from tests.http.test_undelivered import pair

LOCAL = {"webhook_allow": "127.0.0.1", "webhook_retry_seconds": 0.05}


@pytest.fixture
async def record(database_url: str, tmp_path: Path) -> AsyncIterator[Running]:
    """A record whose operator allows receivers on this machine."""
    async with running(settings_for(database_url, tmp_path, **LOCAL)) as record:
        yield record


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver that takes everything."""
    async with receiving() as receiver:
        yield receiver


async def hooked(party: Party, receiver: Receiver) -> dict[str, Any]:
    made = await party.post("/v1/webhooks", {"url": receiver.url})
    assert made.status == 201, made
    body: dict[str, Any] = made.body
    return body


async def listed(party: Party) -> list[dict[str, Any]]:
    reply = await party.get("/v1/webhooks")
    assert reply.status == 200, reply
    webhooks: list[dict[str, Any]] = reply.body["webhooks"]
    return webhooks


async def test_a_nudge_is_signed_and_says_where_who_and_when_and_nothing_else(
    record: Running, receiver: Receiver
) -> None:
    _, speaker, reader = await pair(record)
    hook = await hooked(reader, receiver)
    await said(speaker, "api", "a secret word")
    (got,) = await receiver.has(1)
    assert Webhook(hook["secret"]).verify(got.raw, dict(got.headers)) == got.nudge
    assert got.nudge == {"conv": "api", "from": speaker.agent, "at": got.nudge["at"]}
    assert b"secret" not in got.raw
    assert not [value for value in got.headers.values() if "secret" in value or str(reader.token) in value]
    with pytest.raises(WebhookVerificationError):
        Webhook(hook["secret"]).verify(got.raw + b" ", dict(got.headers))


async def test_the_secret_is_shown_once_and_a_webhook_is_its_makers_alone(
    record: Running, receiver: Receiver
) -> None:
    box, speaker, reader = await pair(record)
    eric = await record.person("eric")
    hook = await hooked(reader, receiver)
    assert hook["secret"].startswith("whsec_")
    (shown,) = await listed(reader)
    assert (shown["webhook"], shown["url"], shown["state"]) == (hook["webhook"], receiver.url, "active")
    assert hook["secret"] not in str(shown)
    for other in (box, speaker, eric, reader.speaking_as(None)):
        assert await listed(other) == []
        assert (await other.delete(f"/v1/webhooks/{hook['webhook']}")).code == "not_found"
    assert (await reader.delete(f"/v1/webhooks/{hook['webhook']}")).status == 204
    assert await listed(reader) == []
    assert (await reader.delete(f"/v1/webhooks/{hook['webhook']}")).code == "not_found"


async def test_two_secrets_sign_for_a_time_and_then_the_new_one_alone(
    record: Running, receiver: Receiver
) -> None:
    _, speaker, reader = await pair(record)
    hook = await hooked(reader, receiver)
    path = f"/v1/webhooks/{hook['webhook']}/secret"
    rotated = await reader.post(path)
    assert (rotated.status, rotated.body["webhook"]) == (200, hook["webhook"])
    assert rotated.body["secret"] not in (hook["secret"], None)
    (shown,) = await listed(reader)
    assert shown["old_secret_until"] == rotated.body["old_secret_until"]
    assert rotated.body["secret"] not in str(shown)
    await said(speaker, "api", "while both sign")
    (got,) = await receiver.has(1)
    for secret in (hook["secret"], rotated.body["secret"]):
        assert Webhook(secret).verify(got.raw, dict(got.headers)) == got.nudge
    last = (await reader.post(path, {"overlap_seconds": 0})).body["secret"]
    await said(speaker, "api", "the last one alone")
    _, got = await receiver.has(2)
    assert Webhook(last).verify(got.raw, dict(got.headers)) == got.nudge
    for secret in (hook["secret"], rotated.body["secret"]):
        with pytest.raises(WebhookVerificationError):
            Webhook(secret).verify(got.raw, dict(got.headers))
    assert [each["old_secret_until"] for each in await listed(reader)] == [None]


async def test_an_old_secret_ends_when_its_time_is_over(record: Running, receiver: Receiver) -> None:
    _, speaker, reader = await pair(record)
    hook = await hooked(reader, receiver)
    await reader.post(f"/v1/webhooks/{hook['webhook']}/secret", {"overlap_seconds": 0.2})

    async def over() -> bool:
        return [each["old_secret_until"] for each in await listed(reader)] == [None]

    await until(over, "its time is over")
    await said(speaker, "api", "afterwards")
    (got,) = await receiver.has(1)
    with pytest.raises(WebhookVerificationError):
        Webhook(hook["secret"]).verify(got.raw, dict(got.headers))


async def test_a_secret_is_its_owners_alone_to_change(record: Running, receiver: Receiver) -> None:
    box, speaker, reader = await pair(record)
    hook = await hooked(reader, receiver)
    path = f"/v1/webhooks/{hook['webhook']}/secret"
    for other in (box, speaker, reader.speaking_as(None)):
        assert (await other.post(path)).code == "not_found"
    assert (await reader.post("/v1/webhooks/wh_none/secret")).code == "not_found"
    for bad in ({"overlap_seconds": -1}, {"overlap_seconds": 10**9}, {"secret": "mine"}):
        assert (await reader.post(path, bad)).status == 422
    await said(speaker, "api", "nothing has changed")
    (got,) = await receiver.has(1)
    assert Webhook(hook["secret"]).verify(got.raw, dict(got.headers)) == got.nudge


async def test_it_fires_for_what_its_agent_hears_and_for_nothing_else(
    record: Running, receiver: Receiver
) -> None:
    box, speaker, reader = await pair(record)
    sibling, third = await record.session(reader), await record.session(box)
    await third.post("/v1/rooms/api/join")
    await said(speaker, "api", "before the webhook")
    await speaker.post("/v1/rooms", {"name": "elsewhere"})
    await hooked(reader, receiver)
    await said(reader, "api", "its own")
    await said(speaker, "elsewhere", "a room it is not in")
    await said(speaker, "api", "for another", to=third.agent)
    await (bare := reader.speaking_as(None)).post("/v1/rooms/api/join")
    await said(bare, "api", "of its own bare box")
    assert (await speaker.post("/v1/messages", {"to": sibling.agent, "body": "hello"})).status == 201
    for to in (reader.agent, "devmac", "everyone"):
        assert (await speaker.post("/v1/messages", {"to": to, "body": "heard"})).status == 201
    await sibling.post("/v1/messages", {"to": "devmac-agent", "body": "siblings hear each other"})
    await said(speaker, "api", "heard in the room")
    rooms = {f"@{reader.agent}", "@devmac", "@everyone", "@devmac-agent", "api"}
    await until(lambda: {got.nudge["conv"] for got in receiver.taken} >= rooms, "each room is told of")
    told = {(got.nudge["conv"], got.nudge["from"]) for got in receiver.taken}
    assert told == {(room, sibling.agent if room == "@devmac-agent" else speaker.agent) for room in rooms}


async def test_boxes_and_people_have_webhooks_too(record: Running, receiver: Receiver) -> None:
    _, speaker, reader = await pair(record)
    eric, devmac = await record.person("eric"), reader.speaking_as(None)
    secrets = {(await hooked(party, receiver))["secret"] for party in (eric, devmac)}
    await speaker.post("/v1/messages", {"to": "eric", "body": "hello"})
    await speaker.post("/v1/messages", {"to": "devmac", "body": "hello"})
    got = await receiver.has(2)
    assert {each.nudge["conv"] for each in got} == {"@eric", "@devmac"}
    assert len(secrets) == 2


async def test_a_burst_becomes_few_nudges_and_the_last_message_is_told(
    record: Running, receiver: Receiver
) -> None:
    _, speaker, reader = await pair(record)
    await hooked(reader, receiver)
    newest = max(await asyncio.gather(*(said(speaker, "api", str(n)) for n in range(300))))
    message = (await reader.get(f"/v1/messages/{newest}")).body["message"]
    said_at = dt.datetime.fromisoformat(message["created_at"])
    last = (said_at - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1)
    await until(lambda: any(got.nudge["at"] == last for got in receiver.taken), "the last one is told")
    times = [got.nudge["at"] for got in receiver.taken]
    assert times == sorted(times)
    assert len(times) < 60
    assert len({got.id for got in receiver.taken}) == len(times)


async def test_what_fails_is_tried_again_under_the_same_id_and_say_does_not_wait(
    record: Running, receiver: Receiver
) -> None:
    _, speaker, reader = await pair(record)
    hook = await hooked(reader, receiver)
    receiver.status = 503
    await said(speaker, "api", "once")
    await until(lambda: len(receiver.got) >= 3, "it is tried again")
    (shown,) = await listed(reader)
    assert (shown["state"], shown["failure"]) == ("failing", "it answered 503")
    receiver.status = 200
    (taken,) = await receiver.has(1)
    assert {got.id for got in receiver.got} == {taken.id}
    assert Webhook(hook["secret"]).verify(taken.raw, dict(taken.headers)) == taken.nudge

    async def well() -> bool:
        return [each["state"] for each in await listed(reader)] == ["active"]

    await until(well, "the webhook is well again")


async def test_retry_after_is_honoured(record: Running, receiver: Receiver) -> None:
    _, speaker, reader = await pair(record)
    await hooked(reader, receiver)
    receiver.status, receiver.headers = 429, {"Retry-After": "3"}
    await said(speaker, "api", "not so fast")
    loop = asyncio.get_running_loop()
    await until(lambda: len(receiver.got) == 1, "it is tried")
    began = loop.time()
    receiver.status, receiver.headers = 204, {}
    await receiver.has(1)
    assert loop.time() - began > 2.5
    assert len(receiver.got) == 2


async def test_a_redirect_is_a_failure_and_is_not_followed(record: Running, receiver: Receiver) -> None:
    _, speaker, reader = await pair(record)
    async with receiving() as elsewhere:
        await hooked(reader, receiver)
        receiver.status, receiver.headers = 307, {"Location": elsewhere.url}
        await said(speaker, "api", "here")
        await until(lambda: len(receiver.got) >= 2, "it is tried again")
        assert elsewhere.got == []


async def test_a_receiver_that_is_gone_is_disabled_and_the_owner_is_told(
    record: Running, receiver: Receiver
) -> None:
    _, speaker, reader = await pair(record)
    hook = await hooked(reader, receiver)
    receiver.status = 410
    await said(speaker, "api", "gone")
    report = await disabled_report(reader)
    assert report["payload"]["webhook"] == hook["webhook"]
    assert "410" in report["payload"]["reason"]
    (shown,) = await listed(reader)
    assert shown["state"] == "disabled"
    receiver.status = 204
    async with receiving() as other:
        await hooked(reader, other)
        await said(speaker, "api", "again")
        await other.has(1)
    assert len(receiver.got) == 1


async def test_lasting_failure_disables_and_the_owner_is_told(
    database_url: str, tmp_path: Path, receiver: Receiver
) -> None:
    async with running(settings_for(database_url, tmp_path, **LOCAL, webhook_give_up_seconds=1)) as record:
        _, speaker, reader = await pair(record)
        await hooked(reader, receiver)
        receiver.status = 500
        await said(speaker, "api", "nobody there")
        report = await disabled_report(reader)
        assert "it answered 500" in report["payload"]["reason"]
        assert len(receiver.got) >= 2


async def test_a_dead_receiver_disturbs_no_other(record: Running, receiver: Receiver) -> None:
    _, speaker, reader = await pair(record)
    async with receiving() as gone:
        await hooked(reader, gone)
    await hooked(reader, receiver)
    await said(speaker, "api", "once")
    await receiver.has(1)

    async def noticed() -> bool:
        states = {each["url"]: (each["state"], each["failure"]) for each in await listed(reader)}
        return states == {receiver.url: ("active", None), gone.url: ("failing", "no connection")}

    await until(noticed, "the dead one is failing")


async def test_who_has_left_is_told_nothing_more(record: Running, receiver: Receiver) -> None:
    _, speaker, reader = await pair(record)
    await speaker.post("/v1/rooms", {"name": "second"})
    await reader.post("/v1/rooms/second/join")
    await hooked(reader, receiver)
    receiver.status = 503
    await said(speaker, "api", "while it was in")
    await until(lambda: len(receiver.got) >= 1, "it is tried")
    await reader.post("/v1/rooms/api/leave")
    await said(speaker, "second", "still here")
    receiver.status = 204
    await receiver.has(1)
    assert {got.nudge["conv"] for got in receiver.taken} == {"second"}


async def test_a_removed_box_leaves_no_webhook_to_whoever_gets_its_name(
    record: Running, receiver: Receiver
) -> None:
    _, _, reader = await pair(record)
    bare = reader.speaking_as(None)
    await hooked(bare, receiver)
    await hooked(reader, receiver)
    assert (await record.operator.delete("/v1/admin/boxes/devmac")).status == 204
    again = await record.box("devmac")
    assert await listed(again) == []
    assert (await again.speaking_as(reader.agent).get("/v1/webhooks")).status == 409


async def test_an_agent_has_only_so_many(database_url: str, tmp_path: Path, receiver: Receiver) -> None:
    async with running(settings_for(database_url, tmp_path, **LOCAL, webhooks_per_agent=3)) as record:
        box = await record.box("work3")
        replies = await asyncio.gather(*(box.post("/v1/webhooks", {"url": receiver.url}) for _ in range(8)))
        assert sorted(reply.status for reply in replies) == [201] * 3 + [409] * 5
        assert {reply.code for reply in replies if reply.status == 409} == {"too_many_webhooks"}
        page = await box.get("/v1/webhooks?limit=2")
        rest = await box.get(f"/v1/webhooks?limit=2&cursor={page.body['next_cursor']}")
        assert len({each["webhook"] for each in page.body["webhooks"] + rest.body["webhooks"]}) == 3


async def test_over_tls_with_host_and_name_as_the_url_has_them(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = self_signed(tmp_path, "localhost")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    changes = LOCAL | {"webhook_allow": "localhost"}
    async with (
        receiving(host="localhost", certificate=certificate) as receiver,
        receiving(host="localhost", certificate=self_signed(tmp_path, "imposter")) as imposter,
        running(settings_for(database_url, tmp_path, **changes)) as record,
    ):
        _, speaker, reader = await pair(record)
        hook = await hooked(reader, receiver)
        await hooked(reader, imposter)
        await said(speaker, "api", "over tls")
        (got,) = await receiver.has(1)
        assert Webhook(hook["secret"]).verify(got.raw, dict(got.headers)) == got.nudge
        assert receiver.names == ["localhost"]
        assert got.headers["Host"] == receiver.url.split("/")[2]

        async def refused() -> bool:
            failures = {each["failure"] for each in await listed(reader)}
            return "its TLS certificate is not valid" in failures

        await until(refused, "a certificate that proves nothing is refused")
        assert imposter.got == []


BAD: list[dict[str, Any]] = [
    {},
    {"url": 5},
    {"url": "https://example.com/", "secret": "mine"},
    {"url": ""},
    {"url": "https://user:pass@example.com/"},
    {"url": "https://127.0.0.2/"},
    {"url": "http://127.0.0.2:8080/"},
    {"url": "https://[::1]/"},
    {"url": "https://nobody.invalid/"},
    {"url": "https://example.com\u0000/"},
    {"url": "ftp://127.0.0.1/"},
]


async def test_an_address_that_will_not_do_is_refused_and_nothing_is_stored(
    record: Running, subtests: pytest.Subtests
) -> None:
    box = await record.box("work3")
    for body in BAD:
        with subtests.test(body=body):
            refused = await box.post("/v1/webhooks", body)
            assert (refused.status, refused.code) == (422, "invalid")
            assert refused.body["field"] in {"url", "secret"}
            assert await listed(box) == []
    assert (await box.delete("/v1/webhooks/wh_%00")).status == 422


async def test_a_nudge_survives_a_restart(database_url: str, tmp_path: Path, receiver: Receiver) -> None:
    settings = settings_for(database_url, tmp_path, **LOCAL)
    receiver.status = 503
    async with running(settings) as record:
        _, speaker, reader = await pair(record)
        hook = await hooked(reader, receiver)
        await said(speaker, "api", "once")
        await until(lambda: len(receiver.got) >= 1, "it is tried")
    receiver.status = 204
    async with running(settings):
        (taken,) = await receiver.has(1)
    assert {got.id for got in receiver.got} == {taken.id}
    assert Webhook(hook["secret"]).verify(taken.raw, dict(taken.headers)) == taken.nudge


@pytest.mark.long
async def test_a_record_killed_right_after_its_answer_owes_no_nudge(
    database_url: str, tmp_path: Path, receiver: Receiver
) -> None:
    async with process(database_url, tmp_path, READYROOM_WEBHOOK_ALLOW="127.0.0.1") as (record, child):

        async def ready() -> bool:
            try:
                return (await record.stranger.get("/readyz")).status == 200
            except OSError:
                return False

        await until(ready, "the record is ready")
        _, speaker, reader = await pair(record)
        await hooked(reader, receiver)
        await said(speaker, "api", "the last word")
        child.kill()
        await child.wait()
    async with running(settings_for(database_url, tmp_path, **LOCAL)):
        got = await receiver.has(1)
    assert {each.nudge["conv"] for each in got} == {"api"}


@pytest.mark.long
async def test_two_replicas_deliver_each_nudge_once(
    record: Running, database_url: str, tmp_path: Path, receiver: Receiver
) -> None:
    async with running(settings_for(database_url, tmp_path, **LOCAL)) as second:
        _, speaker, reader = await pair(record)
        rooms = [f"room{n}" for n in range(30)]
        for room in rooms:
            await speaker.post("/v1/rooms", {"name": room})
            await reader.post(f"/v1/rooms/{room}/join")
        async with receiving() as other:
            for each in (receiver, other):
                await hooked(reader, each)
            there = second.holding(str(speaker.token), speaker.agent)
            await asyncio.gather(
                *(said((speaker, there)[n % 2], room, "once") for n, room in enumerate(rooms))
            )
            for each in (receiver, other):
                got = await each.has(30)
                assert sorted(one.nudge["conv"] for one in got) == sorted(rooms)
            await speaker.post("/v1/messages", {"to": reader.agent, "body": "the end"})
            for each in (receiver, other):
                await each.has(31)
                assert len({got.id for got in each.got}) == len(each.got) == 31


async def disabled_report(party: Party) -> dict[str, Any]:
    found: list[dict[str, Any]] = []

    async def told() -> bool:
        polled = (await party.post("/v1/poll", {})).body
        found.extend(m for room in polled["rooms"] for m in room["messages"] if m["sender"] == "system")
        return bool(found)

    await until(told, "the owner is told")
    assert found[0]["type"] == "webhook.disabled"
    return found[0]
