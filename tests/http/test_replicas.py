"""Several records on one database, each with its nerve: what one is told, the listeners of all hear."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from api.settings import Settings
from broker_bridge.nudge import Nudge
from broker_bridge.redis_channel import RedisChannel
from tests.contract.nerves import free_port, listening
from tests.contract.redis_server import RedisServer
from tests.http.running import Party, Running, running, settings_for, until
from tests.http.test_nudging import durations
from tests.http.test_rooms import said

pytestmark = pytest.mark.long

CHANNELS = ("readyroom_moved", "readyroom_nerve", "readyroom_identity")


@pytest.fixture(params=["NOTIFY", "Redis"])
def settings(request: pytest.FixtureRequest, database_url: str, tmp_path: Path) -> Settings:
    """The settings that all replicas share."""
    if request.param == "NOTIFY":
        return settings_for(database_url, tmp_path)
    return settings_for(database_url, tmp_path, redis_url=request.getfixturevalue("redis").new_url())


@pytest.fixture
async def replicas(settings: Settings) -> AsyncIterator[list[Running]]:
    """Three records that run."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(running(settings)) for _ in range(3)]


@contextlib.asynccontextmanager
async def ear(record: Running, party: Party) -> AsyncIterator[tuple[list[Nudge], list[bool]]]:
    """What a box or person hears at one replica, and whether its link stands."""
    async with listening(record.url, str(party.token), "ear") as (_, heard, states):
        await until(lambda: states == [True], "the listener")
        yield heard, states


def at(record: Running, party: Party) -> Party:
    """The same caller through another replica."""
    return record.holding(str(party.token), party.agent)


async def test_what_is_said_through_any_record_is_heard_at_every_other(replicas: list[Running]) -> None:
    first = replicas[0]
    box, other, stranger = await first.box("work3"), await first.box("devmac"), await first.box("zoo")
    listener, speaker = await first.session(box), await first.session(other)
    await first.session(stranger)
    for party in (listener, speaker):
        await party.post("/v1/rooms", {"name": "api"})
    async with AsyncExitStack() as stack:
        ears = [(await stack.enter_async_context(ear(each, box)))[0] for each in replicas]
        deaf = [(await stack.enter_async_context(ear(each, stranger)))[0] for each in replicas]
        for turn, record in enumerate(replicas):
            for heard in ears:
                heard.clear()
            await said(at(record, speaker), "api", f"{turn}")
            await until(lambda: all(ears), f"every ear hears what replica {turn} was told")
            assert {(n.conv, n.sender) for heard in ears for n in heard} == {("api", speaker.agent)}
        assert deaf == [[], [], []]


Ending = Callable[[Running, Party], Any]
ENDINGS: dict[str, Ending] = {
    "token revoked": lambda record, party: record.operator.delete(f"/v1/admin/tokens/{party.token_id}"),
    "box removed": lambda record, _: record.operator.delete("/v1/admin/boxes/work3?realm=lab"),
    "realm removed": lambda record, _: record.operator.delete("/v1/admin/realms/lab"),
}


@pytest.mark.parametrize("ending", ENDINGS)
async def test_what_ends_through_one_record_hangs_up_at_the_others_at_once(
    record: Running, second: Running, ending: str
) -> None:
    await record.operator.post("/v1/admin/realms", {"name": "lab"})
    gone, stays = await record.box("work3", realm="lab"), await record.box("work3")
    async with ear(second, gone) as (_, states), ear(second, stays) as (_, others):
        began = time.monotonic()
        assert (await ENDINGS[ending](record, gone)).status == 204
        await until(lambda: states == [True, False], "the link ends")
        assert time.monotonic() - began < 10
        assert others == [True]


