"""The embedded nerve behind a real uvicorn: stock socket.io clients, and sockets that keep no rule."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import socket
import time
from typing import Any

import aiohttp
import pytest
import websocket

from broker_bridge.connection import Connection
from broker_bridge.limits import Limits
from broker_bridge.nerve import Admission, Credential
from broker_bridge.nudge import DELIVERED, Nudge
from tests.contract.nerves import Door, Ear, ear, served, until


def nudge(conv: str = "api") -> Nudge:
    return Nudge.now(conv=conv, sender="work3-agent#1")


@pytest.mark.parametrize("polling", [False, True], ids=["websocket", "polling and upgrade"])
async def test_a_stock_client_hears_a_nudge(polling: bool) -> None:
    async with served() as (broker, url), ear(url, "tok-devmac", polling=polling) as it:
        said = nudge()
        broker.nudge(said, realm="main", names={"devmac"})
        await until(lambda: it.nudges)
        message = {"conv": "api", "from": "work3-agent#1", "at": said.at}
        assert it.consumed == [(DELIVERED, {"event": "msg", "message": message, "from": "agent-comms"})]
        assert it.events("AUTH_OK") == [{"realm": "main", "role": "consumer", "server": "readyroom"}]


async def test_a_client_that_never_upgrades_hears_a_nudge() -> None:
    async with served() as (broker, url):
        it = Ear()
        await it.client.connect(url, transports=["polling"], wait_timeout=60)
        await it.log_in("tok-devmac", "ear")
        broker.nudge(nudge(), realm="main", names={"devmac"})
        await until(lambda: it.nudges)
        await it.client.disconnect()


async def test_strangers_twins_other_boxes_and_other_realms_hear_nothing() -> None:
    async with (
        served() as (broker, url),
        ear(url, "tok-devmac", "ear") as it,
        ear(url, "tok-zoo", "ear") as twin,
        ear(url, "tok-elsewhere", "ear") as far,
        ear(url, None) as stranger,
        ear(url, "nope") as wrong,
    ):
        deaf = {"twin": twin, "far": far, "stranger": stranger, "wrong": wrong}
        for one in deaf.values():
            await one.send("CONSUMER", {"name": "ear"})
            await one.subscribe()
            await one.subscribe(producer="TYO-MQ-ALL", event="#", mode="topic")
            await one.subscribe(scope="all", group="g")
        await twin.barrier()
        await far.barrier()
        await until(lambda: len(stranger.events("AUTH_FAIL")) == 4)
        for number in range(5):
            broker.nudge(nudge(f"room{number}"), realm="main", names={"devmac"})
        await until(lambda: len(it.nudges) == 5)
        await twin.barrier()
        await far.barrier()
        assert {name: one.consumed for name, one in deaf.items()} == {name: [] for name in deaf}


async def test_everything_else_goes_to_the_record_and_cookies_mean_nothing() -> None:
    async with served() as (_, url), aiohttp.ClientSession() as http:
        async with http.get(f"{url}/v1/whoami") as reply:
            assert await reply.text() == "the record"
        origin = {"Origin": "https://elsewhere.example"}
        async with http.get(f"{url}/socket.io/?EIO=4&transport=polling", headers=origin) as reply:
            assert reply.status == 200
            assert "Access-Control-Allow-Credentials" not in reply.headers
            assert "Set-Cookie" not in reply.headers


async def test_whoever_is_not_admitted_in_time_is_hung_up_on() -> None:
    async with (
        served(limits=Limits(grace=0.4)) as (broker, url),
        ear(url, "tok-devmac") as it,
        ear(url, None) as stranger,
        ear(url, None, polling=True) as poller,
        aiohttp.ClientSession() as http,
        http.ws_connect(f"{url}/socket.io/?EIO=4&transport=websocket") as silent,
    ):
        assert (await silent.receive(timeout=60)).data.startswith("0{")
        await until(lambda: not stranger.client.connected and not poller.client.connected, "the hang-up")
        while not silent.closed:
            await silent.receive(timeout=60)
        assert it.client.connected
        assert broker.connections == 1


async def test_a_client_that_stays_after_the_hang_up_is_closed_on() -> None:
    async with (
        served() as (broker, url),
        aiohttp.ClientSession() as http,
        http.ws_connect(f"{url}/socket.io/?EIO=4&transport=websocket") as stubborn,
    ):
        await stubborn.send_str("40")
        await stubborn.send_str('42["AUTHENTICATION",{"token":"tok-zoo"}]')
        await until(lambda: broker.connections == 1)
        assert broker.hang_up(lambda a: a.name == "zoo") == 1
        while not stubborn.closed:
            await stubborn.receive(timeout=60)


async def test_revoking_a_token_closes_its_links_at_once_and_no_others() -> None:
    async with (
        served() as (broker, url),
        ear(url, "tok-work3", "a") as revoked,
        ear(url, "tok-work3", "b", polling=True) as revoked_too,
        ear(url, "tok-work3-next", "c") as rotated,
        ear(url, "tok-devmac") as other,
    ):
        assert broker.hang_up(lambda admission: admission.token_id == "t1") == 2
        broker.nudge(nudge(), realm="main", names={"work3", "devmac"})
        await until(lambda: rotated.nudges and other.nudges)
        await until(lambda: not revoked.client.connected and not revoked_too.client.connected)
        assert revoked.nudges == revoked_too.nudges == []
        assert broker.connections == 2


class SlowDoor(Door):
    """Has looked a token up long before it answers."""

    def __init__(self) -> None:
        super().__init__()
        self.looked_up, self.go_on = asyncio.Event(), asyncio.Event()

    async def admit(self, credential: Credential) -> Admission | None:
        admission = await super().admit(credential)
        self.looked_up.set()
        await self.go_on.wait()
        return admission


async def test_a_token_that_is_revoked_while_it_is_looked_up_is_not_admitted() -> None:
    door = SlowDoor()
    async with served(door=door) as (broker, url), ear(url, None) as it:
        await it.send("AUTHENTICATION", {"token": "tok-devmac"})
        await door.looked_up.wait()
        del door.admissions["tok-devmac"]
        broker.hang_up(lambda a: a.name == "devmac")
        door.go_on.set()
        await until(lambda: it.heard)
        assert it.events("AUTH_FAIL") == [{"code": 401, "message": "This token is not valid here"}]


@pytest.mark.parametrize("polling", [False, True], ids=["websocket", "polling"])
async def test_everything_sent_at_once_is_done_after_the_login(polling: bool) -> None:
    door = SlowDoor()
    async with served(door=door) as (broker, url), ear(url, None, polling=polling) as it:
        await it.send("AUTHENTICATION", {"token": "tok-devmac"})
        await it.send("CONSUMER", {"name": "ear"})
        await it.subscribe()
        barrier = asyncio.create_task(it.barrier())
        broker.nudge(nudge("too early"), realm="main", names={"devmac"})
        door.go_on.set()
        await barrier
        broker.nudge(nudge("heard"), realm="main", names={"devmac"})
        await until(lambda: it.nudges)
        assert [event for event, _ in it.heard] == ["AUTH_OK", DELIVERED]
        assert [said.conv for said in it.nudges] == ["heard"]


async def test_a_record_that_cannot_be_asked_is_not_a_wrong_token() -> None:
    class Down(Door):
        async def admit(self, credential: Credential) -> Admission | None:
            raise ConnectionError

    async with served(door=Down()) as (_, url), ear(url, None) as it:
        await it.send("AUTHENTICATION", {"token": "tok-devmac"})
        await until(lambda: not it.client.connected)
        assert it.events("AUTH_FAIL")[0]["code"] == 503


async def test_the_newest_link_of_a_box_takes_its_name_over() -> None:
    async with (
        served() as (broker, url),
        ear(url, "tok-work3") as half_open,
        ear(url, "tok-work3") as back,
    ):
        await until(lambda: not half_open.client.connected)
        assert half_open.events("ERROR")[0]["code"] == -3
        broker.nudge(nudge(), realm="main", names={"work3"})
        await until(lambda: back.nudges)


RUBBISH = [
    "",
    "9",
    "4",
    "42",
    "42[",
    "42[]",
    "42{}",
    "42null",
    "42[5]",
    "42[null,1]",
    "42[[1],2]",
    '42["PRODUCE"]',
    '42["PRODUCE",null]',
    '42["SUBSCRIBE",' + "[" * 5000 + "]" * 5000 + "]",
    '42["PING",{"a":NaN}]',
    '42["connect",{}]',
    '42["disconnect","client disconnect"]',
    '42["__disconnect_final"]',
    "44{}",
    "41",
    "40/nowhere,",
    "43[1]",
    "4399999999999999999999[1]",
    '451-["PRODUCE",{"_placeholder":true,"num":0}]',
    '459999999-["PRODUCE",{"_placeholder":true,"num":0}]',
    "42" + "9" * 200 + '["PING",{}]',
    "x" * 100_000,
    "\0\1\2",
]


async def test_frames_that_keep_no_rule_disturb_nobody() -> None:
    async with (
        served() as (broker, url),
        ear(url, "tok-devmac") as it,
        aiohttp.ClientSession() as http,
    ):
        for login in ("40", '40{"token":"tok-devmac"}', None):
            for rubbish, binary in itertools.product(RUBBISH, (False, True)):
                async with http.ws_connect(f"{url}/socket.io/?EIO=4&transport=websocket") as link:
                    if login is not None:
                        await link.send_str(login)
                        await link.send_str('42["AUTHENTICATION",{"token":"tok-zoo"}]')
                    await (link.send_bytes(rubbish.encode()) if binary else link.send_str(rubbish))
        async with http.post(f"{url}/socket.io/?EIO=4&transport=polling&sid=nobody", data="4") as reply:
            assert reply.status == 400
        broker.nudge(nudge(), realm="main", names={"devmac"})
        await until(lambda: it.nudges)
        await until(lambda: broker.connections == 1, "the others to be gone")
        await it.barrier()


@pytest.mark.long
@pytest.mark.parametrize("nonsense", ["2", "2probe", "3\x1e6", "0{}", "5\x1e7", "2" + "\x1e3" * 20])
async def test_a_poll_that_makes_no_sense_is_answered_and_over(nonsense: str) -> None:
    async with served() as (broker, url), aiohttp.ClientSession() as http:
        address = f"{url}/socket.io/?EIO=4&transport=polling"
        async with http.get(address) as opened:
            sid = json.loads((await opened.text())[1:])["sid"]
        for body in ("40", '42["AUTHENTICATION",{"token":"tok-zoo"}]'):
            async with http.post(f"{address}&sid={sid}", data=body) as reply:
                assert reply.status == 200
        await until(lambda: broker.connections == 1)
        async with asyncio.timeout(60), http.post(f"{address}&sid={sid}", data=nonsense) as reply:
            assert reply.status in (200, 400, 500)
        async with asyncio.timeout(60), http.post(f"{address}&sid={sid}", data="1") as reply:
            assert reply.status in (200, 400)
        await until(lambda: broker.connections == 0, "the connection to be over")
        await until(lambda: not broker._sockets.server.eio.sockets, "nothing to be left")


async def test_a_client_cannot_make_the_nerve_forget_it() -> None:
    async with served() as (broker, url), ear(url, "tok-devmac") as it:
        await it.send("disconnect", "client disconnect")
        await it.send("connect", {})
        await it.barrier()
        broker.nudge(nudge(), realm="main", names={"devmac"})
        await until(lambda: it.nudges)


async def test_messages_that_others_could_not_read_are_not_passed_on() -> None:
    async with (
        served() as (_, url),
        ear(url, "tok-tool") as tool,
        ear(url, "tok-devmac") as it,
        aiohttp.ClientSession() as http,
        http.ws_connect(f"{url}/socket.io/?EIO=4&transport=websocket") as raw,
    ):
        await it.subscribe(producer="build", event="done")
        await it.barrier()
        await raw.send_str("40")
        await raw.send_str('42["AUTHENTICATION",{"token":"tok-tool"}]')
        for number in ("NaN", "1e999", "Infinity"):
            frame = f'"event":"done","from":"build","message":{number}'
            await raw.send_str(f'42["PRODUCE",{{{frame}}}]')
        await raw.send_str('421["PING",{"a":1e999}]')
        await raw.send_str('422["PING",{}]')
        while (answer := (await raw.receive(timeout=60)).data)[:3] != "432":
            assert "Infinity" not in answer
        await tool.send("PRODUCE", {"event": "done", "from": "build", "message": "fine"})
        await until(lambda: it.consumed)
        assert [payload["message"] for _, payload in it.consumed] == ["fine"]


@pytest.mark.parametrize("limits", [Limits(outgoing=40), Limits(outgoing_size=5_000_000)])
async def test_a_reader_that_stands_still_is_dropped_and_delays_nobody(limits: Limits) -> None:
    async with (
        served(limits=limits) as (broker, url),
        ear(url, "tok-tool") as tool,
        ear(url, "tok-devmac") as it,
    ):
        slow = await asyncio.to_thread(_stand_still, url)
        await until(lambda: broker.connections == 3)
        await it.subscribe(producer="build", event="tick")
        await it.barrier()
        for _ in range(150):
            await tool.send("PRODUCE", {"event": "log", "from": "build", "message": "x" * 200_000})
            await tool.barrier()
            if broker.connections == 2:
                break
        assert broker.connections == 2
        began = time.perf_counter()
        broker.nudge(nudge(), realm="main", names={"devmac"})
        await until(lambda: it.nudges)
        assert time.perf_counter() - began < 10
        slow.close()


def _stand_still(url: str) -> Any:
    """A link that subscribes to the tool's log and never reads again."""
    link = websocket.create_connection(
        f"{url.replace('http', 'ws')}/socket.io/?EIO=4&transport=websocket",
        sockopt=[(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)],
        timeout=60,
    )
    for frame in (
        "40",
        '42["AUTHENTICATION",{"token":"tok-zoo"}]',
        '42["SUBSCRIBE",{"event":"log","producer":"build","consumer":"slow"}]',
    ):
        link.send(frame)
    return link


