"""A client in a process of its own, made to be killed: `traffic.py PLAN`, where PLAN is a JSON file.

It keeps a journal, one line a fact, and begins where the journal ends. A writer repeats a message under its
client_id, a reader a poll under its poll_key, until an answer is in the journal. Standard library only.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

PAUSE_SECONDS = 0.02
CALL_SECONDS = 30.0


class Client:
    """One agent with its connection and its journal."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self._connection: http.client.HTTPConnection | None = None
        self._journal = os.open(plan["journal"], os.O_RDWR | os.O_CREAT | os.O_APPEND)
        text = Path(plan["journal"]).read_text()
        self.past = [json.loads(line) for line in text.splitlines()]

    def note(self, **fact: Any) -> None:
        """Write one line, whole or not at all."""
        os.write(self._journal, json.dumps(fact).encode() + b"\n")

    def call(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer, however often it must be asked for."""
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
                status, answer = self._once(path, json.dumps(body))
                if status < 300:
                    return answer
                if status != 503:
                    raise SystemExit(f"{path} was refused: {answer}")
            time.sleep(PAUSE_SECONDS)

    def _once(self, path: str, body: str) -> tuple[int, dict[str, Any]]:
        if self._connection is None:
            self._connection = http.client.HTTPConnection(
                "127.0.0.1", self.plan["port"], timeout=CALL_SECONDS
            )
        try:
            headers = {"Authorization": f"Bearer {self.plan['token']}", "X-Tyode-Agent": self.plan["agent"]}
            self._connection.request("POST", path, body, headers | {"Content-Type": "application/json"})
            answer = self._connection.getresponse()
            return answer.status, json.loads(answer.read())
        except BaseException:
            self._connection.close()
            self._connection = None
            raise


def write(client: Client) -> None:
    rooms, name = client.plan["rooms"], client.plan["agent"]
    for turn in range(len(client.past), client.plan["messages"]):
        body = f"{name} {turn}"
        said = client.call(
            f"/v1/rooms/{rooms[turn % len(rooms)]}/messages", {"body": body, "client_id": body}
        )
        client.note(id=said["message"]["id"])


def read(client: Client) -> None:
    lease, key, turn = _where_it_was(client.past)
    while True:
        if lease is not None and turn % 2:
            client.call("/v1/ack", {"lease": lease})
            lease = None
            client.note(acked=True)
        if key is None:
            key = os.urandom(8).hex()
            client.note(key=key, seen=lease)
        asked = {"ack": client.plan["ack"], "poll_key": key, "limit": 40, "wait_seconds": 0.5}
        polled = client.call("/v1/poll", asked | ({"seen": lease} if lease else {}))
        got = [
            (room["room"], message["id"], bool(message.get("redelivered")))
            for room in polled["rooms"]
            for message in room["messages"]
        ]
        key, lease, turn = None, polled["lease"], turn + 1
        client.note(got=got, lease=lease)
        if not got and Path(client.plan["stop"]).exists():
            return


def _where_it_was(past: list[dict[str, Any]]) -> tuple[str | None, str | None, int]:
    """The lease that is still open, the key of a poll without an answer, and how many were answered."""
    lease: str | None = None
    key: str | None = None
    turn = 0
    for fact in past:
        if "key" in fact:
            key = fact["key"]
        elif "acked" in fact:
            lease = None
        else:
            key, lease, turn = None, fact["lease"], turn + 1
    return lease, key, turn


if __name__ == "__main__":
    plan = json.loads(Path(sys.argv[1]).read_text())
    (read if "ack" in plan else write)(Client(plan))
