"""The only way out: one POST to an address that somebody else chose.

A stranger's URL must not reach what only this machine or its network can reach. So its name is resolved once,
every answer must be an address of the public internet, and the connection goes to those very answers: a name
that changes its mind between the look and the call gains nothing.
"""

from __future__ import annotations

import asyncio
import functools
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from api.errors import BadField
from api.services.webhooks import Answer

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

URL_CHARACTERS = 2000
RESOLVE_SECONDS = 5.0
POST_SECONDS = 15.0
PLAIN_PORTS = 1024
"""Below it only 443 is an HTTPS port; what else listens there is no webhook."""

_PUBLIC_IPV6 = ip_network("2000::/3")
_DISGUISED = tuple(
    map(
        ip_network,
        ("2001::/23", "2002::/16", "3fff::/20", "192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32"),
    )
)  # tunnels to IPv4, addresses for documents and for protocols, a cloud's own host; public to some ipaddress


def is_public(address: Address) -> bool:
    """Whether an address is one host's on the public internet, and not a tunnel to another."""
    if address.version == 6 and address not in _PUBLIC_IPV6:
        return False
    inside = any(address.version == network.version and address in network for network in _DISGUISED)
    return address.is_global and not (address.is_multicast or address.is_reserved or inside)


@dataclass(frozen=True, slots=True)
class Allowed:
    """What the operator exempts: host names, and networks of addresses."""

    hosts: frozenset[str]
    networks: tuple[Network, ...]

    @classmethod
    def parse(cls, text: str) -> Allowed:
        """Read hosts, addresses and networks (`10.0.0.0/8`), separated by commas or blanks.

        Raises:
            ValueError: an entry is none of these.
        """
        hosts: set[str] = set()
        networks: list[Network] = []
        for entry in text.replace(",", " ").split():
            try:
                networks.append(ip_network(entry))
            except ValueError:
                if not entry.replace("-", "").replace(".", "").isalnum():
                    raise ValueError(
                        f"READYROOM_WEBHOOK_ALLOW: {entry} is no host, address or network"
                    ) from None
                hosts.add(entry.lower())
        return cls(frozenset(hosts), tuple(networks))

    def covers(self, host: str, address: Address) -> bool:
        """Whether this address of this host is exempt."""
        return host.lower() in self.hosts or any(
            address.version == network.version and address in network for network in self.networks
        )


async def system_resolve(host: str, port: int) -> Sequence[str]:
    """Every address of a host, as the operating system finds them."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(each[4][0]) for each in found]


class Egress:
    """Sends what webhooks send.

    Args:
        allowed: what may be reached although it is not public, by plain http too.
        resolve: finds a host's addresses.
        tls: what proves a receiver's name; the system's authorities unless given.
    """

    def __init__(
        self, allowed: Allowed, *, resolve: Resolve = system_resolve, tls: ssl.SSLContext | None = None
    ) -> None:
        self._allowed = allowed
        self._resolve = resolve
        self._given_tls = tls

    @functools.cached_property
    def _tls(self) -> ssl.SSLContext:
        return (
            self._given_tls or ssl.create_default_context()
        )  # reads every authority: not before it is needed

    async def check(self, url: str) -> None:
        """Look whether a URL could be posted to now.

        Raises:
            BadField: it could not; says why.
        """
        await self._addresses(_parsed(url))

    async def post(self, url: str, *, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Post once, following nothing, reading no body, within 20 seconds. Never raises for its sake."""
        try:
            parsed = _parsed(url)
            addresses = await self._addresses(parsed)
        except BadField as error:
            return Answer(failure=error.detail)
        connector = aiohttp.TCPConnector(
            resolver=_Pinned(addresses), use_dns_cache=False, force_close=True, limit=1, ssl=self._tls
        )
        try:
            async with (
                aiohttp.ClientSession(
                    connector=connector,
                    cookie_jar=aiohttp.DummyCookieJar(),
                    timeout=aiohttp.ClientTimeout(total=POST_SECONDS),
                    trust_env=False,
                ) as http,
                http.post(parsed, data=body, headers=headers, allow_redirects=False) as answer,
            ):
                answer.close()
                return Answer(answer.status, retry_after=_seconds(answer.headers.get("Retry-After")))
        except TimeoutError:
            return Answer(failure=f"no answer within {POST_SECONDS:g} seconds")
        except aiohttp.ClientSSLError:
            return Answer(failure="its TLS certificate is not valid")
        except (aiohttp.ClientConnectionError, OSError):
            return Answer(failure="no connection")
        except aiohttp.ClientError:
            return Answer(failure="what it answered is not HTTP")

    async def _addresses(self, url: URL) -> list[Address]:
        host, port = url.host or "", url.port or 0
        try:
            async with asyncio.timeout(RESOLVE_SECONDS):
                found = [ip_address(each) for each in await self._resolve(host, port)]
        except (OSError, ValueError):  # UnicodeError too: a label that no name can have
            found = []
        if not found:
            raise BadField("url", "the host's name leads to no address")
        exempt = [self._allowed.covers(host, address) for address in found]
        if not all(
            free or (is_public(address) and "%" not in str(address))
            for free, address in zip(exempt, found, strict=True)
        ):
            raise BadField("url", "the host has an address that is not public; ask the operator to allow it")
        if not all(exempt):
            if url.scheme != "https":
                raise BadField("url", "use https")
            if port != 443 and port < PLAIN_PORTS:
                raise BadField("url", f"use port 443, or one from {PLAIN_PORTS}")
        return found


class _Pinned(AbstractResolver):
    """Knows nothing but the addresses that were checked."""

    def __init__(self, addresses: Sequence[Address]) -> None:
        self._addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=str(address),
                port=port,
                family=socket.AF_INET if address.version == 4 else socket.AF_INET6,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in self._addresses
        ]

    async def close(self) -> None:
        """Nothing is open."""


def _parsed(url: str) -> URL:
    if len(url) > URL_CHARACTERS or not url.isprintable() or " " in url or "\\" in url:
        raise BadField("url", f"an address of at most {URL_CHARACTERS} characters, without blanks")
    try:
        parsed = URL(url)
        _ = parsed.port
    except ValueError:
        raise BadField("url", "this is no address") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise BadField("url", "an address begins with https://, and a host follows")
    if parsed.user is not None or parsed.password is not None:
        raise BadField("url", "an address with a user's name or password in it is not taken")
    if parsed.fragment:
        raise BadField("url", "leave out what follows the #")
    return parsed


def _seconds(retry_after: str | None) -> float | None:
    if retry_after is None or not retry_after.isascii() or not retry_after.isdecimal():
        return None
    return float(retry_after[:9])
