"""Connections to PostgreSQL. The only commit is here, and so is the one translation of its faults.

Three doors: `transaction()` for the many calls that are rare (SQLAlchemy Core), `fetch()` for the few that
are hot (prepared statements on connections of our own; Core was measured at four to nine times their CPU),
and `aside.fetch()` for what may take long.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from importlib.resources import files
from typing import Any
from weakref import WeakValueDictionary

import asyncpg
import structlog
from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from api.errors import RecordDown, RoomHeldUp, SchemaBehind

log = structlog.get_logger()

Transaction = AsyncConnection
"""What a service hands to the store's functions."""

CONNECT_SECONDS = 5.0
ACQUIRE_SECONDS = 15.0
STATEMENT_SECONDS = 20.0
"""A PostgreSQL that hangs is as good as one that is away. So is a record that hangs within a transaction:
after the same time PostgreSQL ends it, and its locks are free."""
ASIDE_SECONDS = 5.0
NOTIFY_SECONDS = 3.0

DOWN = (
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.TooManyConnectionsError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a connection that got the server's last words while it was idle
    OSError,
    TimeoutError,
)
"""What it looks like when PostgreSQL is away, whichever way it went."""

LACKING = (asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError, asyncpg.UndefinedFunctionError)
"""What it looks like when the database was not migrated."""

NEWEST_REVISION = max(
    name.partition("_")[0]
    for name in (entry.name for entry in (files("migrations") / "versions").iterdir())
    if name[0].isdigit()
)
"""The last migration that this program knows of."""


class Refused(Exception):
    """PostgreSQL refused a statement, and nothing of it took effect. Says nothing of the values in it.

    Attributes:
        sqlstate: PostgreSQL's code of five characters; its first two are the class.
        constraint: the constraint's name, if one was broken.
    """

    def __init__(self, sqlstate: str, constraint: str | None) -> None:
        super().__init__(f"SQLSTATE {sqlstate}" + (f", constraint {constraint}" if constraint else ""))
        self.sqlstate = sqlstate
        self.constraint = constraint


