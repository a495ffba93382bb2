"""A real wake: a throw-away session in a pseudo-terminal is written to, woken, and reads."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import ptyprocess

from notifier.control.client import Control
from notifier.paths import control_socket
from notifier.record import Record, RecordError
from notifier.settings import Access
from readyroom.claim import forget
from readyroom.commands import in_commands
from readyroom.demo.journal import Journal
from readyroom.doctor.findings import Finding, failed, ok

ROLE = "doctor"
WORDS = "A test by `readyroom doctor`. Nothing is to be done."
START_SECONDS = 60.0
STEP_SECONDS = 30.0
GOODBYE_SECONDS = 5.0

READYROOM = (sys.executable, "-P", "-m", "readyroom")
_END_OF_INPUT = b"\x04"
_NOT_ITS_OWN = ("READYROOM_AGENT", "READYROOM_TOKEN_FILE", "TMUX", "CLAUDE")

Found = TypeVar("Found")


class NotWoken(Exception):
    """A step did not come in time; the text says which, and what was seen instead."""


async def wake(access: Access, runtime: str) -> Finding:
    """Do it, and remove everything that it took."""
    try:
        with _folder() as folder:
            async with (
                Record(access.url, access.token) as record,
                _all_retired(record, str(folder), runtime),
            ):
                record.agent = str((await record.checkin(role=ROLE, harness=ROLE, cwd=str(folder)))["agent"])
                async with _patient(access, runtime, folder) as journal:
                    return await _woken(record, runtime, journal)
    except RecordError as error:
        return failed("wake", "the record did not go along", in_commands(error))
    except NotWoken as reason:
        return failed(
            "wake",
            str(reason),
            "docs/explanation/waking.md explains each hold; the notifier's log says what it did, and why.",
        )


async def _woken(record: Record, runtime: str, journal: Journal) -> Finding:
    ready = await _wait("it started", lambda: _now(journal.first("ready")), within=START_SECONDS)
    agent = str(ready["agent"])
    standing: dict[str, Any] = {}

    async def look() -> dict[str, Any]:
        standing.clear()
        standing.update(await asyncio.to_thread(_row, runtime, agent))
        return standing

    async def idle() -> object:
        return (await look()).get("state") == "idle" or None

    async def read() -> dict[str, Any] | None:
        await look()
        return journal.first("read", id=message)

    async def proved() -> object:
        return ((await look()).get("last_wake") or {}).get("outcome") == "read" or None

    def seen() -> str:
        held = f", held by: {standing['hold']}" if standing.get("hold") else ""
        return f"; it is {standing.get('state', 'not known to the notifier')}{held}"

    await _wait("it was idle", idle, seen, within=STEP_SECONDS)
    said_at = time.time()
    message = (await record.send(agent, WORDS, ttl_seconds=600))["message"]["id"]

    done = await _wait("it read what was written to it", read, seen, within=STEP_SECONDS)
    keys = journal.first("keys") or done
    await _wait("the notifier knew that it had read", proved, seen, within=STEP_SECONDS)
    return ok(
        "wake",
        f"{agent} was woken after {_ms(keys['at'] - said_at)} and had read after {_ms(done['at'] - said_at)}",
    )


async def _wait(
    what: str, look: Callable[[], Awaitable[Found | None]], seen: Callable[[], str] = str, *, within: float
) -> Found:
    end = time.monotonic() + within
    while (found := await look()) is None:
        if time.monotonic() > end:
            raise NotWoken(f"in {within:.0f} s a throw-away session did not come so far that {what}{seen()}")
        await asyncio.sleep(0.02)
    return found


async def _now(found: Found) -> Found:
    return found


def _row(runtime: str, agent: str) -> dict[str, Any]:
    """What the notifier knows of a session; empty when it knows nothing."""
    try:
        with Control(control_socket(runtime)) as control:
            rows = control.ask({"op": "status"})["sessions"]
    except (OSError, ValueError, KeyError):
        return {}
    return next((row for row in rows if row["agent"] == agent), {})


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms"


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="readyroom-doctor-") as folder:
        yield Path(folder).resolve()


@contextlib.asynccontextmanager
async def _patient(access: Access, runtime: str, folder: Path) -> AsyncIterator[Journal]:
    """The session, as `readyroom run` starts any other; its journal."""
    journal = folder / "journal"
    program = [sys.executable, "-P", "-m", "readyroom.doctor.patient", str(journal)]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_ITS_OWN)}
    ours = {
        "READYROOM_URL": access.url,
        "READYROOM_TOKEN": access.token.get_secret_value(),
        "READYROOM_RUNTIME_DIR": runtime,
        "READYROOM_HOOK_MODE": "off",
        "READYROOM_WAKE_ON": "all",
    }
    terminal = ptyprocess.PtyProcess.spawn(
        [*READYROOM, "run", "--new", "--role", ROLE, "--for", "plain", "--", *program],
        cwd=str(folder),
        env={**kept, **ours},
    )
    reading = asyncio.create_task(asyncio.to_thread(_swallow, terminal.fd))
    try:
        yield Journal(journal)
    finally:
        with contextlib.suppress(OSError):
            terminal.write(_END_OF_INPUT)
        await asyncio.wait([reading], timeout=GOODBYE_SECONDS)
        terminal.terminate(force=True)
        await reading
        terminal.close()


def _swallow(terminal: int) -> None:
    """Read what the session shows until it is gone: a full terminal would stop it."""
    with contextlib.suppress(OSError):
        while os.read(terminal, 65536):
            pass


@contextlib.asynccontextmanager
async def _all_retired(record: Record, folder: str, runtime: str) -> AsyncIterator[None]:
    """On leaving, retire every session that checked in from the folder, and leave nothing unread behind."""
    try:
        yield
    finally:
        with contextlib.suppress(RecordError):
            record.agent = None
            for agent in [row["agent"] for row in await record.agents() if row.get("cwd") == folder]:
                record.agent = agent
                with contextlib.suppress(RecordError):
                    await record.poll(ack="auto", rooms=[f"@{agent}"])
                await record.checkout()
                forget(agent, runtime)
