"""Our two clients at brokers that keep no promise: nothing is lost but time, and nobody has to help."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import engineio
import pytest

from broker_bridge import link, tyo_mq
from broker_bridge.nudge import Nudge
from tests.contract.nerves import free_port, listening, served, serving, talking, until
from tests.contract.odd_brokers import (
    AUTH_OK,
    CONNECTED,
    OPEN,
    ForgetfulBroker,
    OddBroker,
    Script,
    StingyBroker,
    behaves,
    says,
    scripted,
)

pytestmark = pytest.mark.long


def nudge(at: int = 1, conv: str = "api") -> Nudge:
    return Nudge(conv, "devmac-agent#1", at)


@pytest.fixture(autouse=True)
async def nothing_left() -> AsyncIterator[None]:
    """Whatever happened to a link, its sockets and tasks are gone."""
    yield
    await until(lambda: not engineio.base_client.connected_clients, "the links to be let go of")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits that are minutes and seconds for users are moments here."""
    monkeypatch.setattr(link, "LOGIN_SECONDS", 1.0)
    monkeypatch.setattr(link, "REFUSED_PAUSE", 0.1)
    monkeypatch.setattr(tyo_mq, "RENEWAL", 0.1)
    monkeypatch.setattr(tyo_mq, "LIMITED_PAUSE", 0.01)


async def test_nothing_is_said_before_the_login_is_accepted() -> None:
    broker = OddBroker()
    logged_in: list[str] = []
    broker.server.on("AUTHENTICATION", lambda id, _: logged_in.append(id))
    async with (
        serving(broker.app) as url,
        listening(url) as (_, _heard, states),
        talking(url) as nerve,
    ):
        nerve.nudge(nudge(), realm="main", names={"work3"})
        await until(lambda: len(logged_in) == 2, "both logins")
        answered: list[object] = []
        for id in logged_in:
            await broker.server.emit("HELLO", {}, to=id, callback=lambda *_: answered.append(1))
        await until(lambda: len(answered) == 2, "what was sent before to have come")
        assert (broker.frames, states, nerve.state) == ([], [], "degraded")
        for id in logged_in:
            await broker.welcome(id)
        await until(lambda: states == [True] and broker.of("PRODUCE"), "both to go on")
        assert nerve.state == "ok"
        assert broker.of("SUBSCRIBE")


async def test_a_broker_that_forgets_who_was_away_for_five_minutes_is_told_again() -> None:
    broker = ForgetfulBroker()
    async with serving(broker.app) as url, listening(url) as (_, heard, states):
        await until(lambda: states == [True], "the listener")
        await broker.hang_up()
        broker.now += 301
        await broker.say(nudge(1))
        await until(lambda: states == [True, False, True], "the listener to be back")
        await broker.say(nudge(2))
        await until(lambda: heard)
        assert heard == [nudge(2)]
        assert len(broker.of("SUBSCRIBE")) == 2


@pytest.mark.usefixtures("impatient")
async def test_a_subscription_that_is_lost_without_a_word_is_made_again() -> None:
    broker = ForgetfulBroker()
    async with serving(broker.app) as url, listening(url) as (_, heard, states):
        await until(lambda: states == [True], "the listener")
        broker.subscribed.clear()
        await until(lambda: broker.subscribed, "a new subscription")
        await broker.say(nudge())
        await until(lambda: heard == [nudge()])
        assert states == [True]
        assert broker.logins == 1


@pytest.mark.usefixtures("impatient")
async def test_a_broker_that_answers_heartbeats_alone_is_found_out_and_used_again() -> None:
    broker = OddBroker()
    answers = asyncio.Event()
    answers.set()

    async def ping(*_: object) -> str:
        await answers.wait()
        return '{"pong":"PONG"}'

    broker.server.on("PING", ping)
    async with serving(broker.app) as url, listening(url) as (listener, _, states), talking(url) as nerve:
        await until(lambda: states == [True] and nerve.state == "ok", "both links")
        answers.clear()
        nerve.nudge(nudge(), realm="main", names={"work3"})
        await until(lambda: listener.trouble == "the broker does not answer", "the listener to find out")
        await until(lambda: nerve.trouble == "the broker does not answer", "the speaker to find out")
        assert states[1] is False
        answers.set()
        await until(lambda: states[-1] and nerve.state == "ok", "both links again")
        await until(lambda: len(broker.of("PRODUCE")) > 1, "the nudge to be said again")


