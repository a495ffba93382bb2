"""Notifications on this machine's desktop, by the system's own program for them.

(desktop-notifier, the library for this, says that it has shown what it could not show.)
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
from collections.abc import Mapping

_WITHIN_SECONDS = 5.0
_APPLE = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run"


def command_for(title: str, text: str, environ: Mapping[str, str] = os.environ) -> list[str] | None:
    """The command that shows a notification; None where there is no desktop that could."""
    if sys.platform == "darwin":
        return ["osascript", "-e", _APPLE, title, text]
    program = shutil.which("notify-send", path=environ.get("PATH"))
    if program is None or not _has_bus(environ):
        return None
    return [program, "--app-name=Readyroom", "--", title, text]


async def show(title: str, text: str) -> bool:
    """Show a notification; False where it was not taken."""
    command = command_for(title, text)
    if command is None:
        return False
    nowhere = asyncio.subprocess.DEVNULL
    try:
        child = await asyncio.create_subprocess_exec(*command, stdin=nowhere, stdout=nowhere, stderr=nowhere)
    except OSError:
        return False
    try:
        async with asyncio.timeout(_WITHIN_SECONDS):
            return await child.wait() == 0
    except TimeoutError:
        return False
    finally:
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()


def _has_bus(environ: Mapping[str, str]) -> bool:
    if environ.get("DBUS_SESSION_BUS_ADDRESS"):
        return True
    return os.path.exists(os.path.join(environ.get("XDG_RUNTIME_DIR", ""), "bus"))
