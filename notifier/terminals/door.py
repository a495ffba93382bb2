"""The socket of one `readyroom run`: the notifier asks there for a look, or for a wake. One JSON line each.

- `{"op": "look"}` answers `hold`, `draft`, `key_age`, `output_age`, `bracketed`, `alternate`.
- `{"op": "wake", "line": …, "process": {"pid": …, "started": …}}` answers `{"sent": true, "hold": null}` or
  `{"sent": false, "hold": <why>}`; the gates are judged here, at the moment of typing. `process` is who is to
  be woken: another one may have inherited the socket's path, and what stands in front here is not it then.
- `{"op": "ring"}` rings the bell of the human's terminal, and answers as a wake does. Nothing is typed.
- Anything else answers `{"error": …}`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any, get_args

from notifier.sessions import Process
from notifier.terminals.base import Hold, Terminal
from notifier.terminals.typist import ECHO_SECONDS, BadLine, type_line

_REQUEST_SECONDS = 2.0
_ANSWER_SECONDS = ECHO_SECONDS + 2.0
_LIMIT = 16 * 1024
_USAGE = 'ask {"op": "look"}, {"op": "wake", "line": "…", "process": {…}} or {"op": "ring"}'


@asynccontextmanager
async def door(
    path: str,
    terminal: Terminal,
    *,
    ring: Callable[[], Hold | None],
    hold_of: Callable[[Process], Hold | None],
) -> AsyncIterator[None]:
    """Answer at the unix socket `path` (mode 600) while the context is open.

    `ring` rings the bell of the human's terminal, or says why it did not. `hold_of` says why a process is not
    the one in front here, if so.

    Raises:
        OSError: the socket cannot be made.
    """
    typing = asyncio.Lock()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError, ValueError, asyncio.IncompleteReadError):
            async with asyncio.timeout(_REQUEST_SECONDS):
                line = await reader.readline()
            writer.write(json.dumps(await answer_to(line)).encode() + b"\n")
            await writer.drain()
        writer.close()

    async def answer_to(line: bytes) -> dict[str, Any]:
        try:
            match json.loads(line):
                case {"op": "look"}:
                    return asdict(await terminal.look())
                case {"op": "wake", "line": str(text), "process": {"pid": int(pid), "started": int(started)}}:
                    async with typing:
                        return _done(hold_of(Process(pid, started)) or await type_line(terminal, text))
                case {"op": "ring"}:
                    return _done(ring())
                case _:
                    return {"error": _USAGE}
        except (BadLine, ValueError) as error:
            return {"error": str(error)}
        except RecursionError:
            return {"error": _USAGE}

    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    mask = os.umask(0o177)
    try:
        server = await asyncio.start_unix_server(answer, path, limit=_LIMIT)
    finally:
        os.umask(mask)
    try:
        yield
    finally:
        server.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def _done(hold: Hold | None) -> dict[str, Any]:
    return {"sent": hold is None, "hold": hold}


async def wake_through(path: str, line: str, process: Process) -> Hold | None:
    """Have the `readyroom run` behind the socket `path` type `line`; None when it did, else why it did not.

    It does so only where `process` is in front on its terminal.

    Raises:
        BadLine: `line` cannot be typed as one line.
    """
    return await _have_done(path, {"op": "wake", "line": line, "process": asdict(process)})


async def ring_through(path: str) -> Hold | None:
    """Have the `readyroom run` behind the socket `path` ring its human's bell; None when it did."""
    try:
        return await _have_done(path, {"op": "ring"})
    except BadLine:  # it is of a release that knows no bell
        return "nobody could be told"


async def _have_done(path: str, request: dict[str, Any]) -> Hold | None:
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            answer = await _ask(path, request)
    except (FileNotFoundError, ConnectionRefusedError):
        return "process gone"
    except (OSError, TimeoutError, ValueError):
        return "no answer"
    if "error" in answer:
        raise BadLine(answer["error"])
    if answer.get("sent"):
        return None
    hold: Hold = answer["hold"] if answer.get("hold") in get_args(Hold) else "no answer"
    return hold


async def _ask(path: str, request: dict[str, Any]) -> dict[str, Any]:
    reader, writer = await asyncio.open_unix_connection(path, limit=_LIMIT)
    try:
        writer.write(json.dumps(request).encode() + b"\n")
        await writer.drain()
        answer: dict[str, Any] = json.loads(await reader.readline())
        return answer
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
