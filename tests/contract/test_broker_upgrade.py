"""A change from polling to a websocket that comes to nothing: the link goes on polling, and hears."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

import aiohttp
import pytest

from broker_bridge import engine
from tests.contract.nerves import served
from tests.contract.test_broker_raw import Polling, raw

pytestmark = pytest.mark.long

Failure = Callable[[aiohttp.ClientWebSocketResponse], Awaitable[object]]


async def _closed(link: aiohttp.ClientWebSocketResponse) -> None:
    await link.close()


async def _reset(link: aiohttp.ClientWebSocketResponse) -> None:
    connection = link._response.connection
    assert connection is not None
    assert connection.transport is not None
    connection.transport.abort()


async def _no_probe(link: aiohttp.ClientWebSocketResponse) -> None:
    await link.send_str("4x")


async def _silent(_: aiohttp.ClientWebSocketResponse) -> None: ...


async def _silent_after_the_probe(link: aiohttp.ClientWebSocketResponse) -> None:
    await link.send_str("2probe")
    assert await link.receive_str() == "3probe"


async def _closed_after_the_probe(link: aiohttp.ClientWebSocketResponse) -> None:
    await _silent_after_the_probe(link)
    await link.close()


@pytest.mark.parametrize(
    "fails", [_closed, _reset, _no_probe, _silent, _silent_after_the_probe, _closed_after_the_probe]
)
async def test_an_upgrade_that_fails_leaves_a_link_that_hears(
    fails: Failure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "UPGRADE_SECONDS", 0.3)
    async with served() as (_, url), raw(url, polling=True, token="tok-devmac") as link:
        assert isinstance(link, Polling)
        websocket = await link.http.ws_connect(link.address.replace("polling", "websocket"))
        await fails(websocket)
        await link.send(f"421{json.dumps(['PING', {}])}")
        assert await link.answer("431")
        await websocket.close()


async def test_an_upgrade_that_is_gone_on_with_is_heard_over_the_websocket() -> None:
    async with served() as (_, url), raw(url, polling=True, token="tok-devmac") as link:
        assert isinstance(link, Polling)
        websocket = await link.http.ws_connect(link.address.replace("polling", "websocket"))
        await _silent_after_the_probe(websocket)
        await websocket.send_str("5")
        await websocket.send_str(f"421{json.dumps(['PING', {}])}")
        while not (await websocket.receive_str()).startswith("431"):
            pass
        await websocket.close()
