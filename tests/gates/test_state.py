"""A session that works or asks its human something is not touched: from its hooks to the last byte."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from notifier.programs import find
from notifier.wakers.keystrokes import Pty, Tmux
from tests.contract.boxes import Box, box_of, say, speaker_in
from tests.contract.terminals import needs_tmux, program_of, until_async
from tests.gates.rigs import Count, PtyRig, TmuxRig
from tests.http.running import Party, Running, running, settings_for

pytestmark = pytest.mark.long

ROOM = "api"
MESSAGES = 3
Call = dict[str, Any]

START: Call = {"hook_event_name": "SessionStart", "source": "startup"}
PROMPT: Call = {"hook_event_name": "UserPromptSubmit"}
ASKS: Call = {"hook_event_name": "PermissionRequest"}
COMPACTS: Call = {"hook_event_name": "PreCompact"}
COMPACTED: Call = {"hook_event_name": "SessionStart", "source": "compact"}
STOP: Call = {"hook_event_name": "Stop"}


@dataclass(frozen=True)
class Gate:
    """A state that forbids a wake, the hook calls that lead to it, and the hold that it is reported by."""

    name: str
    calls: Sequence[Call]
    hold: str


GATES = (
    Gate("busy", (PROMPT,), "busy"),
    Gate("a dialog is open", (PROMPT, ASKS), "dialog open"),
    Gate("compaction runs", (COMPACTS,), "busy"),
    Gate("a turn goes on after a compaction", (PROMPT, COMPACTS, COMPACTED), "busy"),
)


@dataclass
class Seated:
    """A program in a terminal whose hooks reach a running notifier."""

    rig: PtyRig | TmuxRig
    box: Box
    handle: str

    async def calls(self, call: Call) -> None:
        """Say what a hook of Claude Code says with this JSON."""
        program = find("claude-code")
        assert program is not None
        told = program.understand("", call)
        assert told is not None
        session = self.rig.session
        await self.box.ask(
            op="hook",
            event=told.event,
            resting=told.resting,
            program="plain",
            agent=self.handle,
            process=asdict(session.process or program_of(self.rig.record)),
            sure=True,
            tmux=session.tmux and asdict(session.tmux),
            pty_socket=session.pty_socket,
        )


@pytest.fixture
async def record(database_url: str, tmp_path: Path) -> AsyncIterator[Running]:
    async with running(settings_for(database_url, tmp_path)) as record:
        yield record


@pytest.fixture
async def box(record: Running) -> AsyncIterator[Box]:
    async with box_of(record) as box:
        box.typists = (Pty(), Tmux())
        await box.started()
        yield box


@pytest.fixture
async def speaker(record: Running) -> AsyncIterator[Party]:
    async with speaker_in(record, ROOM) as speaker:
        yield speaker


async def holds(seated: Seated, gate: Gate, rung: str, speaker: Party, count: Count) -> None:
    """Messages come in while the gate is closed, and nothing is typed; they wake once it opens."""
    rig, box = seated.rig, seated.box
    for call in (START, *gate.calls):
        await seated.calls(call)
    for number in range(1, MESSAGES + 1):
        await say(speaker, ROOM, f"news {number}")
        await box.until_row(seated.handle, unread=number, hold=gate.hold)
    count.tried(MESSAGES)
    rig.press(b"!")
    await until_async(lambda: rig.record.bytes.endswith(b"!"), "the sentinel")
    count.zero(rung, gate.name, gate.hold, rig.record.bytes[:-1])

    rig.press(b"\x7f")
    await seated.calls(STOP)
    await until_async(lambda: rig.record.bytes.endswith(b"\r"), "the wake at the turn's end")
    count.tried()
    count.typed(rung, f"{gate.name}: over", None, rig.record.bytes.removeprefix(b"!\x7f"))


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.name)
async def test_pty_a_session_in_this_state_gets_nothing(
    pty_rig: Callable[..., PtyRig], box: Box, speaker: Party, count: Count, gate: Gate
) -> None:
    seated = Seated(pty_rig(), box, await box.session(ROOM))
    await holds(seated, gate, "pty", speaker, count)


@needs_tmux
@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.name)
async def test_tmux_a_session_in_this_state_gets_nothing(
    tmux_rig: Callable[..., TmuxRig], box: Box, speaker: Party, count: Count, gate: Gate
) -> None:
    seated = Seated(tmux_rig(), box, await box.session(ROOM))
    await holds(seated, gate, "tmux", speaker, count)