class Database:
    """The record's connections.

    Args:
        dsn: a libpq URL (`postgresql://…`).
        hot: how many connections `fetch()` may use.
        cold: how many `transaction()` may use.
        aside: how many `aside.fetch()` may use.
    """

    def __init__(self, dsn: str, *, hot: int = 4, cold: int = 3, aside: int = 2) -> None:
        self.dsn = dsn
        self.aside = Aside(dsn, aside)
        self._hot = _HotConnections(dsn, hot)
        self._engine = _engine(dsn, cold)
        self._turns: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
        self._trouble: str | None = None

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """One transaction: committed at the end of the block, rolled back when it raises.

        Raises:
            RecordDown: PostgreSQL is away; nothing was committed, or the commit's answer was lost. Where it
                is `SchemaBehind`, nothing was.
            RoomHeldUp: a room's lock was not to be had; nothing was committed.
        """
        try:
            async with self._engine.begin() as connection:
                yield connection
        except PoolTimeout as error:
            raise RecordDown from error
        except DBAPIError as error:
            if error.connection_invalidated or isinstance(error, InterfaceError) or _is(error, *DOWN):
                raise RecordDown from error
            if _is(error, asyncpg.LockNotAvailableError):
                raise RoomHeldUp from error
            if _is(error, *LACKING):
                raise SchemaBehind from error
            raise
        except DOWN as error:
            raise RecordDown from error

    async def fetch(self, statement: str, *arguments: Any) -> list[asyncpg.Record]:
        """Run one prepared statement in a transaction of its own and return its rows.

        Raises:
            RecordDown: PostgreSQL is away; whether the statement took effect is not known.
            Refused: the statement was refused; nothing took effect.
        """
        async with self._hot.borrowed() as connection:
            return await connection.fetch(statement, *arguments)

    @contextlib.asynccontextmanager
    async def turn(self, agent_id: int) -> AsyncIterator[None]:
        """Only one at a time of a reader's calls is in this block; the others wait and hold no connection.

        However many polls one reader lets wait, they take no more than one connection from everybody else.

        Raises:
            RecordDown: its turn did not come.
        """
        turn = self._turns.setdefault(agent_id, asyncio.Lock())
        try:
            async with asyncio.timeout(ACQUIRE_SECONDS):
                await turn.acquire()
        except TimeoutError as error:
            raise RecordDown from error
        try:
            yield
        finally:
            turn.release()

    @contextlib.asynccontextmanager
    async def reader(self, realm_id: int, agent_id: int) -> AsyncIterator[Reader]:
        """A transaction under one reader's lock, in its turn; committed at the end of the block.

        Every statement in it sees all that earlier holders of the lock committed.

        Raises:
            RecordDown: PostgreSQL is away; whether the transaction took effect is not known.
        """
        async with self.turn(agent_id), self._hot.borrowed() as connection:
            try:
                await connection.execute(f"BEGIN; SELECT pg_advisory_xact_lock({-agent_id})")
                yield Reader(connection, realm_id, agent_id)
                await connection.execute("COMMIT")
            except Exception:
                if not connection.is_closed():
                    await connection.execute("ROLLBACK")
                raise
            except BaseException:  # cancelled: where the transaction stands is not worth asking
                connection.terminate()
                raise

    @contextlib.asynccontextmanager
    async def joined(self, channel: str, heard: Callable[[str], None]) -> AsyncIterator[Notices]:
        """Hear the NOTIFYs of a channel, and send some, on a connection of its own while the block lasts.

        Raises:
            RecordDown: PostgreSQL is away, or went away within the block.
        """
        try:
            connection = await _connect(self.dsn)
            try:
                await connection.add_listener(channel, lambda *event: heard(event[3]))
                yield Notices(connection, channel)
            finally:
                connection.terminate()
        except DOWN as error:
            raise RecordDown from error

    async def listen(self, channel: str, heard: Callable[[str], None], ready: Callable[[], None]) -> None:
        """Hear NOTIFYs until cancelled; reconnects for ever, and calls `ready` on each connection."""
        while True:
            try:
                async with self.joined(channel, heard) as notices:
                    await self.check()
                    self._reached(None)
                    ready()
                    await notices.lost
            except RecordDown as error:
                self._reached(error)
            await asyncio.sleep(0.5)

    def _reached(self, error: RecordDown | None) -> None:
        """Say so once when PostgreSQL goes away or lacks migrations, and when all is well again."""
        trouble = None
        if isinstance(error, SchemaBehind):
            trouble, why = "schema_behind", error.detail
        elif error is not None:
            cause = error.__cause__
            trouble, why = "database_not_reached", str(cause) or type(cause).__name__
        if trouble == self._trouble:
            return
        if trouble is None:
            log.info("database_reached")
        else:
            log.warning(trouble, error=why)
        self._trouble = trouble

    async def check(self) -> None:
        """See that PostgreSQL answers and was migrated; one that is newer than this program will do.

        Raises:
            SchemaBehind: it was not migrated, or not far enough.
            RecordDown: it does not answer.
        """
        rows = await self.fetch("SELECT version_num FROM alembic_version")
        if not rows or rows[0]["version_num"] < NEWEST_REVISION:
            raise SchemaBehind

    async def close(self) -> None:
        """Close every connection."""
        await self.aside.close()
        await self._hot.close()
        await self._engine.dispose()


class Notices:
    """A place at a channel of NOTIFYs; see `Database.joined`.

    Attributes:
        lost: done when the connection is gone.
    """

    def __init__(self, connection: asyncpg.Connection, channel: str) -> None:
        self._connection, self._channel = connection, channel
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        connection.add_termination_listener(self._ended)

    async def say(self, text: str) -> None:
        """NOTIFY whoever listens, this connection too, of less than 8,000 bytes. One at a time.

        Raises:
            RecordDown: PostgreSQL is away, or hangs; whether it was heard is not known.
        """
        try:
            statement = "SELECT pg_notify($1, $2)"
            await self._connection.execute(statement, self._channel, text, timeout=NOTIFY_SECONDS)
        except DOWN as error:
            raise RecordDown from error

    def _ended(self, _: object) -> None:
        if not self.lost.done():
            self.lost.set_result(None)


def constraint(error: IntegrityError) -> str | None:
    """The name of the constraint that an insert or update ran into."""
    cause = getattr(error.orig, "__cause__", None)
    return getattr(cause, "constraint_name", None)


def _engine(dsn: str, size: int) -> AsyncEngine:
    # The driver reads the URL itself: SQLAlchemy knows fewer of libpq's parameters than it does.
    return create_async_engine(
        "postgresql+asyncpg://",
        async_creator=lambda: _connect(dsn),
        pool_size=size,
        max_overflow=0,
        pool_timeout=ACQUIRE_SECONDS,
        pool_pre_ping=True,
    )


async def _connect(dsn: str, settings: Mapping[str, str] = {}) -> asyncpg.Connection:
    return await asyncpg.connect(
        dsn,
        timeout=CONNECT_SECONDS,
        command_timeout=STATEMENT_SECONDS,
        server_settings={
            "jit": "off",
            "application_name": "readyroom",
            "idle_in_transaction_session_timeout": f"{STATEMENT_SECONDS:g}s",
            **settings,
        },
    )


