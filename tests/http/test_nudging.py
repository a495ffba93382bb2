"""Whatever writes a message nudges those it is for, after the commit, whatever state the nerve is in."""

from __future__ import annotations

import itertools
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from api.mcp.tools import TOOLS
from broker_bridge.nudge import Nudge
from tests.contract.nerves import free_port, listening, lone_broker
from tests.http.models import model
from tests.http.receiving import Receiver, receiving
from tests.http.running import Party, Reply, Running, running, settings_for, until
from tests.http.test_rooms import said
from tests.http.test_undelivered import pair

pytestmark = pytest.mark.long

WRITTEN = """
    SELECT m.id, v.name AS room, coalesce(s.handle, 'system') AS sender
      FROM conv_messages m
      JOIN conversations v ON v.realm_id = m.realm_id AND v.conv_id = m.conv_id
      LEFT JOIN agents s ON s.realm_id = m.realm_id AND s.agent_id = m.sender_id
     WHERE m.id > $1 ORDER BY m.id
"""

LOCAL = {"webhook_allow": "127.0.0.1", "webhook_retry_seconds": 0.05, "webhook_give_up_seconds": 1}


@dataclass
class Stage:
    """A record with two boxes and a person, an ear of each, and a look at what was written."""

    record: Running
    box: Party
    speaker: Party
    reader: Party
    eric: Party
    receiver: Receiver
    database: asyncpg.Connection
    ears: list[list[Nudge]]
    names: Iterator[str] = field(default_factory=lambda: (f"n{n}" for n in itertools.count(1)))
    seen: int = 0

    @property
    def heard(self) -> set[tuple[str, str]]:
        """Room and sender of the nudges that were heard, by whomever."""
        return {(nudge.conv, nudge.sender) for ear in self.ears for nudge in ear}

    def forget(self) -> None:
        for ear in self.ears:
            ear.clear()

    async def written(self) -> list[tuple[str, str]]:
        """Room and sender of each message since the last time."""
        rows = await self.database.fetch(WRITTEN, self.seen)
        self.seen = max([self.seen, *(row["id"] for row in rows)])
        return [(row["room"], row["sender"]) for row in rows]

    async def all_nudged(self, what: str) -> list[tuple[str, str]]:
        """What was written since the last time; each of it is, or will be, heard."""
        written = await self.written()
        await until(lambda: {*written} <= self.heard, f"{what}: {written}")
        return written

    async def hears(self, room: str, sender: str) -> None:
        await until(lambda: (room, sender) in self.heard, f"a nudge of {sender} in {room}")


@pytest.fixture
async def stage(database_url: str, tmp_path: Path) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        settings = settings_for(database_url, tmp_path, **LOCAL)
        record = await stack.enter_async_context(running(settings))
        box, speaker, reader = await pair(record)
        eric = await record.person("eric")
        ears: list[list[Nudge]] = []
        for party in (box, reader, eric):
            _, heard, states = await stack.enter_async_context(listening(record.url, str(party.token)))
            await until(lambda: states == [True], "an ear")  # noqa: B023
            ears.append(heard)
        receiver = await stack.enter_async_context(receiving())
        database = await asyncpg.connect(database_url)
        stack.push_async_callback(database.close)
        yield Stage(record, box, speaker, reader, eric, receiver, database, ears)


Act = Callable[[Stage], Awaitable[Reply]]


def of(who: str, method: str, path: str, body: Any = None) -> Act:
    """A call of one of the stage's parties; `{new}` is a name that nothing has yet."""

    async def act(stage: Stage) -> Reply:
        party: Party = stage.record.operator if who == "operator" else getattr(stage, who)
        new = next(stage.names)
        given = {key: new if value == "{new}" else value for key, value in (body or {}).items()}
        return await party.call(method, path.replace("{new}", new), given if body is not None else None)

    return act


async def checkout(stage: Stage) -> Reply:
    return await (await stage.record.session(stage.box)).post("/v1/checkout")


async def hook(stage: Stage) -> Reply:
    return await stage.reader.post("/v1/webhooks", {"url": stage.receiver.url})


async def rehook(stage: Stage) -> Reply:
    return await stage.reader.post(f"/v1/webhooks/{(await hook(stage)).body['webhook']}/secret", {})


async def unhook(stage: Stage) -> Reply:
    return await stage.reader.delete(f"/v1/webhooks/{(await hook(stage)).body['webhook']}")


async def invite(stage: Stage) -> Reply:
    return await stage.record.operator.post("/v1/admin/invites", {"box": next(stage.names)})


async def uninvite(stage: Stage) -> Reply:
    invited = (await invite(stage)).body["invite_id"]
    return await stage.record.operator.delete(f"/v1/admin/invites/{invited}")


async def redeem(stage: Stage) -> Reply:
    return await stage.record.stranger.post("/v1/redeem", {"code": (await invite(stage)).body["code"]})