@pytest.mark.usefixtures("impatient")
async def test_a_login_that_is_never_answered_is_tried_until_it_is() -> None:
    broker = OddBroker()
    silent = True
    tries = []

    async def log_in(id: str, _: object) -> None:
        tries.append(id)
        if not silent:
            await broker.welcome(id)

    broker.server.on("AUTHENTICATION", log_in)
    async with serving(broker.app) as url, listening(url) as (listener, _, states), talking(url) as nerve:
        nerve.nudge(nudge(), realm="main", names={"work3"})
        await until(lambda: len(set(tries)) > 3, "a second try of both")
        assert listener.trouble == nerve.trouble == "the broker does not answer"
        assert (states, nerve.state) == ([], "degraded")
        silent = False
        await until(lambda: states == [True] and broker.of("PRODUCE"), "both links")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("code", "reason"),
    [(401, "Invalid authentication token"), (403, "Realm 'team-a' is closed"), (503, "Come back")],
)
async def test_a_refused_login_is_told_and_tried_until_it_is_accepted(code: int, reason: str) -> None:
    broker = OddBroker()
    refusing = True

    async def log_in(id: str, _: object) -> None:
        broker.logins += 1
        if refusing:
            await broker.server.emit("AUTH_FAIL", {"code": code, "message": reason}, to=id)
        else:
            await broker.welcome(id)

    broker.server.on("AUTHENTICATION", log_in)
    async with serving(broker.app) as url, listening(url) as (listener, _, states), talking(url) as nerve:
        nerve.nudge(nudge(), realm="main", names={"work3"})
        await until(lambda: listener.trouble == nerve.trouble == reason)
        await until(lambda: broker.logins > 3, "a second try of both")
        assert (states, nerve.state, broker.frames) == ([], "degraded", [])
        refusing = False
        await until(lambda: states == [True] and broker.of("PRODUCE"), "both links")


@asynccontextmanager
async def granting(broker: StingyBroker, allowance: int) -> AsyncIterator[None]:
    """So many messages more, every now and then."""

    async def grant() -> None:
        while True:
            broker.allowance = allowance
            await asyncio.sleep(0.02)

    task = asyncio.create_task(grant())
    try:
        yield
    finally:
        task.cancel()


@pytest.mark.usefixtures("impatient")
async def test_a_broker_that_drops_what_comes_too_fast_is_told_everything_in_time() -> None:
    broker = StingyBroker(allowance=30)
    rooms = [f"room{number}" for number in range(150)]
    async with serving(broker.app) as url, talking(url) as nerve:
        await until(lambda: nerve.state == "ok")
        for number, room in enumerate(rooms):
            nerve.nudge(nudge(number, room), realm="main", names={"work3"})
        async with granting(broker, 30):
            await until(lambda: {heard.conv for heard in broker.heard} == set(rooms), "all of them")
            await until(lambda: nerve.state == "ok")
            assert broker.told


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    "script",
    [
        says(),
        says("0"),
        says("0{}"),
        says("0[]"),
        says('0{"sid":1,"upgrades":null,"pingInterval":"soon","pingTimeout":null}'),
        says("2"),
        says("nonsense"),
        says(""),
        says(OPEN),
        says(OPEN, "44{}"),
        says(OPEN, '44{"message":"full"}'),
        says(OPEN, "40nonsense"),
        says(OPEN, CONNECTED),
        says(OPEN, CONNECTED, "41"),
        says(OPEN, CONNECTED, "1"),
        says(OPEN, CONNECTED, '42["AUTH_OK"]'),
        says(OPEN, CONNECTED, '42["AUTH_OK","yes"]'),
        says(OPEN, CONNECTED, '42["ERROR",{"message":"no","code":-3}]'),
        says(OPEN, CONNECTED, AUTH_OK),
        says(OPEN, CONNECTED, AUTH_OK, "1"),
    ],
)
async def test_a_broker_that_ends_the_line_in_the_middle_is_dialled_again(script: Script) -> None:
    async with (
        scripted(script, script, behaves(nudge())) as (url, dialled),
        listening(url) as (listener, heard, states),
    ):
        await until(lambda: listener.trouble, "the trouble to be told")
        assert states == []
        await until(lambda: heard == [nudge()] and states == [True], "the nudge")
        assert (states[-1], listener.trouble, len(dialled)) == (True, None, 3)


