"""Several replicas of one nerve, and what becomes of the channel between them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack

import pytest
from structlog.testing import capture_logs

from broker_bridge import redis_channel, replicas
from broker_bridge.channel import Seat
from broker_bridge.nudge import Nudge
from broker_bridge.redis_channel import RedisChannel
from broker_bridge.replicas import Replicas
from tests.conftest import run_sql
from tests.contract.nerves import free_port, listening, talking, until
from tests.contract.redis_server import RedisServer
from tests.contract.replicated import NewChannel, over_notify, over_redis, replica

pytestmark = pytest.mark.long

REMINDER = ("@everyone", "system")


@pytest.fixture(params=["NOTIFY", "Redis"])
def channel(request: pytest.FixtureRequest) -> NewChannel:
    if request.param == "NOTIFY":
        return over_notify(request.getfixturevalue("database_url"))
    return over_redis(request.getfixturevalue("redis").new_url())


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


async def pair(stack: AsyncExitStack, channel: NewChannel) -> tuple[Replicas, Replicas, str]:
    """Two replicas that reach each other, and where the second one listens."""
    near, _ = await stack.enter_async_context(replica(channel()))
    far, url = await stack.enter_async_context(replica(channel()))
    await until(lambda: near.up and far.up, "the replicas")
    return near, far, url


async def listener(stack: AsyncExitStack, url: str) -> list[Nudge]:
    _, heard, states = await stack.enter_async_context(listening(url))
    await until(lambda: states == [True], "the listener")
    return heard


def kinds(heard: list[Nudge]) -> list[tuple[str, str]]:
    return [(nudge.conv, nudge.sender) for nudge in heard]


async def test_what_waits_is_passed_on_at_the_end_and_a_last_word_alarms_nobody(
    channel: NewChannel, stack: AsyncExitStack
) -> None:
    near, far, url = await pair(stack, channel)
    heard = await listener(stack, url)
    for room in range(500):
        near.nudge(Nudge(f"room{room}", "a", room), realm="main", names={"work3"})
    await near.close()
    await until(lambda: len(heard) == 500, "what waited")
    assert far._peers == {}


async def test_a_replica_that_falls_silent_makes_the_others_remind_their_listeners(
    channel: NewChannel, stack: AsyncExitStack
) -> None:
    near, _, url = await pair(stack, channel)
    heard = await listener(stack, url)
    near.nudge(Nudge("api", "a", 1), realm="main", names={"work3"})
    await until(lambda: heard, "a nudge")
    assert near._keeping is not None
    near._keeping.cancel()
    await until(lambda: len(heard) > 1, "the reminder")
    assert kinds(heard) == [("api", "a"), REMINDER]


async def test_what_a_record_produces_at_one_broker_is_heard_at_all(
    channel: NewChannel, stack: AsyncExitStack
) -> None:
    _, near_url = await stack.enter_async_context(replica(channel()))
    _, far_url = await stack.enter_async_context(replica(channel()))
    ears = [await listener(stack, near_url), await listener(stack, far_url)]
    record = await stack.enter_async_context(talking(near_url))
    await until(lambda: record.state == "ok", "the record")
    record.nudge(Nudge("api", "a", 1), realm="main", names={"work3"})
    record.nudge(Nudge("api", "a", 2), realm="other", names={"work3"})
    await until(lambda: all(ears), "the nudge")
    assert ears == [[Nudge("api", "a", 1)]] * 2


async def test_postgresql_that_cut_the_line_is_found_again_and_nothing_is_missed(
    database_url: str, stack: AsyncExitStack
) -> None:
    near, far, url = await pair(stack, over_notify(database_url))
    heard = await listener(stack, url)
    await run_sql(
        database_url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND datname = current_database()",
    )
    await until(lambda: near.state == far.state == "degraded", "the loss")
    near.nudge(Nudge("api", "a", 1), realm="main", names={"work3"})
    await until(lambda: near.up and far.up, "the line again")
    await until(lambda: REMINDER in kinds(heard), "the reminder")
    assert near.state == far.state == "ok"


class TestRedisAway:
    """Redis of its own, for it is killed and frozen."""

    @pytest.fixture
    def own(self) -> Iterator[RedisServer]:
        server = RedisServer()
        try:
            server.start()
            yield server
        finally:
            server.kill()

    async def test_killed_it_costs_only_time_and_is_found_again(
        self, own: RedisServer, stack: AsyncExitStack
    ) -> None:
        near, far, url = await pair(stack, over_redis(own.new_url()))
        heard = await listener(stack, url)
        own.kill()
        await until(lambda: near.state == far.state == "degraded", "the loss")
        far.nudge(Nudge("here", "a", 1), realm="main", names={"work3"})
        await until(lambda: kinds(heard) == [("here", "a")], "what is said on the spot")
        assert await dearest_nudge(near) < 0.005
        own.start()
        await until(lambda: near.state == far.state == "ok", "Redis again")
        await until(lambda: REMINDER in kinds(heard), "the reminder")
        near.nudge(Nudge("after", "a", 2), realm="main", names={"work3"})
        await until(lambda: ("after", "a") in kinds(heard), "a nudge of the other replica")

    async def test_hung_it_delays_nothing_and_is_found_again(
        self, own: RedisServer, stack: AsyncExitStack
    ) -> None:
        near, far, url = await pair(stack, over_redis(own.new_url()))
        heard = await listener(stack, url)
        own.freeze()
        assert await dearest_nudge(near) < 0.005
        await until(lambda: near.state == far.state == "degraded", "the silence")
        own.thaw()
        await until(lambda: near.state == far.state == "ok", "Redis again")
        near.nudge(Nudge("after", "a", 2), realm="main", names={"work3"})
        await until(lambda: ("after", "a") in kinds(heard), "a nudge of the other replica")

    async def test_closing_does_not_wait_for_it(
        self, own: RedisServer, stack: AsyncExitStack, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(redis_channel, "ANSWER_SECONDS", 60)
        near, _, _ = await pair(stack, over_redis(own.new_url()))
        own.freeze()
        near.nudge(Nudge("api", "a", 1), realm="main", names={"work3"})
        began = time.monotonic()
        await near.close()
        assert time.monotonic() - began < 20


async def test_a_redis_that_never_answers_leaves_the_replica_to_itself(stack: AsyncExitStack) -> None:
    with capture_logs() as logs:
        url = f"redis://user:the-secret@127.0.0.1:{free_port()}/0"
        nerve, where = await stack.enter_async_context(replica(RedisChannel(url)))
        heard = await listener(stack, where)
        nerve.nudge(Nudge("api", "a", 1), realm="main", names={"work3"})
        await until(lambda: heard, "the nudge")
        await until(lambda: nerve.state == "degraded", "the trouble")
    assert "the-secret" not in f"{logs}{nerve.trouble}"


async def test_nerves_with_other_database_numbers_are_strangers(
    stack: AsyncExitStack, redis: RedisServer
) -> None:
    near, _ = await stack.enter_async_context(replica(RedisChannel(redis.new_url())))
    stranger, url = await stack.enter_async_context(replica(RedisChannel(redis.new_url())))
    await until(lambda: near.up and stranger.up, "both")
    heard = await listener(stack, url)
    near.nudge(Nudge("ours", "a", 1), realm="main", names={"work3"})
    await asyncio.sleep(3 * replicas.BEAT_SECONDS)  # it would be heard within this time
    stranger.nudge(Nudge("theirs", "a", 1), realm="main", names={"work3"})
    await until(lambda: heard, "the nudge")
    assert kinds(heard) == [("theirs", "a")]


async def test_a_channel_whose_texts_do_not_come_back_is_left(
    stack: AsyncExitStack, redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    near, _ = await stack.enter_async_context(replica(RedisChannel(redis.new_url())))
    await until(lambda: near.up, "the channel")
    with monkeypatch.context() as deaf:
        deaf.setattr(near, "_came_back", lambda: None)
        await until(lambda: near.trouble == "what is said there does not come back", "the trouble")
    await until(lambda: near.state == "ok", "the channel again")


async def test_a_fault_of_ours_is_no_flood_of_attempts(stack: AsyncExitStack) -> None:
    attempts: list[float] = []

    class Broken:
        def joined(self, _: object) -> AbstractAsyncContextManager[Seat]:
            attempts.append(time.monotonic())
            raise LookupError("what somebody said")

    with capture_logs() as logs:
        nerve, _ = await stack.enter_async_context(replica(Broken()))
        await until(lambda: len(attempts) == 4, "attempts")
    assert attempts[-1] - attempts[0] > 1.3
    assert (nerve.state, nerve.trouble) == ("degraded", "a fault of ours")
    assert [line["event"] for line in logs].count("nerve_replicas_lost") == 1


async def dearest_nudge(nerve: Replicas) -> float:
    """Seconds that the 99th of a hundred nudges cost its caller, over many rooms."""
    costs = []
    for number in range(20_000):
        began = time.perf_counter()
        nerve.nudge(Nudge(f"room{number % 12_000}", "a", number), realm="main", names={"zoo"})
        costs.append(time.perf_counter() - began)
        if number % 200 == 0:
            await asyncio.sleep(0)
    return sorted(costs)[int(len(costs) * 0.99)]
