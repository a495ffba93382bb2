"""Whatever strangers and programs send, over either transport, harms nobody else: others go on hearing."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import aiohttp
import psutil
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from broker_bridge.handlers import HANDLERS
from tests.contract.nerves import Ear, free_port, lone_broker, until

pytestmark = pytest.mark.long

GROWTH = 80 * 1024 * 1024
"""Bytes of memory that a hundred attacks may leave behind; one of them alone sends as much."""
TOKENS = [None, "tok-zoo", "tok-tool", "no-such-token"]

NAMES = st.sampled_from(
    ["build", "tick", "BUILD", "agent-comms", "msg", "ear", "#", "TYO-MQ-ALL", "\0", "e" * 300_000]
)
FIELDS = st.sampled_from(
    ["name", "id", "event", "producer", "consumer", "from", "message", "token", "to", "mode"]
)
FIELDS |= st.sampled_from(
    ["transferId", "index", "total", "data", "group", "method", "broadcast", "scope", "msgId"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | NAMES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(FIELDS | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=8,
)
EVENTS = (
    st.sampled_from(
        [*HANDLERS, "connect", "disconnect", "connect_error", "__disconnect_final", "*", "frame", "\0"]
    )
    | JSON
)
BODIES = st.dictionaries(FIELDS, NAMES | JSON, max_size=7)


def deep(depth: int) -> str:
    return "[" * depth + "]" * depth


PAYLOADS = (BODIES | BODIES.map(json.dumps) | JSON).map(json.dumps) | st.sampled_from(
    ["", "NaN", "1e999", "-", "[", '{"a":', "9" * 5000, deep(500), deep(50_000), "[" * 100_000, '"\\ud800"']
)
ACKS = st.sampled_from(["", "0", "1", "99", "9" * 120])
HEADS = st.sampled_from(
    [
        "0",
        "1",
        "2",
        "3",
        "4",
        "5",
        "6",
        "7",
        "51-",
        "50-",
        "59999999999-",
        "5-",
        "61-",
        "2/elsewhere,",
        "0/elsewhere,",
        "0/",
    ]
)
EVENT_FRAMES = st.builds(
    lambda ack, event, payload: f"42{ack}[{json.dumps(event)},{payload}]", ACKS, EVENTS, PAYLOADS
)
ODD_FRAMES = st.builds(lambda head, ack, payload: f"4{head}{ack}{payload}", HEADS, ACKS, PAYLOADS)
ENGINE_FRAMES = st.sampled_from(
    ["", "0", "1", "2probe", "3probe", "5", "6", "7", "9", "b", "b####", "bAAAA", "4", "\x1e"]
)
FRAMES = EVENT_FRAMES | ODD_FRAMES | ENGINE_FRAMES | st.text(max_size=20) | st.binary(max_size=40)


@dataclass(frozen=True, repr=False)
class Attack:
    """What one link sends.

    Attributes:
        polling: over long polling rather than a websocket.
        token: what it logs in with first; None: it does not.
        frames: what it sends then.
        times: how often it sends all of it.
    """

    polling: bool
    token: str | None
    frames: list[str | bytes]
    times: int

    def __repr__(self) -> str:
        return f"Attack({self.polling}, {self.token}, {[frame[:120] for frame in self.frames]}, {self.times})"

    def opening(self) -> list[str]:
        login = f'42["AUTHENTICATION",{{"token":"{self.token}"}}]'
        return ["40", login] if self.token else ["40"]


ATTACKS = st.builds(
    Attack,
    polling=st.booleans(),
    token=st.sampled_from(TOKENS),
    frames=st.lists(FRAMES, min_size=1, max_size=12),
    times=st.sampled_from([1, 1, 1, 30]),
)


class Grounds:
    """A nerve in a process of its own, a producer, and a box that hears it."""

    http: aiohttp.ClientSession

    def __init__(self, url: str, pid: int) -> None:
        self.url = url
        self.process = psutil.Process(pid)
        self.producer, self.box = Ear(), Ear()
        self.ticks = 0

    async def set_up(self) -> None:
        self.http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(20))
        await self._reachable()
        await self.producer.connect(self.url)
        await self.producer.log_in("tok-tool2", "producer")
        await self.producer.send("PRODUCER", {"name": "build"})
        await self.box.connect(self.url)
        await self.box.log_in("tok-devmac", "ear")
        await self.box.subscribe(producer="build", event="tick")
        await self.box.barrier()

    async def tear_down(self) -> None:
        await self.http.close()
        await self.producer.client.disconnect()
        await self.box.client.disconnect()

    async def is_unharmed(self) -> None:
        """The producer is heard, once, and neither link was ever lost."""
        self.ticks += 1
        await self.producer.send("PRODUCE", {"event": "tick", "message": self.ticks, "from": "build"})
        await until(lambda: self.box.consumed, "the tick")
        envelope = {"event": "tick", "message": self.ticks, "from": "build"}
        assert self.box.consumed == [("CONSUME-build-tick", envelope)]
        self.box.heard.clear()
        self.producer.heard.clear()
        assert self.process.is_running()

    async def suffer(self, attack: Attack) -> None:
        with suppress(aiohttp.ClientError, ConnectionError):
            await (self._poll(attack) if attack.polling else self._push(attack))

    async def _push(self, attack: Attack) -> None:
        async with self.http.ws_connect(f"{self.url}/socket.io/?EIO=4&transport=websocket") as link:
            for frame in attack.opening() + attack.frames * attack.times:
                await (link.send_str(frame) if isinstance(frame, str) else link.send_bytes(frame))

    async def _poll(self, attack: Attack) -> None:
        address = f"{self.url}/socket.io/?EIO=4&transport=polling"
        async with self.http.get(address) as opened:
            address += f"&sid={json.loads((await opened.text())[1:])['sid']}"
        texts = [frame if isinstance(frame, str) else frame.decode("latin-1") for frame in attack.frames]
        for body in (*attack.opening(), *["\x1e".join(texts[:15])] * attack.times, "\x1e".join(texts)):
            async with self.http.post(
                address, data=io.BytesIO(body.encode("utf-8", "surrogatepass"))
            ) as answer:
                if answer.status != 200:
                    break

    async def _reachable(self) -> None:
        for _ in range(2000):
            with suppress(aiohttp.ClientError):
                async with self.http.get(f"{self.url}/anything"):
                    return
            await asyncio.sleep(0.01)


@contextmanager
def grounds(runner: asyncio.Runner) -> Iterator[Grounds]:
    port = free_port()
    with lone_broker(port) as process:
        here = Grounds(f"http://127.0.0.1:{port}", process.pid)
        runner.run(here.set_up())
        try:
            yield here
        finally:
            runner.run(here.tear_down())


def test_no_attack_harms_anybody_else() -> None:
    with asyncio.Runner() as runner, grounds(runner) as here:
        before = here.process.memory_info().rss

        @settings(
            max_examples=100,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.explicit, Phase.reuse, Phase.generate],
        )
        @given(ATTACKS)
        def attacked(attack: Attack) -> None:
            runner.run(here.suffer(attack))
            runner.run(here.is_unharmed())

        attacked()
        assert here.process.memory_info().rss - before < GROWTH


@pytest.mark.parametrize("polling", [False, True], ids=["websocket", "polling"])
@pytest.mark.parametrize("token", TOKENS)
def test_thousands_of_frames_harm_nobody_else(token: str | None, polling: bool) -> None:
    frame = '42["SUBSCRIBE",{"event":"e","producer":"p","consumer":"c"}]'
    with asyncio.Runner() as runner, grounds(runner) as here:
        before = here.process.memory_info().rss
        for times in (5, 400 if polling else 5000):
            runner.run(here.suffer(Attack(polling, token, [frame] * (12 if polling else 1), times)))
            runner.run(here.is_unharmed())
        assert here.process.memory_info().rss - before < GROWTH