GIANT = f'42["CONSUME-agent-comms-msg",{{"from":"agent-comms","message":"{"x" * 5_000_000}"}}]'


@pytest.mark.parametrize("stage", ["instead of a greeting", "before the login", "after the subscription"])
async def test_a_giant_frame_costs_the_line_and_no_more(stage: str) -> None:
    giants = {
        "instead of a greeting": says(GIANT),
        "before the login": says(OPEN, CONNECTED, GIANT),
        "after the subscription": behaves(nudge(1), GIANT),
    }
    async with (
        scripted(giants[stage], behaves(nudge(2))) as (url, dialled),
        listening(url) as (_, heard, states),
    ):
        await until(lambda: heard and states[-1:] == [True], "a nudge")
        assert heard == [nudge(2)]
        assert len(dialled) == 2


RUBBISH: list[str | bytes] = [
    "4",
    "42",
    "42[",
    "42[]",
    "42{}",
    "42null",
    "42[5]",
    "42[[1],2]",
    '42["connect"]',
    '42["AUTH_OK"]',
    '42["CONSUME-agent-comms-msg"]',
    '42["CONSUME-agent-comms-msg",' + "[" * 100_000,
    '42["CONSUME-agent-comms-msg",' + "[" * 100_000 + "]" * 100_000 + "]",
    '42["CONSUME-agent-comms-msg",NaN]',
    '42["CONSUME-agent-comms-msg","' + "\\u0000" * 1000 + '"]',
    f'42["{"E" * 500_000}",{{}}]',
    "43",
    "43[1]",
    "4399999999999999999999[1]",
    "49",
    '451-["CONSUME-agent-comms-msg",{"_placeholder":true,"num":0}]',
    '459999999-["CONSUME-agent-comms-msg",{"_placeholder":true,"num":0}]',
    '460-["x"]',
    "40/elsewhere,",
    "41/elsewhere,",
    "3",
    "5",
    "6",
    b"",
    b"4",
    b"\x00\xff" * 1000,
]


@pytest.mark.parametrize("rubbish", RUBBISH, ids=lambda frame: repr(frame[:24]))
async def test_rubbish_on_the_line_keeps_no_nudge_away(rubbish: str | bytes) -> None:
    async with (
        scripted(behaves(nudge(), rubbish, rubbish, rubbish)) as (url, dialled),
        listening(url) as (listener, heard, states),
    ):
        await until(lambda: heard, "the nudge")
        await until(lambda: states == [True])
        assert set(heard) == {nudge()}
        assert (len(dialled), listener.trouble) == (1, None)


async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while await reader.read(65536):
            pass
    writer.close()


async def talk_nonsense(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"220 mail.example ready\r\n")
    writer.close()


async def be_another_program(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    writer.close()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("stranger", [hang_up, say_nothing, talk_nonsense, be_another_program])
async def test_a_port_where_no_broker_is_yet_becomes_a_link_when_it_is(
    stranger: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    async with listening(url) as (listener, heard, states), talking(url) as nerve:
        nerve.nudge(nudge(), realm="main", names={"work3"})
        async with await asyncio.start_server(stranger, "127.0.0.1", port):
            await until(lambda: listener.trouble and nerve.trouble, "the trouble to be told")
            assert (states, nerve.state) == ([], "degraded")
        async with served(port=port):
            await until(lambda: states == [True] and nerve.state == "ok", "both links")
            nerve.nudge(nudge(2), realm="main", names={"work3"})
            await until(lambda: nudge(2) in heard, "a nudge")


def test_links_that_were_lost_together_do_not_come_back_together() -> None:
    for failures in range(12):
        pauses = [link.pause(link.LONGEST_PAUSE, failures) for _ in range(200)]
        longest = min(link.LONGEST_PAUSE, link.FIRST_PAUSE * 2**failures)
        assert longest / 2 <= min(pauses) <= max(pauses) <= longest
        assert max(pauses) - min(pauses) > longest / 4
    refused = [link.pause(link.REFUSED_PAUSE, failures) for failures in range(200)]
    assert 15 <= min(refused) <= max(refused) <= 30
