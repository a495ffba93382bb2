"""The doctor's round, from the settings to a real wake."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

from notifier.control.client import Control
from notifier.paths import control_socket, runtime_dir
from notifier.record import Record, RecordError, Refused
from notifier.settings import Access, Settings, SettingsError
from readyroom.commands import in_commands
from readyroom.doctor.box import clock, daemon, folder, nerve, programs, tmux
from readyroom.doctor.findings import Finding, failed, ok, skipped
from readyroom.doctor.wake import wake

PATIENCE_SECONDS = 3.0
ANSWER_SECONDS = 5.0


async def examine() -> AsyncIterator[Finding]:
    """Every finding, as soon as it is there."""
    access, finding = _access()
    yield finding
    sound = access is not None
    async for finding in _the_record(access):
        sound = sound and finding.state == "ok"
        yield finding
    runtime = runtime_dir(os.environ)
    standing = await asyncio.to_thread(_standing, runtime)
    for finding in (folder(runtime), daemon(standing, access), nerve(standing)):
        yield finding
    sound = sound and daemon(standing, access).state == "ok"
    for finding in (tmux(), *programs()):
        yield finding
    if access is None or not sound:
        yield skipped("wake", "not tried: record, token and notifier come first")
    else:
        yield await wake(access, runtime)


def _access() -> tuple[Access | None, Finding]:
    try:
        access = Settings.load().access()
    except SettingsError as error:
        return None, failed("settings", "they do not say which record, or with which token", str(error))
    return access, ok("settings", f"{access.url}, from {access.source}")


async def _the_record(access: Access | None) -> AsyncIterator[Finding]:
    if access is None:
        return
    async with Record(access.url, access.token, patience=PATIENCE_SECONDS) as record:
        try:
            caller = await record.whoami()
        except Refused as refused:
            yield ok("record", "it answers")
            yield failed("token", f"the record refuses it ({refused.code})", in_commands(refused))
            return
        except RecordError as error:
            yield failed("record", "it does not answer", in_commands(error))
            return
        yield ok("record", "it answers")
        yield _owner(caller)
        yield clock(record.answered_at)


def _owner(caller: dict[str, Any]) -> Finding:
    if caller["kind"] == "person":
        return failed(
            "token",
            f"it is {caller['agent']}'s, a person's",
            "A person's token does not belong on a box. Name a box's token in READYROOM_TOKEN_FILE "
            "(`readyroom admin box add NAME --token-file FILE` makes one).",
        )
    return ok("token", f"it is box {caller['box']}'s, realm {caller['realm']}")


def _standing(runtime: str) -> dict[str, Any] | None:
    """What the notifier says of itself; None when none answers."""
    try:
        with Control(
            control_socket(runtime), connect_within=ANSWER_SECONDS, answer_within=ANSWER_SECONDS
        ) as control:
            return control.ask({"op": "status"})
    except (OSError, ValueError):
        return None
