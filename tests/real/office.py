"""A whole Readyroom around real programs: `readyroom up` with its notifier, and another box that speaks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from notifier.control.client import Control
from notifier.paths import control_socket
from tests.real.waiting import until

READYROOM = (sys.executable, "-m", "readyroom")
START_SECONDS = 90.0


@dataclass(frozen=True)
class Office:
    """A running Readyroom.

    Attributes:
        data: its data folder.
        runtime: where its notifier listens.
        elsewhere: the environment of a shell on another box.
    """

    data: Path
    runtime: Path
    elsewhere: dict[str, str]

    @property
    def here(self) -> dict[str, str]:
        """What a shell on this box must know to find record and notifier."""
        return {"READYROOM_DATA_DIR": str(self.data), "READYROOM_RUNTIME_DIR": str(self.runtime)}

    def events(self, name: str) -> list[dict[str, Any]]:
        """What the notifier wrote down under a name, oldest first."""
        lines = (self.data / "notifier.log").read_text(encoding="utf-8").splitlines()
        return [event for event in map(json.loads, lines) if event["event"] == name]

    def answers(self) -> bool:
        """Whether all of it has started, the notifier last."""
        try:
            return (self.data / "up.json").exists() and self.sessions() == []
        except OSError:
            return False

    def log(self) -> str:
        """The end of what the notifier wrote down."""
        return (self.data / "notifier.log").read_text()[-3000:]

    def sessions(self) -> list[dict[str, Any]]:
        """What the notifier knows, as `readyroom status --json` would show it."""
        with Control(control_socket(str(self.runtime)), answer_within=20) as notifier:
            rows: list[dict[str, Any]] = notifier.ask({"op": "status"})["sessions"]
        return rows

    def status(self) -> Any:
        """What `readyroom status --json` shows."""
        return run("status", "--json", env={**clean(), **self.here})

    def session(self, agent: str) -> dict[str, Any]:
        """What the notifier knows of one session; empty when it knows none of this handle."""
        return next((row for row in self.sessions() if row["agent"] == agent), {})

    def join(self, agent: str, room: str) -> None:
        """Put a session of this box into a room."""
        run("join", room, env={**clean(), **self.here, "READYROOM_AGENT": agent})

    def say_elsewhere(self, room: str, body: str, *, urgent: bool = False) -> dict[str, Any]:
        """Say something from the other box; returns the message."""
        words = ["say", room, body, "--json", *(["--urgent"] if urgent else [])]
        message: dict[str, Any] = run(*words, env=self.elsewhere)["message"]
        return message

    def newcomer(self, room: str) -> str:
        """Check another session in on the other box, put it into a room, and return its handle."""
        agent: str = self._call("POST", "/v1/checkin", "", {})["agent"]
        self._call("POST", f"/v1/rooms/{room}/join", agent, {})
        return agent

    def say_as(self, agent: str, room: str, body: str) -> dict[str, Any]:
        """Say something as a session of the other box, at once; returns the message."""
        answer = self._call("POST", f"/v1/rooms/{room}/messages", agent, {"body": body})
        message: dict[str, Any] = answer["message"]
        return message

    def senders(self, room: str) -> list[str]:
        """Who has spoken in a room, in order."""
        messages = run("history", room, "--json", env=self.elsewhere)["messages"]
        return [message["sender"] for message in messages]

    def why_unread(self, message: dict[str, Any], agent: str) -> str | None:
        """Why an agent has not read a message, as its sender is told; None when it has."""
        known = self._call("GET", f"/v1/messages/{message['id']}", message["sender"])
        unread = known["receipt"]["unread_by"]
        return next((each["why"] for each in unread if each["agent"] == agent), None)

    def _call(self, method: str, path: str, agent: str, body: dict[str, Any] | None = None) -> Any:
        token = Path(self.elsewhere["READYROOM_TOKEN_FILE"]).read_text().strip()
        asked = urllib.request.Request(
            f"{self.elsewhere['READYROOM_URL']}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {token}",
                "X-Tyode-Agent": agent,
                "Content-Type": "application/json",
            },
        )
        with urllib.request.urlopen(asked, timeout=20) as answer:
            return json.load(answer)

    def start_elsewhere(self, room: str) -> None:
        """Start a room from the other box."""
        run("start", room, env=self.elsewhere)


@contextmanager
def opened(folder: Path, **env: str) -> Iterator[Office]:
    """Run everything in a folder, with a second box that holds a token of its own."""
    data, runtime = folder / "data", folder / "run"
    office = Office(data, runtime, elsewhere={})
    with (folder / "up.log").open("wb") as log:
        up = subprocess.Popen(
            [*READYROOM, "up", "--data-dir", str(data), "--port", "0"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**clean(), **office.here, **env},
        )
    try:
        until(lambda: office.answers() or up.poll() is not None, "a start", seconds=START_SECONDS)
        assert up.poll() is None, (folder / "up.log").read_text()
        office.elsewhere.update(_another_box(office, folder))
        yield office
    finally:
        up.send_signal(signal.SIGINT)
        up.wait(60)


def _another_box(office: Office, folder: Path) -> dict[str, str]:
    token = folder / "elsewhere.token"
    run("admin", "box", "add", "elsewhere", "--token-file", str(token), env={**clean(), **office.here})
    url = json.loads((office.data / "up.json").read_text())["url"]
    return {**clean(), "HOME": str(folder), "READYROOM_URL": url, "READYROOM_TOKEN_FILE": str(token)}


def run(*arguments: str, env: dict[str, str]) -> Any:
    """One command of the program; what it answers, decoded where it is JSON."""
    done = subprocess.run(
        [*READYROOM, *arguments], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return json.loads(done.stdout) if "--json" in arguments else None


def clean() -> dict[str, str]:
    """The environment without anything that Readyroom listens to."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("READYROOM_", "XDG_"))}
