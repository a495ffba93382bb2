"""What others say steers nothing and passes for nothing, wherever it is shown."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Callable

import pytest

from notifier.daemon.handover import CHARACTERS, handed_text
from tests.acceptance.payloads import PAYLOADS, WORD, steering
from tests.acceptance.test_cli import READYROOM, Shell, here, operator, room, shells, there, tokens, up

pytestmark = pytest.mark.long

__all__ = ["here", "operator", "room", "shells", "there", "tokens", "up"]

SURFACES: dict[str, Callable[[str, int, str], list[str]]] = {
    "poll": lambda room, id_, thread: ["poll"],
    "history": lambda room, id_, thread: ["history", room],
    "thread": lambda room, id_, thread: ["history", room, "--thread", thread],
    "message": lambda room, id_, thread: ["message", str(id_)],
    "search": lambda room, id_, thread: ["search", WORD, "--room", room],
    "export": lambda room, id_, thread: ["export", room],
}
"""Each surface: the command that shows a message there."""

OURS = re.compile(
    r"""
    | [a-z0-9-]+\ \#\d+\ ·\ [-0-9T:Z]+(\ ·\ [a-z. ]+)*             # where a message stands
    | \[message\ from\ (work3|build7)-agent-shell\#\d+(,\ [a-z ]+(\ \#\d+)?)*\]
    | reader\ +read\ +not\ read,\ because | (work3|build7)-agent-shell\#\d+\ .*   # a receipt's table
    | \d+\ more\ unread.* | More\ is\ unread.* | \(cut\ here;.*\)
    | \\?\#\ [a-z0-9-]+ | \#\#\ .*                                # an export's headings
    """,
    re.VERBOSE,
)
QUOTED = ("> ", "    > ")


def check(surface: str, shown: str) -> None:
    """Nothing steers, and each line is quoted or one of our own."""
    assert steering(shown) == set(), surface
    plain = shown.replace("\\", "") if surface == "export" else shown
    strange = [line for line in plain.split("\n") if not line.startswith(QUOTED) and not OURS.fullmatch(line)]
    assert strange == [], surface
    assert WORD in shown or "cut here" in shown, surface


@pytest.mark.parametrize("name", PAYLOADS)
def test_it_is_inert_on_every_surface(name: str, room: str, here: Shell, there: Shell) -> None:
    body = PAYLOADS[name]
    asked = there.json("say", room, "begin", "--type", "task.request")["message"]
    said = here.json("say", room, "--reply-to", str(asked["id"]), stdin=body + "\n")["message"]
    assert said["body"] == body
    marker = f"[message from {said['sender']}, reply to #{asked['id']}] "
    for surface, command in SURFACES.items():
        check(surface, there.run(*command(room, said["id"], asked["thread_id"])).stdout)
    for arguments in (["search", WORD], ["export", room]):
        document = there.run(*arguments, "--json").stdout
        assert document.isascii(), arguments
        assert steering(document) == set(), arguments
    (row,) = [m for m in there.json("history", room)["messages"] if m["id"] == said["id"]]
    assert row["text"].startswith(marker)
    assert steering(row["text"]) == set()
    handed = handed_text("build7-agent#1", [row], when="at the end of the turn")
    assert len(handed) <= CHARACTERS
    ours = [line for line in handed.splitlines() if not line.startswith("> ")][1:]
    assert [
        line for line in ours if not re.fullmatch(r"|#\d+ in .*|\[message from .*\]|\(cut here.*\)", line)
    ] == []
    assert sum(line.startswith("[message from") for line in ours) == 1
    assert marker.strip() in ours


def test_it_is_inert_in_a_tail(room: str, here: Shell, there: Shell) -> None:
    tail = subprocess.Popen(
        [*READYROOM, "tail", room], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=there.env
    )
    assert tail.stdout is not None
    assert tail.stderr is not None
    assert b"Ctrl-C" in tail.stderr.readline()
    for body in PAYLOADS.values():
        here.run("say", room, stdin=body + "\n")
    here.run("say", room, f"{WORD} is the end")
    shown = b""
    while not shown.endswith(b"is the end\n"):
        shown += tail.stdout.readline()
    tail.send_signal(signal.SIGINT)
    tail.communicate(timeout=30)
    check("tail", shown.decode())
    assert (
        len(re.findall(r"^\[message from work3-agent-shell#\d+\]$", shown.decode(), re.M))
        == len(PAYLOADS) + 1
    )


def test_it_is_inert_where_nobody_took_it(room: str, here: Shell, there: Shell) -> None:
    there.run("leave", room)
    for body in PAYLOADS.values():
        here.run("say", room, "--ttl", "0.1", stdin=body + "\n")
    reports: list[dict[str, str]] = []
    while len(reports) < len(PAYLOADS):
        batch = here.json("poll", "--wait", "20")
        reports += [m for group in batch["rooms"] for m in group["messages"]]
    shown = here.run("undelivered").stdout.replace("Undelivered: it expired unread.\n", "")
    check("undelivered", shown)
    for report in reports:
        assert steering(report["text"]) == set()
