"""What stands in front of MCP: how a request must look before the SDK reads it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from api.errors import WrongHost, WrongOrigin


class Door:
    """An ASGI layer: POST alone, under a name of ours, from no page of another site, its headers trimmed.

    A page that has its own name resolve to this machine sends that name as Host, and one that calls across
    sites sends its own as Origin. A Host that is an address was resolved by nobody.

    Args:
        app: what to pass requests on to.
        names: by which this record is called, beside this machine's loopback names.
    """

    def __init__(self, app: ASGIApp, names: Iterable[str]) -> None:
        self._app = app
        self._names = frozenset(name.lower() for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request.

        Raises:
            WrongHost, WrongOrigin
            HTTPException: it is another method. Nothing is ever pushed, and there is no session to end.
        """
        if scope["method"] != "POST":
            raise HTTPException(405, headers={"Allow": "POST"})
        headers = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        self._check(dict(headers))
        await self._app({**scope, "headers": headers}, receive, send)

    def _check(self, headers: dict[bytes, bytes]) -> None:
        authority = headers.get(b"host", b"").decode("latin-1").lower()
        host = _name(f"//{authority}")
        if not (self._is_ours(host) or _is_address(host)):
            raise WrongHost(authority)
        origin = headers.get(b"origin", b"").decode("latin-1").lower()
        if origin and not (self._is_ours(_name(origin)) or origin.partition("://")[2] == authority):
            raise WrongOrigin(origin)

    def _is_ours(self, name: str | None) -> bool:
        return name in self._names or "*" in self._names or name == "localhost" or _is_loopback(name)


def _name(url: str) -> str | None:
    with contextlib.suppress(ValueError):
        return urlsplit(url).hostname
    return None


def _is_address(name: str | None) -> bool:
    with contextlib.suppress(ValueError):
        return bool(ip_address(name or ""))
    return False


def _is_loopback(name: str | None) -> bool:
    return _is_address(name) and ip_address(name or "").is_loopback