@contextlib.asynccontextmanager
async def part(transaction: Transaction) -> AsyncIterator[None]:
    """A part of a transaction that can be refused without the rest of it.

    Raises:
        Refused: for a value or a constraint; nothing of the part took effect.
    """
    try:
        async with transaction.begin_nested():
            yield
    except DBAPIError as error:
        cause = getattr(error.orig, "__cause__", None)
        if isinstance(cause, asyncpg.DataError | asyncpg.IntegrityConstraintViolationError):
            raise Refused(cause.sqlstate, getattr(cause, "constraint_name", None)) from error
        raise


def _is(error: DBAPIError, *kinds: type[BaseException]) -> bool:
    return isinstance(getattr(error.orig, "__cause__", None), kinds)


class _Connection:
    """One connection with its prepared statements."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self._prepared: dict[str, Any] = {}
        self.execute = connection.execute
        self.is_closed = connection.is_closed
        self.terminate = connection.terminate

    async def fetch(self, statement: str, *arguments: Any) -> list[asyncpg.Record]:
        prepared = self._prepared.get(statement)
        if prepared is None:
            prepared = self._prepared[statement] = await self._connection.prepare(statement)
        try:
            rows: list[asyncpg.Record] = await prepared.fetch(*arguments)
        except (*DOWN, *LACKING):
            raise
        except asyncpg.PostgresError as error:
            sqlstate, constraint = error.sqlstate, getattr(error, "constraint_name", None)
            raise Refused(sqlstate or "XX000", constraint) from None
        return rows


class Reader:
    """A reader's transaction; see `Database.reader`. Statements get the realm as $1 and the agent as $2."""

    def __init__(self, connection: _Connection, realm_id: int, agent_id: int) -> None:
        self._connection = connection
        self._who = (realm_id, agent_id)

    async def rows(self, statement: str, *arguments: Any) -> list[asyncpg.Record]:
        """Run one statement for this reader."""
        return await self._connection.fetch(statement, *self._who, *arguments)

    async def row(self, statement: str, *arguments: Any) -> asyncpg.Record | None:
        """The first row, or None."""
        rows = await self.rows(statement, *arguments)
        return rows[0] if rows else None


class _HotConnections:
    """A last-in-first-out handful of connections."""

    def __init__(self, dsn: str, size: int, settings: Mapping[str, str] = {}) -> None:
        self._dsn = dsn
        self._settings = settings
        self._places = asyncio.Semaphore(size)
        self._idle: deque[_Connection] = deque()

    @contextlib.asynccontextmanager
    async def borrowed(self) -> AsyncIterator[_Connection]:
        """One connection for the block. When one turns out broken, its idle siblings are dropped with it."""
        try:
            async with asyncio.timeout(ACQUIRE_SECONDS):
                await self._places.acquire()
        except TimeoutError as error:
            raise RecordDown from error
        connection = None
        try:
            connection = self._idle.pop() if self._idle else await self._opened()
            yield connection
        except DOWN as error:
            if connection is not None:
                connection.terminate()
            await self.close()
            raise RecordDown from error
        except LACKING as error:
            raise SchemaBehind from error
        finally:
            if connection is not None and not connection.is_closed():
                self._idle.append(connection)
            self._places.release()

    async def _opened(self) -> _Connection:
        return _Connection(await _connect(self._dsn, self._settings))

    async def close(self) -> None:
        """Drop the idle connections; those in use are dropped when they come back broken."""
        while self._idle:
            self._idle.pop().terminate()


class Aside:
    """A door for what anybody can make expensive: nothing else waits for its connections.

    PostgreSQL ends its statements after ASIDE_SECONDS. They read by indexes alone: what it costs to take the
    words of a large body anew, row by row, the planner does not know.
    """

    ENDED = "57014"
    """The SQLSTATE of a statement that was ended."""

    def __init__(self, dsn: str, size: int) -> None:
        settings = {
            "statement_timeout": f"{ASIDE_SECONDS:g}s",
            "enable_seqscan": "off",
            "work_mem": "16MB",  # a bitmap that does not fit looks at rows again
        }
        self._connections = _HotConnections(dsn, size, settings)

    async def fetch(self, statement: str, *arguments: Any) -> list[asyncpg.Record]:
        """Run one prepared statement in a transaction of its own and return its rows.

        Raises:
            RecordDown: PostgreSQL is away.
            Refused: the statement was refused, or ended (`ENDED`).
        """
        async with self._connections.borrowed() as connection:
            return await connection.fetch(statement, *arguments)

    async def close(self) -> None:
        """Close every connection that is idle."""
        await self._connections.close()
