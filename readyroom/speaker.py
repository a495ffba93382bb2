"""As whom the command line speaks: the agent's own session, or this user's shell session."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import platformdirs

from notifier.control.client import Control
from notifier.paths import control_socket, runtime_dir
from notifier.programs.processes import ancestors
from notifier.record import Record, Refused
from notifier.settings import Settings
from readyroom.screen import inert

ROLE = "shell"
PATIENCE_SECONDS = 3.0

Answer = TypeVar("Answer")


def ask(call: Callable[[Record], Awaitable[Answer]]) -> Answer:
    """Make one call, or several, as whoever we are."""

    async def asked() -> Answer:
        async with speaking(Settings.load()) as record:
            return await call(record)

    return asyncio.run(asked())


@asynccontextmanager
async def speaking(settings: Settings) -> AsyncIterator[Record]:
    """A record that is spoken to as `READYROOM_AGENT`, else as the session around, else as this user's shell.

    The notifier knows the sessions around: of programs whose hooks spoke. The shell is `<box>-agent-shell#N`.
    A person speaks as themselves.
    """
    access = settings.access()
    async with Record(access.url, access.token, settings.agent, patience=PATIENCE_SECONDS) as record:
        if settings.agent is None:
            await _find_name(record)
        try:
            yield record
        finally:
            _warn_of_a_stale_handle(settings.agent, record.answered_as)


async def _find_name(record: Record) -> None:
    caller = await record.whoami()
    if caller["kind"] == "person":
        return
    around = _session_around()
    if around is not None and around.startswith(f"{caller['box']}-"):
        record.agent = around
    else:
        await _as_shell(record, caller)


def _session_around() -> str | None:
    above = [{"pid": seen.pid, "started": seen.started} for seen in ancestors(os.getppid())]
    try:
        with Control(control_socket(runtime_dir(os.environ))) as notifier:
            agent = notifier.ask({"op": "who", "above": above}).get("agent")
    except (OSError, ValueError):
        return None
    return agent if isinstance(agent, str) else None


async def _as_shell(record: Record, caller: dict[str, Any]) -> None:
    name = f"{record.url} {caller['realm']} {caller['box']}"
    with _locked(platformdirs.user_state_path("readyroom") / "shell.json") as path:
        handles = _read(path)
        record.agent = await _checkin(record, handles.get(name))
        if handles.get(name) != record.agent:
            _write(path, {**handles, name: record.agent})


async def _checkin(record: Record, remembered: str | None) -> str:
    """Take the remembered handle up again; mint one when the record no longer knows it."""
    if remembered is not None:
        try:
            return str((await record.checkin(harness=ROLE, resume=remembered))["agent"])
        except Refused as refused:
            if refused.status not in (404, 409, 422):
                raise
    return str((await record.checkin(role=ROLE, harness=ROLE))["agent"])


def _warn_of_a_stale_handle(agent: str | None, answered_as: str | None) -> None:
    if agent is not None and answered_as is not None and answered_as != agent:
        sys.stderr.write(
            f"readyroom: READYROOM_AGENT is {inert(agent)}, which is no session of this box, so "
            f"this speaks as {inert(answered_as)}. Unset it, or start the program with `readyroom run`.\n"
        )


@contextmanager
def _locked(path: Path) -> Iterator[Path]:
    """Hold the file for this process: two first calls at a time mint one handle, not two."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield path


def _read(path: Path) -> dict[str, str]:
    try:
        handles = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(handles, dict):
        return {}
    return {name: handle for name, handle in handles.items() if isinstance(handle, str)}


def _write(path: Path, handles: dict[str, str]) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(handles, indent=1), encoding="utf-8")
    os.replace(fresh, path)
