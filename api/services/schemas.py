"""JSON Schemas that agents ask results to keep; both are untrusted, so each check can be ended."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from api.errors import BadField, ChecksBusy
from api.models import Caller

PROGRAM = Path(__file__).with_name("schema_check.py")
SECONDS = 5.0
"""By the clock; `schema_check` bounds the processor's time more tightly."""

AT_ONCE = 2
WAIT_SECONDS = 12.0
TOO_LONG = "checking it takes too long; use a simpler schema"
SCHEMA_BYTES = 32 * 1024

Fault = tuple[str | None, str]
"""Where it is, as a JSON path, and what does not do there."""


class Schemas:
    """Checks schemas and contents; a pattern that would run for ever is ended.

    Of one box's or person's one is checked at a time, and one waits for a place: so the places go round
    them, and no box keeps the others from having theirs checked. Within a box they go round its sessions.
    """

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(AT_ONCE)
        self._turns: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
        self._holders_turns: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    async def check_schema(self, caller: Caller, schema: Any) -> None:
        """See that this is a JSON Schema 2020-12 that refers to nothing outside itself.

        Raises:
            BadField: it is not.
            ChecksBusy: its turn did not come.
        """
        if len(msgspec.json.encode(schema)) > SCHEMA_BYTES:
            raise BadField("payload.output_schema", f"at most {SCHEMA_BYTES} bytes")
        faults = await self._faults(caller, {"schema": schema})
        if faults:
            raise BadField("payload.output_schema", _in_words(faults), paths=_paths(faults))

    async def check_content(self, caller: Caller, content: Any, schema: Any) -> None:
        """See that a result's content keeps the schema that was asked for.

        Raises:
            BadField: it does not; the detail names the paths that fail.
            ChecksBusy: its turn did not come.
        """
        faults = await self._faults(caller, {"schema": schema, "content": content})
        if faults:
            raise BadField(
                "payload.content",
                f"does not fit the schema that was asked for: {_in_words(faults)}",
                paths=_paths(faults),
            )

    @contextlib.asynccontextmanager
    async def _turn(self, caller: Caller) -> AsyncIterator[None]:
        holder_id = caller.agent_id if caller.box_id is None else caller.box_id
        turn = self._turns.setdefault(caller.agent_id, asyncio.Lock())
        holders_turn = self._holders_turns.setdefault(holder_id, asyncio.Lock())
        async with contextlib.AsyncExitStack() as held:
            try:
                async with asyncio.timeout(WAIT_SECONDS):
                    await held.enter_async_context(turn)
                    await held.enter_async_context(holders_turn)
                    await held.enter_async_context(self._places)
            except TimeoutError:
                raise ChecksBusy from None
            yield

    async def _faults(self, caller: Caller, question: dict[str, Any]) -> list[Fault]:
        async with self._turn(caller):
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-I",
                str(PROGRAM),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
            try:
                async with asyncio.timeout(SECONDS):
                    answer, _ = await process.communicate(msgspec.json.encode(question))
                return msgspec.json.decode(answer, type=list[Fault])
            except TimeoutError:
                return [(None, TOO_LONG)]
            except msgspec.DecodeError:
                used_up = await process.wait() == -signal.SIGXCPU
                return [(None, TOO_LONG if used_up else "the schema cannot be checked; use a simpler one")]
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()


def _in_words(faults: list[Fault]) -> str:
    return "; ".join(why if path is None else f"{path}: {why}" for path, why in faults)


def _paths(faults: list[Fault]) -> list[str]:
    return [path for path, _ in faults if path is not None]
