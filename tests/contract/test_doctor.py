"""`readyroom doctor` beside a real record and a real notifier; its throw-away session leaves nothing."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from notifier.daemon import Daemon, Parts
from notifier.paths import control_socket
from notifier.settings import Access, Ways
from notifier.wakers import Flags, Person, ladder
from readyroom import __version__
from readyroom.doctor import wake as throw_away
from tests.contract.boxes import Box, box_of
from tests.http.running import Running, running, settings_for, until

pytestmark = pytest.mark.long


@pytest.fixture
async def record(database_url: str, tmp_path: Path) -> AsyncIterator[Running]:
    async with running(settings_for(database_url, tmp_path)) as record:
        yield record


@pytest.fixture
async def box(record: Running) -> AsyncIterator[Box]:
    async with box_of(record) as box:
        yield box


@asynccontextmanager
async def notifier(box: Box, *, only: Ways | None = None) -> AsyncIterator[None]:
    """One that listens, and wakes as it is told to."""
    flags, person = Flags(), Person()
    wakers = ladder(box.folder, flags, person, only=only)
    parts = Parts(
        *(box.record.url, box.party.token or "", box.folder),
        wakers=wakers,
        flags=flags,
        person=person,
        version=__version__,
    )
    box.notifier = asyncio.create_task(Daemon(parts).run())

    async def hears() -> bool:
        return (await box.ask(op="status"))["nerve"]["trouble"] is None

    await until(lambda: os.path.exists(control_socket(box.folder)), "the notifier answers")
    await until(hears, "it hears the nerve")
    yield
    await box.stop()


async def doctor(box: Box, tmp_path: Path, *options: str, **environ: str) -> tuple[int, str]:
    """Its exit status, and what it printed."""
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("READYROOM_", "XDG_", "CLAUDE"))}
    done = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "readyroom", "doctor", *options),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={
            **keep,
            "HOME": str(home),
            "TMPDIR": str(home),
            "READYROOM_RUNTIME_DIR": box.folder,
            "READYROOM_URL": box.record.url,
            "READYROOM_TOKEN": box.party.token or "",
            **environ,
        },
    )
    out, _ = await done.communicate()
    assert done.returncode is not None
    return done.returncode, out.decode()


async def examined(box: Box, tmp_path: Path, **environ: str) -> tuple[int, dict[str, Any]]:
    """Its exit status, and its findings by check; each that failed says what mends it."""
    status, out = await doctor(box, tmp_path, "--json", **environ)
    answer = json.loads(out)
    assert answer["ok"] == (status == 0)
    assert [found for found in answer["checks"] if found["state"] == "failed" and not found["fix"]] == []
    assert (box.party.token or "") not in out
    return status, {found["check"]: found for found in answer["checks"]}


async def nothing_is_left(box: Box, tmp_path: Path) -> None:
    roster = (await box.party.get("/v1/agents")).body["agents"]
    assert [row["agent"] for row in roster if row["kind"] == "session"] == []
    assert (await box.party.get("/v1/unread")).body["agents"] == {}
    assert os.listdir(os.path.join(box.folder, "handles")) == []
    assert [name for name in os.listdir(tmp_path / "home") if name.startswith("readyroom-doctor")] == []


async def test_on_a_sound_box_a_session_is_woken_and_nothing_is_left(box: Box, tmp_path: Path) -> None:
    async with notifier(box):
        status, found = await examined(box, tmp_path)
        assert (status, found["wake"]["state"]) == (0, "ok"), found
        assert "was woken after" in found["wake"]["detail"]
        assert {found[check]["state"] for check in ("settings", "record", "token", "clock", "nerve")} == {
            "ok"
        }
        await nothing_is_left(box, tmp_path)


@pytest.mark.parametrize("only", ["native", "bell"])
async def test_where_nothing_is_typed_no_wake_is_tried_and_it_says_so(
    box: Box, tmp_path: Path, only: Ways
) -> None:
    async with notifier(box, only=only):
        status, found = await examined(box, tmp_path)
        assert (status, found["wake"]["state"]) == (0, "skipped"), found
        assert "not tried" in found["wake"]["detail"]
        assert "READYROOM_WAKE" in found["wake"]["fix"]


async def test_what_is_wrong_is_said_with_what_mends_it(box: Box, tmp_path: Path) -> None:
    status, found = await examined(box, tmp_path)
    assert (status, found["record"]["state"], found["notifier"]["state"]) == (1, "ok", "failed")
    assert found["wake"]["state"] == "skipped"
    _, found = await examined(box, tmp_path, READYROOM_TOKEN="no-such-token")
    assert found["token"]["state"] == "failed"
    _, found = await examined(box, tmp_path, READYROOM_URL="http://127.0.0.1:9")
    assert found["record"]["state"] == "failed"
    _, found = await examined(box, tmp_path, READYROOM_TOKEN="")
    assert found["settings"]["state"] == "failed"
    status, shown = await doctor(box, tmp_path)
    assert status == 1
    assert "failed   notifier     none answers\n" in shown
    assert "readyroom notifier install" in shown


async def test_a_session_that_cannot_be_woken_is_told_with_its_hold(
    box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throw_away, "STEP_SECONDS", 10.0)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    await box.started()  # its only waker reaches no pseudo-terminal
    found = await throw_away.wake(
        Access(box.record.url, SecretStr(box.party.token or ""), "the test"), box.folder
    )
    assert (found.state, bool(found.fix)) == ("failed", True)
    assert "no way to wake it" in found.detail
    (tmp_path / "home").mkdir()
    await nothing_is_left(box, tmp_path)