def made_before(kind: str, key: str, method: str, path: str, body: Any = None) -> Act:
    """A call of the operator's about something new."""

    async def act(stage: Stage) -> Reply:
        made = await stage.record.operator.post(f"/v1/admin/{kind}", {"name": next(stage.names)})
        return await stage.record.operator.call(method, path.replace("{it}", made.body[key]), body)

    return act


ACTS: dict[tuple[str, str], Act] = {
    ("POST", "/v1/rooms/{room}/messages"): of("speaker", "POST", "/v1/rooms/api/messages", {"body": "b"}),
    ("POST", "/v1/messages"): of("speaker", "POST", "/v1/messages", {"to": "eric", "body": "b"}),
    ("POST", "/v1/poll"): of("reader", "POST", "/v1/poll", {}),
    ("POST", "/v1/ack"): of("reader", "POST", "/v1/ack", {"rooms": {}}),
    ("POST", "/v1/rooms"): of("speaker", "POST", "/v1/rooms", {"name": "{new}"}),
    ("POST", "/v1/rooms/{room}/join"): of("eric", "POST", "/v1/rooms/api/join", {}),
    ("POST", "/v1/rooms/{room}/leave"): of("eric", "POST", "/v1/rooms/api/leave"),
    ("POST", "/v1/checkin"): of("box", "POST", "/v1/checkin", {}),
    ("POST", "/v1/checkout"): checkout,
    ("PUT", "/v1/presence"): of("box", "PUT", "/v1/presence", {"sessions": []}),
    ("POST", "/v1/webhooks"): hook,
    ("POST", "/v1/webhooks/{webhook}/secret"): rehook,
    ("DELETE", "/v1/webhooks/{webhook}"): unhook,
    ("POST", "/v1/nerve/tickets"): of("reader", "POST", "/v1/nerve/tickets"),
    ("POST", "/v1/redeem"): redeem,
    ("POST", "/v1/admin/invites"): invite,
    ("DELETE", "/v1/admin/invites/{invite_id}"): uninvite,
    ("POST", "/v1/admin/realms"): of("operator", "POST", "/v1/admin/realms", {"name": "{new}"}),
    ("PUT", "/v1/admin/realms/{name}"): of("operator", "PUT", "/v1/admin/realms/main", {"keep_days": 9}),
    ("PUT", "/v1/admin/realms/{name}/listeners"): of(
        "operator", "PUT", "/v1/admin/realms/main/listeners", {"anonymous": False}
    ),
    ("DELETE", "/v1/admin/realms/{name}"): made_before("realms", "name", "DELETE", "/v1/admin/realms/{it}"),
    ("POST", "/v1/admin/boxes"): of("operator", "POST", "/v1/admin/boxes", {"name": "{new}"}),
    ("DELETE", "/v1/admin/boxes/{name}"): made_before("boxes", "name", "DELETE", "/v1/admin/boxes/{it}"),
    ("POST", "/v1/admin/boxes/{name}/tokens"): made_before(
        "boxes", "name", "POST", "/v1/admin/boxes/{it}/tokens"
    ),
    ("POST", "/v1/admin/people"): of("operator", "POST", "/v1/admin/people", {"name": "{new}"}),
    ("DELETE", "/v1/admin/people/{name}"): made_before("people", "name", "DELETE", "/v1/admin/people/{it}"),
    ("POST", "/v1/admin/people/{name}/tokens"): made_before(
        "people", "name", "POST", "/v1/admin/people/{it}/tokens"
    ),
    ("POST", "/v1/admin/nerve-tokens"): of("operator", "POST", "/v1/admin/nerve-tokens", {"name": "{new}"}),
    ("DELETE", "/v1/admin/nerve-tokens/{name}"): made_before(
        "nerve-tokens", "name", "DELETE", "/v1/admin/nerve-tokens/{it}"
    ),
    ("POST", "/v1/admin/nerve-tokens/{name}/tokens"): made_before(
        "nerve-tokens", "name", "POST", "/v1/admin/nerve-tokens/{it}/tokens"
    ),
    ("DELETE", "/v1/admin/tokens/{token_id}"): made_before(
        "boxes", "token_id", "DELETE", "/v1/admin/tokens/{it}"
    ),
}
"""A call of each kind that may change something, such that it succeeds."""

OF_OTHER_PROGRAMS = {
    ("POST", "/v1/nerve/admissions"),
    ("POST", "/v1/nerve/admissions/valid"),
    ("POST", "/v1/nerve/admissions/name"),
    ("POST", "/v1/nerve/admissions/names"),
    ("POST", "/v1/admin/dead-letters/{letter_id}/revive"),
    ("DELETE", "/v1/admin/dead-letters/{letter_id}"),
}
"""What a nerve asks, and what is done with messages that were never in a room."""

WRITING = {("POST", "/v1/rooms/{room}/messages"), ("POST", "/v1/messages")}


