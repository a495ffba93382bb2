"""Codex's own way: `codex queue` leaves a message that an idle session takes up as a prompt."""

from __future__ import annotations

import asyncio
import os
import shutil

from notifier.sessions import Process, Session
from notifier.terminals.base import Hold
from notifier.terminals.process import life_hold_of
from notifier.wakers.base import Wake

_SECONDS = 15.0
_HOME = b"CODEX_HOME="


class CodexQueue:
    """Queues the line for the session's thread. A draft stays, and no dialog can be answered by it.

    The message is kept until it is taken up. After an interruption Codex takes up nothing before its next
    turn: no proof comes, and the next rung tries.
    """

    rung = "native"

    def fits(self, session: Session) -> bool:
        """Whether the session is one of Codex whose thread is known."""
        return session.program == "codex" and None not in (session.session_id, session.process)

    async def wake(self, session: Session, line: str) -> Wake:
        """Queue `line`, by the program that the session itself runs."""
        process, thread = session.process, session.session_id
        if process is None or thread is None:
            return Wake(sent=False, hold="no way to wake it")
        hold: Hold | None = life_hold_of(process) or await _queue(process, thread, line)
        return Wake(sent=hold is None, hold=hold)


async def _queue(process: Process, thread: str, line: str) -> Hold | None:
    program = _program(process)
    if program is None:
        return "no way to wake it"
    try:
        queue = await asyncio.create_subprocess_exec(
            *(program, "queue", "--thread", thread, "--message", line),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env={**os.environ, **_home(process)},
        )
    except OSError:
        return "no way to wake it"
    try:
        async with asyncio.timeout(_SECONDS):
            status = await queue.wait()
    except TimeoutError:
        queue.kill()
        await queue.wait()
        return "echo not seen"  # it may have been queued
    return None if status == 0 else "no way to wake it"


def _program(process: Process) -> str | None:
    """The session's own program, so that the versions agree; else, as after an update, the one on PATH."""
    try:
        own = os.readlink(f"/proc/{process.pid}/exe")
    except OSError:
        own = ""
    return own if os.path.exists(own) else shutil.which("codex")


def _home(process: Process) -> dict[str, str]:
    """CODEX_HOME as the session has it: its threads are kept there."""
    try:
        with open(f"/proc/{process.pid}/environ", "rb") as file:
            found = next((each for each in file.read().split(b"\0") if each.startswith(_HOME)), b"")
    except OSError:
        return {}
    return {"CODEX_HOME": os.fsdecode(found.removeprefix(_HOME))} if found else {}
