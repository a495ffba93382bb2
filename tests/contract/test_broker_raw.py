"""What no stock client sends, over both transports: it steers nobody else's link and takes no memory."""

from __future__ import annotations

import asyncio
import errno
import gc
import io
import json
import socket
import struct
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any

import aiohttp
import psutil
import pytest
import structlog
import uvicorn
import websocket

from broker_bridge import sockets
from broker_bridge.chunks import CHUNK
from broker_bridge.limits import Limits
from broker_bridge.nerve import Admission, Credential
from broker_bridge.sockets import FRAME
from tests.contract.nerves import Door, Ear, ear, free_port, lone_broker, served, until

pytestmark = pytest.mark.long

both_transports = pytest.mark.parametrize("polling", [False, True], ids=["websocket", "polling"])


class Raw:
    """A link that sends frames as they are."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self.http, self.url = http, f"{url}/socket.io/?EIO=4&transport="
        self.frames: list[str] = []

    async def open(self) -> None:
        """Connect."""

    async def send(self, *frames: str) -> None:
        """Send."""

    async def read(self) -> None:
        """Wait for frames."""

    async def answer(self, begin: str) -> str:
        """Wait for the first frame that begins so."""
        async with asyncio.timeout(60):
            while not any(frame.startswith(begin) for frame in self.frames):
                await self.read()
        return next(frame for frame in self.frames if frame.startswith(begin))


class Pushing(Raw):
    async def open(self) -> None:
        self.link = await self.http.ws_connect(f"{self.url}websocket")

    async def send(self, *frames: str) -> None:
        for frame in frames:
            await self.link.send_str(frame)

    async def read(self) -> None:
        self.frames.append(await self.link.receive_str(timeout=60))


class Polling(Raw):
    async def open(self) -> None:
        async with self.http.get(f"{self.url}polling") as reply:
            self.address = f"{self.url}polling&sid={json.loads((await reply.text())[1:])['sid']}"

    async def send(self, *frames: str) -> None:
        at_once = 15 if max(map(len, frames)) < 60_000 else 1
        for first in range(0, len(frames), at_once):
            body = "\x1e".join(frames[first : first + at_once]).encode()
            async with self.http.post(self.address, data=io.BytesIO(body)) as reply:
                await reply.read()

    async def read(self) -> None:
        async with self.http.get(self.address) as reply:
            self.frames += (await reply.text()).split("\x1e")


@asynccontextmanager
async def raw(url: str, *, polling: bool, token: str | None = None) -> AsyncIterator[Raw]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(20)) as http:
        link: Raw = Polling(http, url) if polling else Pushing(http, url)
        await link.open()
        await link.send("40")
        if token is not None:
            await link.send(f'42["AUTHENTICATION",{{"token":"{token}"}}]')
            await link.answer('42["AUTH_OK"')
        yield link


@both_transports
@pytest.mark.parametrize("name", ["*", "connect", "disconnect", "connect_error", "frame", "__init__"])
async def test_no_name_of_an_event_reaches_anothers_link(name: str, polling: bool) -> None:
    async with (
        served() as (broker, url),
        ear(url, "tok-devmac") as victim,
        raw(url, polling=polling) as stranger,
    ):
        (sid,) = broker._protocol.admissions
        await stranger.send(*[f"42{json.dumps([name, sid, 'QUIT', sid])}"] * 300)
        await stranger.answer('42["RATE_LIMITED"')
        await victim.barrier()
        assert victim.events("RATE_LIMITED", "AUTH_FAIL", "ERROR") == []
        assert [*broker._protocol.admissions] == [sid]


@both_transports
async def test_a_link_has_one_namespace_and_one_connect(polling: bool) -> None:
    async with served() as (_, url), raw(url, polling=polling) as stranger:
        await stranger.send("40/elsewhere,", "40", '42/elsewhere,["SUBSCRIBE",{}]', "40{}", "5")
        await stranger.answer("6")
        assert [frame[:2] for frame in stranger.frames if frame.startswith("4")] == ["40"]


@both_transports
@pytest.mark.parametrize(
    ("token", "frame"),
    [
        (None, f"40/{'a' * 900_000},"),
        (None, "5"),
        ("tok-tool", f'420["PING",{{"echo":"{"a" * 900_000}"}}]'),
    ],
    ids=["namespaces", "upgrades", "acknowledgements"],
)
@pytest.mark.filterwarnings("ignore:Unclosed connection:ResourceWarning")  # a POST that is cut off
async def test_whoever_never_reads_takes_no_memory(token: str | None, frame: str, polling: bool) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with lone_broker(port) as process:
        await _until_reachable(url)
        before = psutil.Process(process.pid).memory_info().rss
        async with raw(url, polling=polling, token=token) as link:
            with suppress(aiohttp.ClientError, ConnectionError):
                await link.send(*[frame] * (100_000 if frame == "5" else 150))
            grown = psutil.Process(process.pid).memory_info().rss - before
        gc.collect()
        assert grown < 150 * 1024 * 1024


@pytest.mark.parametrize("frame", ["5", '420["PING",{"echo":"' + "a" * 9000 + '"}]'])
async def test_what_the_library_sends_counts_against_a_reader_who_is_behind(frame: str) -> None:
    limits = Limits(outgoing=50, outgoing_size=400_000, grace=1)
    async with served(limits=limits) as (broker, url), raw(url, polling=True, token="tok-zoo") as link:
        await link.send(*[frame] * 150)
        await until(lambda: broker.connections == 0, "the reader to be dropped")


async def test_a_reader_who_stands_still_loses_its_tcp_link_when_it_is_hung_up_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sockets, "CLOSING_SECONDS", 0.3)
    async with served() as (broker, url), ear(url, "tok-tool") as tool:
        link = await asyncio.to_thread(_standing_still, url)
        await until(lambda: broker.connections == 2)
        for _ in range(60):
            await tool.send("PRODUCE", {"event": "log", "from": "build", "message": "x" * 200_000})
            await tool.barrier()
        assert broker.hang_up(lambda a: a.name == "zoo") == 1
        await until(lambda: not _stands(link), "the end of the TCP link")
        link.close()


async def test_a_poll_whose_answer_nobody_reads_loses_its_tcp_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker_bridge.guard.FETCH_SECONDS", 0.3)
    async with (
        served() as (_, url),
        ear(url, "tok-tool") as tool,
        raw(url, polling=True, token="tok-zoo") as link,
    ):
        assert isinstance(link, Polling)
        await link.send('42["SUBSCRIBE",{"event":"log","producer":"build","consumer":"slow"}]')
        for _ in range(60):
            await tool.send("PRODUCE", {"event": "log", "from": "build", "message": "x" * 200_000})
            await tool.barrier()
        poll = socket.socket()
        poll.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        poll.connect(("127.0.0.1", int(url.rsplit(":", 1)[1])))
        path = link.address[len(url) :]
        poll.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await until(lambda: not _takes(poll), "the end of the TCP link")
        poll.close()


@pytest.mark.parametrize("depth", [600, 900, 951, 960, 990, 5000, 50_000])
@pytest.mark.parametrize("as_text", [False, True], ids=["object", "text"])
@both_transports
async def test_a_message_that_is_nested_too_deep_is_an_error(
    depth: int, as_text: bool, polling: bool
) -> None:
    body = f'{{"event":"done","from":"build","message":{"[" * depth}{"]" * depth}}}'
    payload = json.dumps(body) if as_text else body
    async with served() as (_, url), raw(url, polling=polling, token="tok-tool") as link:
        await link.send(f'42["PRODUCE",{payload}]')
        assert json.loads((await link.answer('42["ERROR"'))[2:])[1]["code"] == -2


@pytest.mark.parametrize("as_text", [False, True], ids=["object", "text"])
@both_transports
async def test_a_message_of_too_many_values_is_an_error(as_text: bool, polling: bool) -> None:
    body = f'{{"event":"done","from":"build","message":[{"1," * 50_000}1]}}'
    async with served() as (_, url), raw(url, polling=polling, token="tok-tool") as link:
        await link.send(f'42["PRODUCE",{json.dumps(body) if as_text else body}]')
        assert "50,000 values" in await link.answer('42["ERROR"')


async def test_a_message_that_is_nested_a_little_is_heard() -> None:
    async with served() as (_, url), ear(url, "tok-devmac") as it, ear(url, "tok-tool") as tool:
        await it.subscribe(producer="build", event="done")
        await it.barrier()
        message: list[Any] = []
        for _ in range(450):
            message = [message]
        await tool.send("PRODUCE", {"event": "done", "from": "build", "message": message})
        await until(lambda: it.consumed)
        assert it.consumed[0][1]["message"] == message


@both_transports
@pytest.mark.parametrize(
    "frames",
    [
        [f'42["HELLO","{"x" * 20_000}"]'],
        [f'42["HELLO","{"x" * 15_000}"]'] * 5,
        [f'42["HELLO",[{"1," * 5000}1]]'],
    ],
    ids=["one too large", "too much in all", "too many values"],
)
async def test_a_stranger_who_sends_too_much_is_ended_before_it_is_read(
    frames: list[str], polling: bool
) -> None:
    async with served() as (broker, url), raw(url, polling=polling) as link:
        handled: list[object] = []
        broker._sockets.server.on(FRAME, lambda id, event, *_: handled.append(event))
        with suppress(aiohttp.ClientError, ConnectionError):
            for frame in frames:
                await link.send(frame)
        await until(lambda: not broker._sockets.server.eio.sockets, "the end of the link")
        assert len(handled) == len(frames) - 1


async def test_a_large_frame_behind_a_login_waits_for_it() -> None:
    async with served(door=Hesitating()) as (_, url), ear(url, "tok-tool2") as tool:
        await tool.subscribe(producer="build", event="done")
        await tool.barrier()
        async with raw(url, polling=False) as link:
            await link.send(
                '42["AUTHENTICATION",{"token":"tok-tool"}]',
                f'42["PRODUCE",{{"event":"done","from":"build","message":"{"x" * 50_000}"}}]',
            )
            await until(lambda: tool.consumed)


class Hesitating(Door):
    """A record that takes its time with one token."""

    async def admit(self, credential: Credential) -> Admission | None:
        if credential.value == "tok-tool":
            await asyncio.sleep(0.5)
        return await super().admit(credential)


@pytest.mark.parametrize("polling", [False, True], ids=["websocket", "polling"])
async def test_of_too_many_strangers_the_oldest_go(polling: bool) -> None:
    async with served(limits=Limits(strangers=3)) as (broker, url), AsyncExitStack() as links:
        known = await links.enter_async_context(raw(url, polling=polling, token="tok-zoo"))
        for _ in range(5):
            await links.enter_async_context(raw(url, polling=polling))
        await until(lambda: len(broker._sockets.server.eio.sockets) == 4)
        await known.send('420["PING",{}]')
        await known.answer("430")


@both_transports
async def test_a_stranger_who_sends_nothing_but_heartbeats_is_ended(polling: bool) -> None:
    async with served() as (broker, url), raw(url, polling=polling) as link:
        engine = broker._sockets.server.eio
        with suppress(aiohttp.ClientError, ConnectionError):
            for _ in range(520):
                await link.send("3")
        await until(lambda: not engine.sockets, "the end of the link", seconds=5)


async def test_a_link_that_is_lost_while_its_frame_waits_is_over() -> None:
    async with served(limits=Limits(bytes_per_second=1000, bytes_burst=1000)) as (broker, url):
        link = await asyncio.to_thread(_standing_still, url)
        await until(lambda: broker.connections, "the login")
        await asyncio.to_thread(link.send, f'42["PING","{"x" * 60_000}"]')
        await until(lambda: broker._sockets.server.eio._at_work, "the frame")
        assert link.sock is not None
        link.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        link.sock.close()
        await until(lambda: not broker.connections, "the end of the link")


async def test_the_last_frame_before_a_farewell_is_heard() -> None:
    async with served() as (_, url), ear(url, "tok-tool2") as tool:
        await tool.subscribe(producer="build", event="done")
        await tool.barrier()
        async with raw(url, polling=False, token="tok-tool") as link:
            frame = websocket.ABNF.create_frame(
                '42["PRODUCE",{"event":"done","from":"build","message":1}]', websocket.ABNF.OPCODE_TEXT
            )
            farewell = websocket.ABNF.create_frame(struct.pack("!H", 1000), websocket.ABNF.OPCODE_CLOSE)
            assert isinstance(link, Pushing)
            link.link._writer.transport.write(frame.format() + farewell.format())
            await until(lambda: tool.consumed)


async def test_a_box_in_debt_is_answered_over_another_link() -> None:
    limits = Limits(bytes_per_second=1000, bytes_burst=1000, patience=0.2)
    async with (
        served(limits=limits) as (broker, url),
        raw(url, polling=False, token="tok-work3") as deep,
        raw(url, polling=False, token="tok-work3") as fresh,
    ):
        await deep.send(f'42["PING","{"x" * 60_000}"]')
        await until(lambda: broker._sockets.server.eio._at_work, "the frame")
        await fresh.send('420["PING",{}]')
        await asyncio.wait_for(fresh.answer("430"), 5)


@both_transports
async def test_a_stranger_too_many_beside_logins_is_refused_and_leaves_nothing(polling: bool) -> None:
    limits = Limits(strangers=1)
    async with served(limits=limits, door=Hesitating()) as (broker, url), raw(url, polling=False) as link:
        engine = broker._sockets.server.eio
        await link.answer("40")
        await link.send('42["AUTHENTICATION",{"token":"tok-tool"}]')
        await until(lambda: engine._at_work, "the login")
        if polling:
            async with link.http.get(f"{link.url}polling") as reply:
                assert reply.status == 401
        else:
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await link.http.ws_connect(f"{link.url}websocket")
        await link.answer('42["AUTH_OK"')
        kept = (engine.sockets, engine.wires, engine.allowances._links, broker._sockets.server.environ)
        assert [len(each) for each in kept] == [1] * 4


async def test_nothing_is_compressed() -> None:
    async with served() as (_, url), aiohttp.ClientSession() as http:
        address = f"{url}/socket.io/?EIO=4&transport=websocket"
        async with http.ws_connect(address, compress=15) as link:
            assert not link.compress


@both_transports
async def test_whoever_sends_more_than_its_share_is_read_more_slowly_and_loses_nothing(polling: bool) -> None:
    limits = Limits(bytes_per_second=400_000, bytes_burst=100_000)
    async with (
        served(limits=limits) as (_, url),
        ear(url, "tok-tool2") as other,
        raw(url, polling=polling, token="tok-tool") as link,
    ):
        await other.subscribe(producer="build", event="done")
        await other.barrier()
        begun = time.monotonic()
        for number in range(5):
            message = f'{{"event":"done","from":"build","message":"{number}{"x" * 99_900}"}}'
            await link.send(f'42["PRODUCE",{message}]')
            await other.barrier()
        await until(lambda: len(other.consumed) == 5)
        assert time.monotonic() - begun > 0.9
        assert [envelope["message"][0] for _, envelope in other.consumed] == [*"01234"]


async def test_a_link_that_is_read_slowly_outlives_uvicorns_keepalive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configure: Any = uvicorn.Config.__init__
    quick = tuple(0.2 if value == 20.0 else value for value in configure.__defaults__)
    assert quick.count(0.2) == 2
    monkeypatch.setattr(configure, "__defaults__", quick)
    limits = Limits(bytes_per_second=100_000, bytes_burst=100_000)
    async with served(limits=limits) as (_, url), raw(url, polling=False, token="tok-tool") as link:
        for number in range(3):
            await link.send(f'42{number}["PING",{{"echo":"{"x" * 99_000}"}}]')
        await link.answer("432")


@both_transports
async def test_a_piece_in_any_script_fits_into_a_frame(polling: bool) -> None:
    text = json.dumps({"event": "done", "from": "build", "message": "\u4e2d" * 300_000}, ensure_ascii=False)
    async with (
        served() as (_, url),
        ear(url, "tok-tool2") as other,
        raw(url, polling=polling, token="tok-tool") as link,
    ):
        await other.subscribe(producer="build", event="done")
        await other.barrier()
        pieces = [text[start : start + CHUNK] for start in range(0, len(text), CHUNK)]
        for index, data in enumerate(pieces):
            piece = {"transferId": "t", "index": index, "total": len(pieces), "data": data}
            await link.send(f"42{json.dumps(['PRODUCE_CHUNK', piece])}")
        await until(lambda: other.events("CONSUME_CHUNK"))


@pytest.mark.parametrize("body", ["zzz", "9", "\x1e" * 5, "2\x1e" * 1001, ""])
async def test_a_post_that_holds_no_packets_ends_its_link(body: str) -> None:
    async with served() as (broker, url), raw(url, polling=True) as link:
        assert isinstance(link, Polling)
        async with link.http.post(link.address, data=body) as reply:
            assert reply.status == 400
        await until(lambda: not broker._sockets.server.eio.sockets)


async def test_a_post_beside_one_that_is_under_way_ends_their_link_and_no_other() -> None:
    async with served() as (broker, url), ear(url, "tok-devmac") as other:
        async with raw(url, polling=True, token="tok-tool") as link:
            assert isinstance(link, Polling)
            half = await asyncio.to_thread(_posting, url, link.address, said=100)
            await until(lambda: broker._sockets.server.eio._posting, "the first POST")
            async with link.http.post(link.address, data='42["PING",{}]') as reply:
                assert reply.status == 400
            await until(lambda: broker.connections == 1, "the end of the link")
            await until(lambda: not broker._sockets.server.eio._posting, "the end of the first POST")
            half.close()
        await other.barrier()


@pytest.mark.parametrize("said", [100, 1_000_000])
async def test_a_post_that_stands_still_goes_with_its_link(said: int) -> None:
    async with served() as (broker, url), raw(url, polling=True, token="tok-tool") as link:
        assert isinstance(link, Polling)
        half = await asyncio.to_thread(_posting, url, link.address, said=said)
        await until(lambda: broker._sockets.server.eio._posting, "the POST")
        began = time.monotonic()
        await asyncio.to_thread(_read_out, half)
        assert time.monotonic() - began < 30
        half.close()


async def test_many_packets_in_one_post_are_all_read() -> None:
    async with served() as (_, url), raw(url, polling=True, token="tok-tool") as link:
        assert isinstance(link, Polling)
        body = "\x1e".join(f'42{number}["PING",{{}}]' for number in range(40))
        async with link.http.post(link.address, data=body) as reply:
            assert reply.status == 200
        await link.answer("4339")


async def test_a_link_that_is_cut_off_leaves_nothing_in_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "CLOSING_SECONDS", 0.3)
    async with served() as (broker, url), ear(url, "tok-tool") as tool:
        link = await asyncio.to_thread(_standing_still, url)
        await until(lambda: broker.connections == 2)
        for _ in range(60):
            await tool.send("PRODUCE", {"event": "log", "from": "build", "message": "x" * 200_000})
            await tool.barrier()
        broker.hang_up(lambda a: a.name == "zoo")
        assert link.sock is not None
        reset = partial(link.sock.getsockopt, socket.SOL_SOCKET, socket.SO_ERROR)
        await until(lambda: reset() == errno.ECONNRESET, "the link to be reset, with all that waits")
        link.close()


@pytest.mark.parametrize("swept", [False, True], ids=["the next packet", "the sweep"])
async def test_whoever_notices_a_reader_that_is_too_far_behind_it_is_logged_once(swept: bool) -> None:
    async with served(limits=Limits(outgoing=20)) as (broker, url), raw(url, polling=False, token="tok-zoo"):
        (id,) = broker._protocol.admissions
        with structlog.testing.capture_logs() as logs:
            while await broker._sockets.send(id, broker._sockets.encode("log", "x")):
                pass  # without a pause, in which the reader could read
            if swept:
                await broker._sockets.sweep({id}, now=0, grace=60)
            for _ in range(2):
                await broker._sockets.cut(id)
            await until(lambda: not broker.connections, "the end of the link")
        dropped = [line["connection"] for line in logs if line["event"] == "nerve_reader_dropped"]
        assert dropped == [id]


def _posting(url: str, address: str, *, said: int) -> socket.socket:
    """A POST of which less comes than it said."""
    link = socket.create_connection(("127.0.0.1", int(url.rsplit(":", 1)[1])), timeout=60)
    head = f"POST {address[len(url) :]} HTTP/1.1\r\nHost: x\r\nContent-Length: {said}\r\n\r\n"
    link.sendall(f'{head}42["PING",'.encode())
    return link


def _read_out(link: socket.socket) -> None:
    with suppress(ConnectionResetError):
        while link.recv(65536):
            pass


def _standing_still(url: str) -> websocket.WebSocket:
    """A link that subscribes to a log and never reads again."""
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


def _stands(link: websocket.WebSocket) -> bool:
    """Whether the other end still takes what is written, without reading what it wrote."""
    try:
        link.send("3")
    except (ConnectionError, websocket.WebSocketException):
        return False
    return True


def _takes(link: socket.socket) -> bool:
    try:
        link.sendall(b"\r\n")
    except ConnectionError:
        return False
    return True


async def _until_reachable(url: str) -> None:
    it = Ear()
    async with asyncio.timeout(60):
        while not it.client.connected:
            with suppress(Exception):
                await it.connect(url)
    await it.client.disconnect()
