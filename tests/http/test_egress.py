"""The way out: what it may reach, and that it connects to what it has looked at."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from ipaddress import ip_address

import pytest

from api.egress import Allowed, Egress, is_public, system_resolve
from api.errors import BadField
from tests.http.receiving import receiving

PUBLIC = ["93.184.216.34", "8.8.8.8", "2606:4700:4700::1111", "2a00:1450:4001:81b::200e"]
NOT_PUBLIC = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.1",
    "192.0.0.9",
    "192.0.0.171",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "203.0.113.9",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::ffff:0:7f00:1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::7f00:1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fd12:3456::1",
    "fe80::1",
    "fe80::1%lo",
    "fec0::1",
    "ff02::1",
]
FORMS = [
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0x7f.1/",
    "https://0177.0.0.1/",
    "https://127.1/",
    "https://127.0.0.1./",
    "https://localhost/",
    "https://LOCALHOST/",
    "https://localhost./",
    "https://[::1]/",
    "https://[::ffff:7f00:1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[fe80::1%25lo]/",
    "https://①②⑦.⓪.⓪.①/",
    "https://0/",
    "https://user@93.184.216.34/",
    "https://user:pass@93.184.216.34/",
    "https://:pass@93.184.216.34/",
    "https://93.184.216.34@127.0.0.1/",
    "https://93.184.216.34\\@127.0.0.1/",
    "https://93.184.216.34/#fragment",
    "https://93.184.216.34:22/",
    "https://93.184.216.34:0/",
    "https://93.184.216.34:99999/",
    "http://93.184.216.34/",
    "ftp://93.184.216.34/",
    "file:///etc/passwd",
    "//93.184.216.34/",
    "93.184.216.34",
    "https://",
    "https:///path",
    "https://93.184.216.34/\r\nHost: other",
    "https://93.184.216.34/ x",
    "https://93.184.216.34/\ud800",
    "https://" + "a" * 64 + ".example/",
    "https://93.184.216.34/" + "x" * 2000,
    "",
]


class Names:
    """Answers in turn, the last one for ever, and counts how often it was asked."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.mark.parametrize("address", PUBLIC)
def test_one_host_on_the_internet_is_public(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize("address", NOT_PUBLIC)
async def test_everything_else_is_not_by_whatever_name(address: str) -> None:
    assert not is_public(ip_address(address))
    with pytest.raises(BadField, match="not public"):
        await Egress(Allowed.parse(""), resolve=Names([address])).check("https://receiver.test/")
    with pytest.raises(BadField, match="not public"):
        await Egress(Allowed.parse(""), resolve=Names(["8.8.8.8", address])).check("https://receiver.test/")


@pytest.mark.parametrize("url", FORMS, ids=lambda url: ascii(url)[:60])
async def test_no_way_of_writing_it_helps(url: str) -> None:
    egress = Egress(Allowed.parse(""), resolve=system_resolve)
    with pytest.raises(BadField):
        await egress.check(url)
    answer = await egress.post(url, body=b"{}", headers={})
    assert (answer.status, answer.is_taken) == (0, False)
    assert answer.failure.startswith("url: ")


@pytest.mark.parametrize(
    "url", ["https://93.184.216.34/", "https://93.184.216.34:8443/x?y=z", "HTTPS://[2606:4700:4700::1111]/"]
)
async def test_public_addresses_will_do(url: str) -> None:
    await Egress(Allowed.parse("")).check(url)


async def test_a_name_is_resolved_once_and_the_connection_goes_to_what_was_looked_at() -> None:
    names = Names(["127.0.0.1"])
    async with receiving(host="receiver.test") as receiver:
        egress = Egress(Allowed.parse("127.0.0.0/8"), resolve=names)
        answer = await egress.post(receiver.url, body=b"{}", headers={"x-mine": "1"})
        assert (answer.status, names.asked) == (204, 1)
        assert receiver.got[0].headers["Host"] == receiver.url.split("/")[2]


async def test_a_name_that_changes_its_mind_is_refused_at_the_next_attempt() -> None:
    names = Names(["127.0.0.1"], ["127.0.0.1"], ["10.0.0.1"], ["127.0.0.1", "10.0.0.1"])
    async with receiving(host="receiver.test") as receiver:
        egress = Egress(Allowed.parse("127.0.0.1"), resolve=names)
        await egress.check(receiver.url)
        assert (await egress.post(receiver.url, body=b"", headers={})).is_taken
        for _ in range(2):
            refused = await egress.post(receiver.url, body=b"", headers={})
            assert "not public" in refused.failure
        assert len(receiver.got) == 1


async def test_a_redirect_is_an_answer_and_the_environments_proxy_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with receiving() as receiver, receiving() as other:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, other.url)
        receiver.status, receiver.headers = 302, {"Location": other.url}
        answer = await Egress(Allowed.parse("127.0.0.1")).post(receiver.url, body=b"", headers={})
        assert (answer.status, answer.is_taken, other.got) == (302, False, [])


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (b"", 0),
        (b"SSH-2.0-OpenSSH_9.6\r\n", 0),
        (b"HTTP/1.1 200 OK\r\n" + b"x-more: " + b"y" * 100_000, 0),
        (b"HTTP/1.1 200 OK\r\n" + b"x-more: y\r\n" * 100_000, 0),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000000\r\n\r\n" + b"z" * 1_000_000, 200),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"zz\r\n" * 10, 0),
        (b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 5\r\n\r\nabcde", 200),
        (b"HTTP/1.1 503 No\r\nretry-after: 99999999999999999999\r\n\r\n", 503),
        (b"HTTP/1.1 503 No\r\nretry-after: soon\r\n\r\n", 503),
    ],
    ids=lambda value: repr(value)[:50],
)
async def test_whatever_a_receiver_answers_harms_nobody(answer: bytes, status: int) -> None:
    async def answering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(answering, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        got = await Egress(Allowed.parse("127.0.0.1")).post(url, body=b"{}", headers={})
    assert got.status == status
    assert bool(got.failure) is (status == 0)


async def test_what_is_exempt_is_exempt_alone() -> None:
    allowed = Allowed.parse("hooks.internal, 10.20.0.0/16 ::1")
    for host, address in (("Hooks.Internal", "192.168.1.1"), ("x", "10.20.3.4"), ("x", "::1")):
        assert allowed.covers(host, ip_address(address))
        await Egress(allowed, resolve=Names([address])).check(f"http://{host}:80/")
    for host, address in (("internal", "192.168.1.1"), ("x", "10.21.0.1"), ("x", "127.0.0.1")):
        assert not allowed.covers(host, ip_address(address))
    with pytest.raises(BadField, match="https"):
        await Egress(allowed, resolve=Names(["10.20.0.1", "8.8.8.8"])).check("http://x/")


@pytest.mark.parametrize("entry", ["10.0.0.1/8", "*.internal", "http://x", "a/b"])
def test_an_exemption_that_means_nothing_is_refused_at_the_start(entry: str) -> None:
    with pytest.raises(ValueError, match="READYROOM_WEBHOOK_ALLOW"):
        Allowed.parse(entry)