async def test_a_realm_whose_time_is_over_is_hung_up_on_everywhere(record: Running, second: Running) -> None:
    await record.operator.post("/v1/admin/realms", {"name": "short", "ttl_seconds": 8})
    gone, stays = await record.box("work3", realm="short"), await record.box("work3")
    async with AsyncExitStack() as stack:
        links = [(await stack.enter_async_context(ear(each, gone)))[1] for each in (record, second)]
        _, others = await stack.enter_async_context(ear(second, stays))
        await until(lambda: links == [[True, False]] * 2, "both links end")
        assert others == [True]


SECRET = "needle"


async def test_nothing_that_is_said_is_in_a_notify_and_each_is_short_enough(
    record: Running, database_url: str
) -> None:
    boxes = [await record.box(f"box{number:03}-{'x' * 50}") for number in range(150)]
    speaker = await record.session(boxes[0])
    await speaker.post("/v1/rooms", {"name": "api"})
    texts: list[str] = []
    connection = await asyncpg.connect(database_url)
    try:
        for channel in CHANNELS:
            await connection.add_listener(channel, lambda *event: texts.append(event[3]))
        more = {"payload": {"summary": SECRET}, "thread_id": SECRET, "client_id": SECRET, "type": SECRET}
        await said(speaker, "api", SECRET, **more)
        to_all = {"to": "everyone", "body": SECRET, **more, "client_id": f"{SECRET}2"}
        assert (await speaker.post("/v1/messages", to_all)).status == 201

        def told() -> set[str]:
            rows = [row for text in texts if text[0] == "{" for row in json.loads(text).get("nudges", ())]
            assert all(set(nudge) == {"conv", "from", "at"} for _, nudge, _ in rows)
            return {name for _, nudge, names in rows if nudge["conv"] == "@everyone" for name in names}

        await until(lambda: len(told()) == 149, "every box is named but the speaker's own")
    finally:
        await connection.close()
    assert SECRET not in "".join(texts)
    assert max(map(len, texts)) < 8000


async def test_without_its_redis_a_record_is_degraded_and_says_as_fast_as_ever(
    database_url: str, tmp_path: Path
) -> None:
    own = RedisServer()
    try:
        own.start()
        settings = settings_for(database_url, tmp_path, redis_url=own.new_url(), say_burst=10_000)
        async with running(settings) as record:
            speaker = await record.session(await record.box("work3"))
            await speaker.post("/v1/rooms", {"name": "api"})
            await said(speaker, "api", "warm")
            before = await durations(speaker)
            own.freeze()
            while_hanging = await durations(speaker)
            await until(lambda: nerve_is(record, "degraded"), "the silence is noticed")
            own.kill()
            while_away = await durations(speaker)
            assert (await record.stranger.get("/readyz")).status == 200
            own.start()
            await until(lambda: nerve_is(record, "ok"), "Redis is found again")
    finally:
        own.kill()
    assert max(while_hanging[-3], while_away[-3]) < 10 * before[-3] + 0.05


async def nerve_is(record: Running, state: str) -> bool:
    return bool((await record.stranger.get("/readyz")).body["parts"]["nerve"] == state)


def test_what_is_no_redis_is_refused(database_url: str, tmp_path: Path, subtests: pytest.Subtests) -> None:
    for url in ("http://127.0.0.1", "127.0.0.1:6379"):
        with subtests.test(url):
            with pytest.raises(ValueError, match="begins with redis://"):
                settings_for(database_url, tmp_path, redis_url=url)
            with pytest.raises(ValueError, match="redis://"):
                RedisChannel(url)


def test_redis_may_be_named_in_a_file_or_by_nothing(database_url: str, tmp_path: Path) -> None:
    file = tmp_path / "redis"
    file.write_text(f"redis://:secret@127.0.0.1:{free_port()}/1\n")
    assert settings_for(database_url, tmp_path).redis() is None
    assert settings_for(database_url, tmp_path, redis_url="").redis() is None
    named = settings_for(database_url, tmp_path, redis_url_file=file)
    assert named.redis() == file.read_text().strip()
    assert "secret" not in repr(named)
