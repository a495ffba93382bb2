"""A login at a tyo-mq broker that is sought again for ever."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import socketio
import structlog

from broker_bridge import frames
from broker_bridge.logs import quiet
from broker_bridge.packets import TextPacket
from broker_bridge.racing import heeding, unless_lost

log = structlog.get_logger()

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 1.5
"""Seconds between attempts: a broker that is back is found within five, its reply included."""
REFUSED_PAUSE = 30.0
STEADY = 5.0
"""A login that held for so many seconds starts the pauses anew."""
DIAL_SECONDS, LOGIN_SECONDS = 2.5, 3.5


class Lost(Exception):
    """The line is gone, or never came up; says why."""


class Refused(Lost):
    """The broker will not have this token; asking again at once helps nobody."""


class Client(socketio.AsyncClient):  # type: ignore[misc]
    """A client that lets pass what is no packet, instead of leaving a task that failed."""

    async def _handle_eio_message(self, data: Any) -> None:
        try:
            await super()._handle_eio_message(data)
        except (ValueError, TypeError, LookupError, RecursionError):
            log.debug("nerve_packet_ignored")


class Line:
    """One logged-in connection.

    Attributes:
        welcome: what AUTH_OK said.
        lost: done when the line is gone.
    """

    def __init__(self, client: Any, lost: asyncio.Future[None], welcome: frames.Body) -> None:
        self._client, self.lost, self.welcome = client, lost, welcome

    async def emit(self, event: str, payload: frames.Body) -> None:
        """Send one frame.

        Raises:
            Lost: the line is gone.
        """
        try:
            await self._client.emit(event, payload)
        except socketio.exceptions.SocketIOError as exc:
            raise Lost(str(exc)) from exc

    async def barrier(self) -> None:
        """Wait until the broker has dealt with every frame before.

        Raises:
            Lost: it does not answer in time, or the line is gone.
        """
        try:
            await heeding(self._client.call("PING", {}, timeout=LOGIN_SECONDS))
        except socketio.exceptions.SocketIOError as exc:
            raise Lost("the broker does not answer") from exc


class Link:
    """Dials, logs in, hands the line over, and starts again when it is gone."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        use: Callable[[Line], Awaitable[None]],
        on_event: Callable[[str, object], None] = lambda _, __: None,
    ) -> None:
        """`use` works with a line until it is cancelled; `on_event` gets what else the broker sends."""
        self._url, self._token, self._use, self._on_event = url, token, use, on_event
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._renewed = asyncio.Event()
        self.trouble: str | None = None
        """Why there is no line now; None while there is one, and before the first attempt."""

    async def run(self) -> None:
        """Keep the link until `close`; returns then."""
        if self._closed:
            return
        self._task = asyncio.create_task(self._keep())
        try:
            await self._task
        except asyncio.CancelledError:
            if not self._closed:
                raise

    def renew(self, token: str) -> None:
        """Log in with this token from now on: at once, unless the line stands with the same one already."""
        if token != self._token or self.trouble is not None:
            self._token = token
            self._renewed.set()

    async def close(self) -> None:
        """End `run`, or keep it from beginning; twice is fine."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=1)

    async def _keep(self) -> None:
        clock, failures = asyncio.get_running_loop(), 0
        while True:
            began, longest = clock.time(), LONGEST_PAUSE
            self._renewed.clear()
            try:
                await self._once()
            except Lost as exc:
                self._note(exc)
                longest = REFUSED_PAUSE if isinstance(exc, Refused) else LONGEST_PAUSE
            except Exception:
                log.exception("nerve_link_failed")
            failures = 0 if clock.time() - began > STEADY else failures + 1
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause(longest, failures)):
                    await self._renewed.wait()

    async def _once(self) -> None:
        async with self._dialled() as line:
            self.trouble = None
            renewed = asyncio.ensure_future(self._until_renewed())
            try:
                await unless_lost(unless_lost(self._use(line), line.lost), renewed)
            finally:
                renewed.cancel()
        raise Lost("the broker closed the connection")

    async def _until_renewed(self) -> None:
        await self._renewed.wait()
        raise Lost("the token has changed")

    @asynccontextmanager
    async def _dialled(self) -> AsyncIterator[Line]:
        """A line that is logged in. Its HTTP session goes with it: that closes what socket.io leaves open."""
        client_timeout = aiohttp.ClientTimeout(total=None, sock_connect=DIAL_SECONDS)
        async with aiohttp.ClientSession(timeout=client_timeout) as http:
            client = Client(
                reconnection=False,
                handle_sigint=False,
                http_session=http,
                serializer=TextPacket,
                logger=quiet(),
                engineio_logger=quiet(),
            )
            calls = _Calls(client, self._on_event)
            try:
                async with asyncio.timeout(LOGIN_SECONDS):
                    await heeding(
                        client.connect(self._url, transports=["websocket"], wait_timeout=LOGIN_SECONDS)
                    )
                    await client.emit("AUTHENTICATION", {"token": self._token})
                    welcome = await calls.welcome
            except TimeoutError as exc:
                raise Lost("the broker does not answer") from exc
            except (socketio.exceptions.SocketIOError, aiohttp.ClientError, OSError) as exc:
                raise Lost("the broker cannot be reached") from exc
            except (ValueError, TypeError, LookupError) as exc:
                raise Lost("the broker does not speak socket.io") from exc
            yield Line(client, calls.lost, welcome)

    def _note(self, exc: Lost) -> None:
        if self.trouble != str(exc):
            self.trouble = str(exc)
            log.warning("nerve_link_lost", reason=self.trouble)


class _Calls:
    """What the broker says, sorted: the answer to the login, the end of the line, anything else."""

    def __init__(self, client: Any, on_event: Callable[[str, object], None]) -> None:
        loop = asyncio.get_running_loop()
        self.welcome: asyncio.Future[frames.Body] = loop.create_future()
        self.lost: asyncio.Future[None] = loop.create_future()
        self._on_event = on_event
        client.on("disconnect", self._on_disconnect)
        client.on("*", self._on_any)

    def _on_disconnect(self, *_: object) -> None:
        self._end(Lost("the broker closed the connection"))

    def _on_any(self, event: str, *payload: object) -> None:
        body = frames.body(payload[0]) if payload else None
        if event == "AUTH_OK" and body is not None:
            if not self.welcome.done():
                self.welcome.set_result(body)
        elif event == "AUTH_FAIL":
            refused = body is not None and body.get("code") in (401, 403)
            self._end((Refused if refused else Lost)(_message(body)))
        elif event == "ERROR" and body is not None:
            self._end(Lost(_message(body)))
        else:
            self._on_event(event, payload[0] if payload else None)

    def _end(self, exc: Lost) -> None:
        for future in (self.welcome, self.lost):
            if not future.done():
                future.set_exception(exc)
                future.exception()  # whoever waits for the other one must not leave this one unread


def _message(body: frames.Body | None) -> str:
    return str((body or {}).get("message", "the broker gave no reason"))[:200]


def pause(longest: float, failures: int) -> float:
    """Seconds until the next attempt, with jitter; they grow with the failures in a row."""
    seconds = longest if longest == REFUSED_PAUSE else min(longest, FIRST_PAUSE * 2 ** min(failures, 8))
    return seconds * random.uniform(0.5, 1)  # noqa: S311 - spreads load, keeps no secret
