"""Somebody's receiver of nudges: a real HTTP server on loopback, with or without TLS."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.http.running import until


@dataclass(frozen=True)
class Got:
    """One request that came."""

    headers: Mapping[str, str]
    raw: bytes
    status: int

    @property
    def id(self) -> str:
        """The nudge's id."""
        return self.headers["webhook-id"]

    @property
    def nudge(self) -> dict[str, Any]:
        """What it says."""
        nudge: dict[str, Any] = json.loads(self.raw)
        return nudge


@dataclass
class Receiver:
    """What came, and what is answered: `status` and `headers` may be changed at any time."""

    url: str
    got: list[Got] = field(default_factory=list)
    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    names: list[str | None] = field(default_factory=list)

    @property
    def taken(self) -> list[Got]:
        """What was answered with a 2xx."""
        return [got for got in self.got if got.status < 300]

    async def has(self, count: int) -> list[Got]:
        """What was taken, when as much as expected has come."""
        await until(lambda: len(self.taken) >= count, f"{count} nudges are taken")
        return self.taken

    async def handle(self, request: web.Request) -> web.Response:
        """Note a request and answer it."""
        self.got.append(Got(dict(request.headers), await request.read(), self.status))
        return web.Response(status=self.status, headers=self.headers)


@contextlib.asynccontextmanager
async def receiving(*, host: str = "127.0.0.1", certificate: Path | None = None) -> AsyncIterator[Receiver]:
    """A receiver for the length of the block; with a certificate it speaks TLS."""
    listener = socket.create_server(("127.0.0.1", 0))
    scheme = "https" if certificate else "http"
    receiver = Receiver(f"{scheme}://{host}:{listener.getsockname()[1]}/hook?of=mine")
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", receiver.handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.SockSite(runner, listener, ssl_context=_tls(receiver, certificate)).start()
    try:
        yield receiver
    finally:
        await runner.cleanup()


def self_signed(folder: Path, name: str) -> Path:
    """A certificate for this name, and its key in the same file."""
    file, key = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-nodes", "-days", "2"),
            *("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"),
            *("-out", str(file), "-keyout", str(key)),
        ],
        check=True,
        capture_output=True,
        timeout=30,
    )
    file.write_text(file.read_text() + key.read_text())
    return file


def _tls(receiver: Receiver, certificate: Path | None) -> ssl.SSLContext | None:
    if certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.sni_callback = lambda _, name, __: receiver.names.append(name)
    return context
