"""One box for the notifier's tests: a real record, a real daemon, scripted agents, and a waker for them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from notifier.control.client import Control
from notifier.daemon import Daemon, Parts
from notifier.inbox import Policy
from notifier.paths import control_socket
from notifier.sessions import Session
from notifier.wakers import Flags, Wake, Waker
from notifier.wakers.native import Native
from tests.http.running import DEADLINE, Party, Running, until

SCRIPTED = Path(__file__).with_name("scripted.py")


@dataclass
class Agent:
    """A scripted agent program that runs, and everything that it answered."""

    child: asyncio.subprocess.Process
    handle: str | None
    answers: list[dict[str, Any]] = field(default_factory=list)

    async def do(self, line: str) -> dict[str, Any]:
        """Have it do one thing, and wait until it is done."""
        before = len(self.answers)
        self.type(line)
        await until(lambda: len(self.answers) > before, f"{line} is done")
        return self.answers[before]

    async def hook(self, event: str, program: str = "plain", **given: object) -> dict[str, Any]:
        """Have it call a hook."""
        return await self.do(f"hook {event} --for {program}\t{json.dumps(given)}")

    def type(self, line: str) -> None:
        """Hand it a line, as a terminal would."""
        assert self.child.stdin is not None
        self.child.stdin.write(f"{line}\n".encode())

    def read(self) -> list[str]:
        """The bodies that it has polled, in order."""
        polls = [answer["polled"] for answer in self.answers if answer["line"] == "/catchup"]
        return [m["body"] for poll in polls for room in poll.get("rooms", ()) for m in room["messages"]]

    def catchups(self) -> int:
        """How often it was told to catch up."""
        return sum(answer["line"] == "/catchup" for answer in self.answers)

    async def listen(self) -> None:
        """Collect its answers until it ends."""
        assert self.child.stdout is not None
        async for line in self.child.stdout:
            self.answers.append(json.loads(line))


@dataclass
class Sitter:
    """Whoever sits at the box, and cannot be told anything while `away`."""

    away: bool = False
    told: list[str] = field(default_factory=list)

    rung = "bell"

    def fits(self, session: Session) -> bool:
        """They are told of every session."""
        return True

    async def wake(self, session: Session, line: str) -> Wake:
        """Tell them."""
        if self.away:
            return Wake(sent=False, hold="nobody could be told")
        self.told.append(session.agent)
        return Wake(sent=True)


@dataclass
class Box:
    """A box with its token, its runtime folder, its agents, and its notifier.

    Attributes:
        typists: the rungs below the native one; without any the box itself is that rung.
    """

    record: Running
    party: Party
    folder: str
    policy: Policy
    typists: Sequence[Waker] = ()
    agents: dict[int, Agent] = field(default_factory=dict)
    wakes: list[str] = field(default_factory=list)
    flags: Flags = field(default_factory=Flags)
    notifier: asyncio.Task[None] | None = None

    deaf: bool = False
    """Its agents are woken, and do not hear it."""
    person: Sitter = field(default_factory=lambda: Sitter())
    bell: bool = False

    rung = "stdin"

    def fits(self, session: Session) -> bool:
        """This box is a waker too: it reaches the scripted agents that it started."""
        return session.process is not None and session.process.pid in self.agents

    async def wake(self, session: Session, line: str) -> Wake:
        """Hand the line to the agent's standard input."""
        assert session.process is not None
        self.wakes.append(session.agent)
        if not self.deaf:
            self.agents[session.process.pid].type(line)
        return Wake(sent=True)

    def start(self, url: str | None = None) -> None:
        """Start the notifier."""
        parts = Parts(
            url=url or self.record.url,
            token=self.party.token or "",
            folder=self.folder,
            wakers=(Native(self.folder, self.flags), *(self.typists or (self,))),
            flags=self.flags,
            person=self.person,
            bell=self.bell,
            policy=self.policy,
        )
        self.notifier = asyncio.create_task(Daemon(parts).run())

    async def started(self) -> None:
        """Start the notifier and wait until it answers."""
        self.start()
        await until(lambda: os.path.exists(control_socket(self.folder)), "the notifier answers")

    async def stop(self) -> None:
        """Stop the notifier."""
        assert self.notifier is not None
        self.notifier.cancel()
        await asyncio.gather(self.notifier, return_exceptions=True)

    async def ask(self, **request: object) -> dict[str, Any]:
        """Ask the notifier through its door."""

        def ask() -> dict[str, Any]:
            with Control(control_socket(self.folder), answer_within=DEADLINE) as control:
                return control.ask(request)

        return await asyncio.to_thread(ask)

    async def row(self, handle: str) -> dict[str, Any]:
        """What the notifier knows of a session; empty when it does not know it."""
        sessions = (await self.ask(op="status"))["sessions"]
        return next((row for row in sessions if row["agent"] == handle), {})

    async def until_row(self, handle: str, **facts: object) -> None:
        """Wait until the notifier knows all these facts of a session."""

        async def holds() -> bool:
            return facts.items() <= (await self.row(handle)).items()

        await until(holds, f"{handle} is {facts}")

    async def until_state(self, handle: str, state: str) -> None:
        """Wait until the record says so."""

        async def holds() -> bool:
            rows = (await self.party.get("/v1/agents")).body["agents"]
            return any(row["agent"] == handle and row["state"] == state for row in rows)

        await until(holds, f"the record says that {handle} is {state}")

    @contextlib.asynccontextmanager
    async def agent(self, handle: str | None, **environ: str) -> AsyncIterator[Agent]:
        """Run a scripted agent; its hooks have not spoken yet."""
        keep = {
            name: value for name, value in os.environ.items() if not name.startswith(("READYROOM_", "TMUX"))
        }
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            str(SCRIPTED),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=1 << 20,
            env={
                **keep,
                "READYROOM_RUNTIME_DIR": self.folder,
                "READYROOM_URL": self.record.url,
                "READYROOM_TOKEN": self.party.token or "",
                **({"READYROOM_AGENT": handle} if handle else {}),
                **environ,
            },
        )
        agent = Agent(child, handle)
        self.agents[child.pid] = agent
        listening = asyncio.create_task(agent.listen())
        try:
            yield agent
        finally:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()
            await listening

    @contextlib.asynccontextmanager
    async def resting(self, handle: str | None, **environ: str) -> AsyncIterator[Agent]:
        """A scripted agent that waits for input."""
        async with self.agent(handle, **environ) as agent:
            await agent.hook("session-start")
            yield agent

    async def session(self, room: str, role: str | None = None) -> str:
        """A new handle of this box, in a room."""
        party = await self.record.session(self.party, role)
        assert (await party.post("/v1/rooms", {"name": room})).status in (200, 201)
        return str(party.agent)


@contextlib.asynccontextmanager
async def box_of(record: Running, name: str = "desk", **policy: Any) -> AsyncIterator[Box]:
    """A box whose notifier has not been started."""
    party = await record.box(name)
    with tempfile.TemporaryDirectory(prefix="rr-") as folder:
        box = Box(record, party, folder, Policy(**policy))
        try:
            yield box
        finally:
            if box.notifier is not None and not box.notifier.done():
                await box.stop()


@contextlib.asynccontextmanager
async def speaker_in(record: Running, room: str, name: str = "lab") -> AsyncIterator[Party]:
    """A session of another box, in a room."""
    party = await record.session(await record.box(name))
    assert (await party.post("/v1/rooms", {"name": room})).status in (200, 201)
    yield party


async def say(party: Party, room: str, body: str, **more: object) -> int:
    """Say something; returns the message's id."""
    said = await party.post(f"/v1/rooms/{room}/messages", {"body": body, **more})
    assert said.status == 201, said
    return int(said.body["message"]["id"])
