"""A small world for the demo and the bench: a record, two boxes with notifiers, a folder that goes away."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from notifier.control.client import Control
from notifier.paths import control_socket
from notifier.record import Record
from readyroom.demo.children import READYROOM, Child, StepFailed
from readyroom.demo.journal import Journal

START_SECONDS = 90.0
STEP_SECONDS = 45.0
DEAD_NERVE = "http://127.0.0.1:9"
"""The discard port: nobody listens there."""

Found = TypeVar("Found")


@dataclass(frozen=True)
class Box:
    """One pretended machine: a token, folders and a notifier of its own.

    `own` is what its environment has besides ours: names and paths, nothing secret.
    """

    name: str
    folder: Path
    own: dict[str, str]
    notifier: Child

    def token(self) -> str:
        """Its bearer token."""
        return (self.folder / "box.token").read_text()

    @property
    def journal(self) -> Journal:
        """What its agent writes down."""
        return Journal(self.folder / "agent.jsonl")

    def listens(self, *, nerve: bool) -> Literal[True] | None:
        """Whether its notifier runs, and hears the nerve where there is one."""
        try:
            with Control(control_socket(str(self.folder / "run"))) as control:
                answer = control.ask({"op": "status"})
        except OSError:
            return None
        return True if not nerve or answer["nerve"]["trouble"] is None else None

    def notifier_events(self) -> list[dict[str, Any]]:
        """The notifier's log so far."""
        return Journal(self.notifier.log).events()


@dataclass(frozen=True)
class Stage:
    """Everything that runs, and how to wait for what it does."""

    folder: Path
    url: str
    up: Child
    boxes: tuple[Box, Box]

    async def wait(
        self, what: str, look: Callable[[], Found | None], *, within: float = STEP_SECONDS
    ) -> Found:
        """Look until there is something to see.

        Raises:
            StepFailed: it did not come within `within` seconds, or a process ended before it came.
        """
        return await wait(what, look, (self.up, *(box.notifier for box in self.boxes)), within=within)


async def wait(
    what: str, look: Callable[[], Found | None], children: tuple[Child, ...], *, within: float
) -> Found:
    """Look every few milliseconds until there is something to see; see `Stage.wait`."""
    clock = asyncio.get_running_loop().time
    end = clock() + within
    while (found := look()) is None:
        for child in children:
            child.check()
        if clock() > end:
            raise StepFailed(f"Waited {within:.0f} s in vain for {what}.")
        await asyncio.sleep(0.01)
    return found


@asynccontextmanager
async def build(
    *, nerve: bool, sweep_seconds: float, notifier_options: Sequence[str] = (), parent: Path | None = None
) -> AsyncIterator[Stage]:
    """Start it all; on leaving, end every process and remove every folder.

    Its folder lies in `parent`, or where temporary ones do.

    Raises:
        StepFailed: something did not start in time.
    """
    folder = Path(tempfile.mkdtemp(prefix="readyroom-demo-", dir=parent))
    with ExitStack() as undo:
        undo.callback(_remove, folder)
        up = _start_record(folder, nerve=nerve)
        undo.callback(up.end, within=20)
        ready = folder / "record" / "up.json"
        url = await wait("the record", lambda: _url(ready), (up,), within=START_SECONDS)
        admin_token = (folder / "record" / "admin.token").read_text().strip()
        async with Record(url, admin_token) as operator:
            boxes = []
            for name in ("desk", "lab"):
                boxes.append(await _make_box(operator, folder, name, sweep_seconds, notifier_options))
                undo.callback(boxes[-1].notifier.end, within=10)
        stage = Stage(folder=folder, url=url, up=up, boxes=(boxes[0], boxes[1]))
        for box in boxes:
            await stage.wait(f"the notifier of {box.name}", partial(box.listens, nerve=nerve))
        yield stage


def _start_record(folder: Path, *, nerve: bool) -> Child:
    env = clean_environment() | ({} if nerve else {"READYROOM_NERVE_URL": DEAD_NERVE})
    data = str(folder / "record")
    command = [*READYROOM, "up", "--data-dir", data, "--port", "0", "--no-notifier"]
    return Child("the record", command, env=env, log=folder / "record.log")


def _url(ready: Path) -> str | None:
    try:
        return str(json.loads(ready.read_text())["url"])
    except (OSError, ValueError):
        return None


async def _make_box(
    operator: Record, folder: Path, name: str, sweep_seconds: float, notifier_options: Sequence[str]
) -> Box:
    """A box in a realm of the demo's own, so that it can't collide with this machine's name."""
    made = await operator.call("POST", "/v1/admin/boxes", {"name": name}, repeatable=False)
    home = folder / name
    runtime = home / "run"
    runtime.mkdir(parents=True, mode=0o700)
    token = home / "box.token"
    token.touch(mode=0o600)
    token.write_text(made["token"])
    own = {
        "HOME": str(home),
        "READYROOM_URL": operator.url,
        "READYROOM_TOKEN_FILE": str(token),
        "READYROOM_RUNTIME_DIR": str(runtime),
        "READYROOM_SWEEP_SECONDS": str(sweep_seconds),
    }
    log = home / "notifier.log"
    command = [*READYROOM, "notifier", *notifier_options]
    notifier = Child(f"the notifier of {name}", command, env=clean_environment() | own, log=log)
    return Box(name=name, folder=home, own=own, notifier=notifier)


def clean_environment() -> dict[str, str]:
    """Ours without what would lead a program to this user's own record, box, notifier or terminal."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("READYROOM_", "XDG_", "TMUX", "CLAUDE"))
    }


def _remove(folder: Path) -> None:
    """As root PostgreSQL keeps its cluster elsewhere, and a file says where."""
    location = folder / "record" / "postgres.location"
    if location.is_file():
        shutil.rmtree(location.read_text().strip(), ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