async def test_every_call_of_the_document_that_writes_a_message_nudges(stage: Stage) -> None:
    document = (await stage.record.stranger.get("/openapi.json")).body
    changing = {
        (method.upper(), path)
        for path, calls in document["paths"].items()
        for method in calls
        if method.upper() not in ("GET", "HEAD", "OPTIONS")
    }
    assert changing == set(ACTS) | OF_OTHER_PROGRAMS, "a call that may write needs its act here"
    writing = set()
    for call, act in ACTS.items():
        stage.forget()
        reply = await act(stage)
        assert reply.status < 300, (call, reply)
        if await stage.all_nudged(str(call)):
            writing.add(call)
    assert writing == WRITING


CALLED_WITH: dict[str, dict[str, Any]] = {
    "start_conv": {"room": "web"},
    "join_conv": {"room": "api"},
    "say": {"room": "api", "body": "b"},
    "poll_convs": {},
    "list_convs": {},
    "list_all_convs": {},
    "who": {"room": "api"},
    "send_message": {"to": "eric", "body": "b"},
    "list_agents": {},
    "read_conv": {"room": "api"},
    "search_convs": {"q": "b"},
    "message_status": {"id": 1},
    "leave_conv": {"room": "web"},
}
"""A call of each tool, such that it succeeds."""


async def test_every_tool_that_writes_a_message_nudges(stage: Stage) -> None:
    assert set(CALLED_WITH) == set(TOOLS), "a tool that may write needs its call here"
    writing = set()
    async with model(stage.speaker) as ada:
        for tool, arguments in CALLED_WITH.items():
            stage.forget()
            answer = await ada(tool, **arguments)
            assert answer.code is None, (tool, answer)
            if await stage.all_nudged(tool):
                writing.add(tool)
    assert writing == {"say", "send_message"}


async def test_a_message_whose_hops_are_used_up_nudges_the_first_sender(stage: Stage) -> None:
    first = await said(stage.speaker, "api", "ask", type="task.request", hop_limit=1)
    stage.forget()
    refused = await stage.reader.post("/v1/rooms/api/messages", {"body": "on", "relay_of": first})
    assert refused.status == 422
    await stage.hears(f"@{stage.speaker.agent}", "system")


async def test_an_undelivered_report_nudges_whom_it_is_for(stage: Stage) -> None:
    await said(stage.speaker, "api", "unread", ttl_seconds=0.2)
    await stage.hears(f"@{stage.speaker.agent}", "system")


@pytest.mark.parametrize("end", ["checkout", "removal"])
async def test_an_addressee_that_goes_without_reading_nudges_the_sender(stage: Stage, end: str) -> None:
    sent = {"to": stage.reader.agent, "body": "unread"}
    assert (await stage.speaker.post("/v1/messages", sent)).status == 201
    if end == "checkout":
        await stage.reader.post("/v1/checkout")
    else:
        await stage.record.operator.delete("/v1/admin/boxes/devmac")
    await stage.hears(f"@{stage.speaker.agent}", "system")


async def test_a_report_whose_sender_is_gone_nudges_the_people(stage: Stage) -> None:
    await said(stage.speaker, "api", "unread", ttl_seconds=0.5)
    await stage.speaker.post("/v1/checkout")
    await stage.hears("@eric", "system")


async def test_a_webhook_that_is_disabled_nudges_its_owner(stage: Stage) -> None:
    stage.receiver.status = 410
    await hook(stage)
    await said(stage.speaker, "api", "b")
    await stage.hears(f"@{stage.reader.agent}", "system")


@pytest.fixture
def hung_broker(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Settings that name a nerve which can be made to hang: by the function under `hang`."""
    port = free_port()
    token = tmp_path / "nerve.token"
    token.write_text("tok-record")
    with lone_broker(port) as process:
        settings = {"nerve_url": f"http://127.0.0.1:{port}", "nerve_token_file": token}
        yield {"settings": settings, "hang": lambda: process.send_signal(signal.SIGSTOP)}


async def test_a_nerve_that_hangs_makes_no_say_slower(
    database_url: str, tmp_path: Path, hung_broker: dict[str, Any]
) -> None:
    settings = settings_for(database_url, tmp_path, say_burst=10_000, **hung_broker["settings"])
    async with running(settings) as record:
        _, speaker, _ = await pair(record)

        async def degraded() -> bool:
            return bool((await record.stranger.get("/readyz")).body["parts"]["nerve"] == "degraded")

        async def well() -> bool:
            return not await degraded()

        await until(well, "the nerve is found")
        before = await durations(speaker)
        hung_broker["hang"]()
        while_hanging = await durations(speaker)
        await until(degraded, "the silence is noticed")
        afterwards = await durations(speaker)
    slowest = max(while_hanging[-3], afterwards[-3])
    assert slowest < 10 * before[-3] + 0.05, (before[-3], slowest)
    assert sum(while_hanging) < 3 * sum(before) + 1


async def durations(speaker: Party, *, count: int = 200) -> list[float]:
    """How long each of some says took, in order of length."""
    took = []
    for number in range(count):
        began = time.perf_counter()
        await said(speaker, "api", f"{number}")
        took.append(time.perf_counter() - began)
    return sorted(took)
