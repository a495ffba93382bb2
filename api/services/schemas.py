"""JSON Schemas that agents ask results to keep; both are untrusted, so each check can be ended."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec

from api.errors import BadField, ChecksBusy
from api.models import Caller
from api.services.turns import Turns

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

    No box or person keeps the others from having theirs checked.
    """

    def __init__(self) -> None:
        self._turns = Turns(AT_ONCE, wait_seconds=WAIT_SECONDS, busy=ChecksBusy)

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

    async def _faults(self, caller: Caller, question: dict[str, Any]) -> list[Fault]:
        async with self._turns.turn(caller):
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
