"""The record's client against a server that loses answers, hangs and lies as networks do."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable

import pytest

from notifier.record import Record, RecordUnreachable, Refused

Reply = Callable[[bytes], bytes | None]
OK = {"message": {"id": 1}, "receipt": {"accepted": []}}


def answer(status: str, body: object, *, kind: str = "application/json", extra: str = "") -> bytes:
    content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n{extra}\r\n"
    return head.encode() + content


class Network:
    """A loopback listener that treats each request as the next of `replies` says; None hangs up."""

    def __init__(self, *replies: bytes | None) -> None:
        self.replies = list(replies)
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.url = ""

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[Network]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
                headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in head[1:] if line)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                self.requests.append((head[0].rsplit(" ", 1)[0], headers, body))
                reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
                if reply is None:
                    break
                writer.write(reply)
                await writer.drain()
        writer.close()

    def sent(self, number: int) -> dict[str, object]:
        body: dict[str, object] = json.loads(self.requests[number][2])
        return body


async def test_a_say_whose_answer_was_lost_is_repeated_under_the_same_client_id() -> None:
    async with Network(None, answer("201 Created", OK)).open() as net, Record(net.url, "secret") as record:
        assert await record.say("api", "hello") == OK
    assert len(net.requests) == 2
    assert net.sent(0) == net.sent(1)
    assert net.sent(0)["client_id"]


async def test_two_says_of_the_same_text_are_two_messages() -> None:
    async with Network(answer("201 Created", OK)).open() as net, Record(net.url, "secret") as record:
        await record.say("api", "hello")
        await record.say("api", "hello")
    assert net.sent(0)["client_id"] != net.sent(1)["client_id"]


async def test_a_callers_own_client_id_is_kept() -> None:
    async with Network(answer("201 Created", OK)).open() as net, Record(net.url, "secret") as record:
        await record.say("api", "hello", client_id="mine")
    assert net.sent(0)["client_id"] == "mine"


async def test_a_checkin_whose_answer_was_lost_mints_under_the_same_key() -> None:
    minted = {"agent": "desk-agent#1", "box": "desk", "role": None, "realm": "main"}
    async with Network(None, answer("201 Created", minted)).open() as net, Record(net.url, "s") as record:
        assert await record.checkin(harness="plain") == minted
    keys = [headers["idempotency-key"] for _, headers, _ in net.requests]
    assert keys[0] == keys[1] != ""


@pytest.mark.parametrize("status", ["503 Service Unavailable", "429 Too Many Requests"])
async def test_a_record_that_cannot_answer_now_is_asked_again(status: str) -> None:
    down = answer(status, {"code": "record_down", "detail": "Try again."})
    async with (
        Network(down, down, answer("200 OK", {"agents": {}})).open() as net,
        Record(net.url, "s") as record,
    ):
        assert await record.unread() == {}
    assert len(net.requests) == 3


async def test_a_record_that_stays_down_is_refused_in_its_own_words() -> None:
    down = answer("503 Service Unavailable", {"code": "record_down", "detail": "Try again."})
    async with Network(down).open() as net, Record(net.url, "s", patience=0.3) as record:
        with pytest.raises(Refused) as refused:
            await record.whoami()
    assert (refused.value.code, refused.value.detail, refused.value.status) == (
        "record_down",
        "Try again.",
        503,
    )
    assert len(net.requests) > 1


async def test_a_refusal_is_not_repeated_and_carries_its_facts() -> None:
    problem = {
        "type": "x",
        "title": "t",
        "status": 403,
        "code": "not_a_member",
        "detail": "Join.",
        "room": "api",
    }
    forbidden = answer("403 Forbidden", problem, kind="application/problem+json", extra="Retry-After: 3\r\n")
    async with Network(forbidden).open() as net, Record(net.url, "s") as record:
        with pytest.raises(Refused) as refused:
            await record.leave("api")
    assert refused.value.code == "not_a_member"
    assert refused.value.facts == {"status": 403, "room": "api", "retry_after": "3"}
    assert len(net.requests) == 1


async def test_without_patience_a_call_is_made_once() -> None:
    async with Network(None).open() as net, Record(net.url, "s", patience=0) as record:
        with pytest.raises(RecordUnreachable):
            await record.leave("api")
    assert len(net.requests) == 1


async def test_a_call_that_must_not_be_repeated_is_made_once() -> None:
    async with Network(None).open() as net, Record(net.url, "s") as record:
        with pytest.raises(RecordUnreachable):
            await record.call("POST", "/v1/admin/boxes", {"name": "desk"}, repeatable=False)
    assert len(net.requests) == 1


async def test_nobody_listening_is_said_with_what_to_do() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        async with Record(url, "s", patience=0) as record:
            with pytest.raises(RecordUnreachable, match=r"connection refused.*readyroom up"):
                await record.whoami()


async def test_a_stranger_on_the_port_is_named_as_one() -> None:
    page = answer("200 OK", "<html>", kind="text/html")
    async with Network(page).open() as net, Record(net.url, "s") as record:
        with pytest.raises(RecordUnreachable, match="no Readyroom record"):
            await record.whoami()


async def test_a_redirect_is_told_and_never_followed_with_the_token() -> None:
    moved = answer("308 Permanent Redirect", "", extra="Location: http://127.0.0.1:1/\r\n")
    async with Network(moved).open() as net, Record(net.url, "s") as record:
        with pytest.raises(RecordUnreachable, match=r"sends callers on to http://127.0.0.1:1/"):
            await record.whoami()
    assert len(net.requests) == 1


async def test_a_proxy_of_the_environment_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    async with Network(answer("200 OK", {"agents": {}})).open() as net, Record(net.url, "s") as record:
        assert await record.unread() == {}


async def test_identity_travels_in_two_headers_and_nowhere_else() -> None:
    reply = answer("200 OK", {"agents": {}}, extra="X-Tyode-Agent: desk\r\n")
    async with Network(reply).open() as net, Record(net.url, "secret", "desk-agent#1") as record:
        await record.unread()
        assert record.answered_as == "desk"
    request, headers, _ = net.requests[0]
    assert request == "GET /v1/unread"
    assert headers["authorization"] == "Bearer secret"
    assert headers["x-tyode-agent"] == "desk-agent#1"


async def test_every_page_of_a_list_is_fetched() -> None:
    first = answer("200 OK", {"rooms": [{"room": "a"}], "next_cursor": "c1"})
    last = answer("200 OK", {"rooms": [{"room": "b"}], "next_cursor": None})
    async with Network(first, last).open() as net, Record(net.url, "s") as record:
        assert [row["room"] for row in await record.rooms(everywhere=True)] == ["a", "b"]
    assert [request for request, _, _ in net.requests] == [
        "GET /v1/rooms?scope=all",
        "GET /v1/rooms?scope=all&cursor=c1",
    ]


async def test_a_room_name_cannot_leave_its_place_in_the_path() -> None:
    async with Network(answer("200 OK", {"messages": []})).open() as net, Record(net.url, "s") as record:
        await record.history("../admin?x#y", limit=5)
    assert net.requests[0][0] == "GET /v1/rooms/..%2Fadmin%3Fx%23y/messages?limit=5"
