"""Connections to PostgreSQL. The only commit is here, and so is the one translation of its faults.

Two doors: `transaction()` for the many calls that are rare (SQLAlchemy Core), and `fetch()` for the few that
are hot (prepared statements on connections of our own; Core was measured at four to nine times their CPU).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any

import asyncpg
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from api.errors import RecordDown

CONNECT_SECONDS = 5.0
ACQUIRE_SECONDS = 15.0

DOWN = (
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.InterfaceError,
    OSError,
    TimeoutError,
)
"""What it looks like when PostgreSQL is away, whichever way it went."""


class Database:
    """The record's connections.

    Args:
        dsn: a libpq URL (`postgresql://…`).
        hot: how many connections `fetch()` may use.
        cold: how many `transaction()` may use. One more listens.
    """

    def __init__(self, dsn: str, *, hot: int = 4, cold: int = 3) -> None:
        self.dsn = dsn
        self._hot = _HotConnections(dsn, hot)
        self._engine = _engine(dsn, cold)

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """One transaction: committed at the end of the block, rolled back when it raises.

        Raises:
            RecordDown: PostgreSQL is away; nothing was committed, or the commit's answer was lost.
        """
        try:
            async with self._engine.begin() as connection:
                yield connection
        except DBAPIError as error:
            if error.connection_invalidated or isinstance(error, InterfaceError) or _is_down(error):
                raise RecordDown from error
            raise
        except DOWN as error:
            raise RecordDown from error

    async def fetch(self, statement: str, *arguments: Any) -> list[asyncpg.Record]:
        """Run one prepared statement in a transaction of its own and return its rows.

        Raises:
            RecordDown: PostgreSQL is away; whether the statement took effect is not known.
            asyncpg.PostgresError: the statement was refused; nothing took effect.
        """
        return await self._hot.fetch(statement, arguments)

    async def listen(self, channel: str, heard: Callable[[str], None], ready: Callable[[], None]) -> None:
        """Hear NOTIFYs until cancelled; reconnects for ever, and calls `ready` on each connection."""
        while True:
            with contextlib.suppress(*DOWN):
                connection = await asyncpg.connect(self.dsn, timeout=CONNECT_SECONDS)
                try:
                    gone = asyncio.get_running_loop().create_future()
                    connection.add_termination_listener(
                        lambda _, gone=gone: gone.done() or gone.set_result(None)
                    )
                    await connection.add_listener(channel, lambda *event: heard(event[3]))
                    ready()
                    await gone
                finally:
                    connection.terminate()
            await asyncio.sleep(0.5)

    async def ping(self) -> None:
        """Ask PostgreSQL for nothing.

        Raises:
            RecordDown: it does not answer.
        """
        await self.fetch("SELECT 1")

    async def close(self) -> None:
        """Close every connection."""
        await self._hot.close()
        await self._engine.dispose()


def constraint(error: IntegrityError) -> str | None:
    """The name of the constraint that an insert or update ran into."""
    cause = getattr(error.orig, "__cause__", None)
    return getattr(cause, "constraint_name", None)


def _engine(dsn: str, size: int) -> AsyncEngine:
    url = make_url(dsn).set(drivername="postgresql+asyncpg")
    return create_async_engine(
        url,
        pool_size=size,
        max_overflow=0,
        pool_timeout=ACQUIRE_SECONDS,
        connect_args={"timeout": CONNECT_SECONDS, "server_settings": {"jit": "off"}},
    )


def _is_down(error: DBAPIError) -> bool:
    return isinstance(getattr(error.orig, "__cause__", None), DOWN)


class _HotConnections:
    """A last-in-first-out handful of connections, each with its prepared statements."""

    def __init__(self, dsn: str, size: int) -> None:
        self._dsn = dsn
        self._places = asyncio.Semaphore(size)
        self._idle: deque[tuple[asyncpg.Connection, dict[str, Any]]] = deque()

    async def fetch(self, statement: str, arguments: tuple[Any, ...]) -> list[asyncpg.Record]:
        """Borrow a connection for one statement; a broken one is thrown away with all its idle siblings."""
        try:
            async with asyncio.timeout(ACQUIRE_SECONDS):
                await self._places.acquire()
        except TimeoutError as error:
            raise RecordDown from error
        try:
            return await self._fetch(statement, arguments)
        except DOWN as error:
            await self.close()
            raise RecordDown from error
        finally:
            self._places.release()

    async def _fetch(self, statement: str, arguments: tuple[Any, ...]) -> list[asyncpg.Record]:
        connection, prepared = self._idle.pop() if self._idle else await self._connect()
        try:
            if statement not in prepared:
                prepared[statement] = await connection.prepare(statement)
            rows: list[asyncpg.Record] = await prepared[statement].fetch(*arguments)
        except BaseException:
            if connection.is_closed():
                raise
            self._idle.append((connection, prepared))
            raise
        self._idle.append((connection, prepared))
        return rows

    async def _connect(self) -> tuple[asyncpg.Connection, dict[str, Any]]:
        connection = await asyncpg.connect(
            self._dsn,
            timeout=CONNECT_SECONDS,
            server_settings={"jit": "off", "application_name": "readyroom"},
        )
        return connection, {}

    async def close(self) -> None:
        """Drop the idle connections; those in use close when they come back broken."""
        while self._idle:
            self._idle.pop()[0].terminate()
