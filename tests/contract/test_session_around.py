"""A command that runs in a session without being told its handle speaks as that session."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from notifier.programs.processes import look
from tests.contract.boxes import Box, box_of
from tests.http.running import Running, running, settings_for


@pytest.fixture
async def record(database_url: str, tmp_path: Path) -> AsyncIterator[Running]:
    async with running(settings_for(database_url, tmp_path)) as record:
        yield record


@pytest.fixture
async def box(record: Running) -> AsyncIterator[Box]:
    async with box_of(record) as box:
        await box.started()
        yield box


@pytest.mark.long
async def test_a_command_in_a_session_speaks_as_the_handle_that_the_notifier_gave_it(box: Box) -> None:
    async with box.resting(None) as agent:
        (row,) = (await box.ask(op="status"))["sessions"]
        assert (await agent.do("/catchup"))["polled"]["agent"] == row["agent"]


@pytest.mark.long
async def test_a_command_with_another_boxs_token_is_none_of_this_boxs_sessions(
    box: Box, record: Running
) -> None:
    other = await record.box("other")
    environ = {"READYROOM_TOKEN": other.token or "", "XDG_STATE_HOME": box.folder}
    async with box.resting(None, **environ) as agent:
        assert (await agent.do("/catchup"))["polled"]["agent"] == "other-agent-shell#1"


async def test_a_process_outside_every_session_is_in_none(box: Box) -> None:
    ours = look(os.getpid())
    assert ours is not None
    async with box.resting(None):
        answer = await box.ask(op="who", above=[{"pid": ours.pid, "started": ours.started}])
    assert answer == {"ok": True, "agent": None}
