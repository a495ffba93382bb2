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
from readyroom.doctor.box import clock, daemon, folder, nerve, programs, tmux, without_keys
from readyroom.doctor.findings import Finding, failed, ok, skipped
from readyroom.doctor.wake import wake

PATIENCE_SECONDS = 3.0
ANSWER_SECONDS = 5.0


async def examine() -> AsyncIterator[Finding]:
    """Every finding, as soon as it is there."""
    access, finding = _access()
    yield finding
    sound = access is not None
    box, findings = await _the_record(access)
    for finding in findings:
        sound = sound and finding.state == "ok"
        yield finding
    runtime = runtime_dir(os.environ)
    standing = await asyncio.to_thread(_standing, runtime)
    its_daemon = daemon(standing, access, box)
    for finding in (folder(runtime), its_daemon, nerve(standing)):
        yield finding
    sound = sound and its_daemon.state == "ok"
    for finding in (tmux(), *programs()):
        yield finding
    if access is None or not sound:
        yield skipped("wake", "not tried: record, token and notifier come first")
    elif (unable := without_keys(standing)) is not None:
        yield unable
    else:
        yield await wake(access, runtime)


def _access() -> tuple[Access | None, Finding]:
    try:
        access = Settings.load().access()
    except SettingsError as error:
        return None, failed("settings", "they do not say which record, or with which token", str(error))
    return access, ok("settings", f"{access.url}, from {access.source}")


async def _the_record(access: Access | None) -> tuple[str | None, list[Finding]]:
    """The token's box, where the record says one, and what was found."""
    if access is None:
        return None, []
    async with Record(access.url, access.token, patience=PATIENCE_SECONDS) as record:
        try:
            caller = await record.whoami()
        except Refused as refused:
            token = failed("token", f"the record refuses it ({refused.code})", in_commands(refused))
            return None, [ok("record", "it answers"), token]
        except RecordError as error:
            return None, [failed("record", "it does not answer", in_commands(error))]
        return caller["box"], [ok("record", "it answers"), _owner(caller), clock(record.answered_at)]


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
