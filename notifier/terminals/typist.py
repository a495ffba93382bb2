"""How a line is typed: look, paste, see the echo, look again, Enter. The same for every terminal."""

from __future__ import annotations

import asyncio
import time

from notifier.terminals.base import QUIET_SECONDS, Hold, Terminal, closed_gate

ECHO_SECONDS = 3.0
"""How long a program may take to show what was pasted, and then to come to rest."""

_STEP = 0.03


class BadLine(ValueError):
    """The line can't be typed as one line."""


async def type_line(terminal: Terminal, line: str) -> Hold | None:
    """Type `line` and submit it, if every gate is open; return the gate that was closed, else None.

    Sends nothing at all while a gate is closed. When the echo is not seen, a human presses a key, or the
    program's output does not come to rest, Enter is not pressed and the text is left where it is: it is a
    draft from then on, and nothing is ever cleaned up.

    Raises:
        BadLine: `line` is empty or holds control characters.
    """
    check_line(line)
    hold = closed_gate(await terminal.look()) or await terminal.paste(line)
    if hold is not None:
        return hold
    pasted = time.monotonic()
    hold = await _settled(terminal, line, pasted)
    return hold or await terminal.enter(line)


def check_line(line: str) -> None:
    """Refuse what would be more than text in a terminal.

    Raises:
        BadLine: `line` is empty, longer than 1000 characters, or holds control characters.
    """
    if not line.strip() or len(line) > 1000 or not line.isprintable():
        raise BadLine("a wake is one line of 1 to 1000 printable characters")


async def _settled(terminal: Terminal, line: str, pasted: float) -> Hold | None:
    """Wait until the echo is there and the program rests; None when Enter may be pressed."""
    hold: Hold = "echo not seen"
    while (waited := time.monotonic() - pasted) < ECHO_SECONDS:
        await asyncio.sleep(_STEP)
        look = await terminal.look()
        if look.hold is not None:
            return look.hold
        if look.key_age is not None and look.key_age < time.monotonic() - pasted:
            return "recent key"
        if waited < QUIET_SECONDS or not await terminal.shows(line):
            continue
        if look.output_age is None or look.output_age >= QUIET_SECONDS:
            return None
        hold = "output still moving"
    return hold