async def test_a_flood_harms_nobody_else() -> None:
    async with served() as (broker, url), ear(url, "tok-zoo") as flood, ear(url, "tok-devmac") as it:
        for _ in range(1500):
            await flood.send("SUBSCRIBE", {"event": "e", "producer": "p"})
        began = time.perf_counter()
        broker.nudge(nudge(), realm="main", names={"devmac"})
        await until(lambda: it.nudges)
        assert time.perf_counter() - began < 10
        await until(lambda: flood.events("RATE_LIMITED"))
        assert flood.events("RATE_LIMITED")[0] == {
            "code": 429,
            "reason": "messages_per_second",
            "retry_after": 1,
        }


@pytest.mark.long
async def test_nothing_is_left_after_a_hundred_reconnects() -> None:
    async with served() as (broker, url), ear(url, "tok-devmac") as it:
        for number in range(100):
            async with ear(url, "tok-work3", f"ear{number % 3}", polling=number % 10 == 0):
                pass
        await until(lambda: broker.connections == 1)
        await until(lambda: _count(Connection) == 1, "the connections to be let go of")
        await until(lambda: len(broker._sockets.server.eio.sockets) == 1)
        broker.nudge(nudge(), realm="main", names={"devmac"})
        await until(lambda: it.nudges)


def _count(kind: type) -> int:
    gc.collect()
    return sum(type(thing) is kind for thing in gc.get_objects())


async def test_closing_tells_everybody() -> None:
    async with (
        served() as (broker, url),
        ear(url, "tok-devmac") as it,
        ear(url, "tok-zoo", polling=True) as two,
    ):
        began = time.perf_counter()
        await broker.close()
        assert time.perf_counter() - began < 10
        await until(lambda: not it.client.connected and not two.client.connected)
