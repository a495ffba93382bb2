"""`readyroom run`: start an agent program as a session of its own, on a pseudo-terminal of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import selectors
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from notifier import paths
from notifier.control.client import Control
from notifier.errors import UnsafeFolder
from notifier.programs.codex_setup import for_session
from notifier.record import Record, RecordError
from notifier.settings import Access, Settings
from notifier.terminals.child import CommandError
from notifier.terminals.door import door
from notifier.terminals.outer import Outer
from notifier.terminals.relay import Relay
from readyroom.claim import Claim, check_in
from readyroom.entrance import WrongUsageError, enter
from readyroom.waking import waking

PROGRAMS = {"claude": "claude-code", "codex": "codex", "gemini": "gemini", "opencode": "opencode"}
"""Command -> the program that it starts; every other command is `plain`."""

_TELL_SECONDS = 5.0
_GOODBYE_SECONDS = 2.0
_PATIENCE_SECONDS = 3.0
"""How long a human who wants to begin is made to wait for a record that does not answer."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True, slots=True)
class Launch:
    """What is to be run, and as whom.

    Attributes:
        command: the program and its arguments.
        program: `claude-code`, `codex`, …, `plain`.
        role: the session's role, if any.
        rooms: rooms that it joins.
        new: mint a handle, even where an earlier one could be taken up again.
    """

    command: list[str]
    program: str
    role: str | None
    rooms: list[str]
    new: bool


def main(argv: list[str]) -> int:
    """Run the command; `argv[0]` is its name."""
    return enter(app, argv[1:], name="readyroom run")


@app.command(context_settings={"allow_interspersed_args": False})
def run(
    command: Annotated[list[str], typer.Argument(help="The program and its arguments, after `--`.")],
    role: Annotated[str | None, typer.Option(help="The session's role, such as `reviewer`.")] = None,
    room: Annotated[
        list[str] | None,
        typer.Option(help="A room to join; started where there is none. May be given again."),
    ] = None,
    new: Annotated[
        bool, typer.Option("--new", help="Be a new session; take no earlier one up again.")
    ] = False,
    program: Annotated[
        str | None, typer.Option("--for", help="Which program it is, where its name does not tell.")
    ] = None,
) -> None:
    """Start an agent program as a session of its own.

    It takes up the newest offline session of this box, role, program and folder again. The program is given
    its handle in READYROOM_AGENT, and a terminal that the notifier can type into while nobody else does. It
    lives as long as this command: if `readyroom run` is killed, the kernel hangs the program up (SIGHUP).
    """
    if shutil.which(command[0]) is None:
        raise WrongUsageError(f"{command[0]} is no program that can be run here. Check its name and PATH.")
    name = program or PROGRAMS.get(os.path.basename(command[0]), "plain")
    launch = Launch(command, name, role, room or [], new)
    try:
        status = _run(launch)
    except (CommandError, UnsafeFolder, OSError) as error:
        sys.stderr.write(f"readyroom: {error}\n")
        status = 1
    raise typer.Exit(status)


def _run(launch: Launch) -> int:
    settings = Settings.load()
    waking(settings)  # the notifier would hear of a slip too late to tell
    access = settings.access()
    folder = paths.runtime_dir(os.environ)
    paths.private(folder)
    claim = asyncio.run(_enter_the_record(access, launch, folder))
    # select() takes every kind of standard input; epoll refuses files, kqueue some terminals.
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())) as runner:
        status = runner.run(_relay(launch, claim, access, folder))
    asyncio.run(_leave_the_record(access, claim.agent))
    claim.release()
    return status


async def _enter_the_record(access: Access, launch: Launch, folder: str) -> Claim:
    async with Record(access.url, access.token, patience=_PATIENCE_SECONDS) as record:
        claim = await check_in(record, launch.program, launch.role, new=launch.new, folder=folder)
        record.agent = claim.agent
        try:
            for room in launch.rooms:
                await record.start(room)
        except RecordError:
            await _leave_the_record(access, claim.agent)
            raise
    return claim


async def _leave_the_record(access: Access, agent: str) -> None:
    """Say that the session is offline; it stays known, so that it can be taken up again."""
    with contextlib.suppress(RecordError, TimeoutError):
        async with asyncio.timeout(_GOODBYE_SECONDS), Record(access.url, access.token, patience=0) as record:
            await record.presence([{"agent": agent, "state": "offline"}])


async def _relay(launch: Launch, claim: Claim, access: Access, folder: str) -> int:
    control = paths.control_socket(folder)
    socket_path = os.path.join(os.path.dirname(control), f"run-{os.getpid()}.sock")
    paths.private(os.path.dirname(control))
    environ = {
        **os.environ,
        "READYROOM_URL": access.url,
        "READYROOM_TOKEN": access.token.get_secret_value(),
        "READYROOM_AGENT": claim.agent,
        "READYROOM_PTY": socket_path,
    }
    command = for_session(launch.command) if launch.program == "codex" else launch.command
    relay = Relay(command, environ=environ, outer=Outer(), program=launch.program)
    request = {
        "agent": claim.agent,
        "program": launch.program,
        "tty": relay.terminal.tty,
        "pty_socket": socket_path,
        "cwd": os.getcwd(),
    }
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(
            door(socket_path, relay.terminal, ring=relay.ring, hold_of=relay.hold_of)
        )
        await stack.enter_async_context(_known_to_the_notifier(control, relay, request))
        return await relay.run()


@asynccontextmanager
async def _known_to_the_notifier(control: str, relay: Relay, session: dict[str, Any]) -> AsyncIterator[None]:
    """Tell the notifier of the session, again and again: it may start later, or start anew."""
    telling = asyncio.create_task(_tell(control, relay, session))
    try:
        yield
    finally:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)
        _ask(control, {"op": "ended", "agent": session["agent"]})


async def _tell(control: str, relay: Relay, session: dict[str, Any]) -> None:
    await relay.child.started.wait()
    while (process := relay.child.process) is not None:
        request = {**session, "op": "launched", "process": asdict(process)}
        await asyncio.to_thread(_ask, control, request)
        await asyncio.sleep(_TELL_SECONDS)


def _ask(control: str, request: dict[str, Any]) -> None:
    """One request to the notifier, if there is one."""
    with contextlib.suppress(OSError, ValueError), Control(control) as notifier:
        notifier.ask(request)
