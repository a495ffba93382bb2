"""`readyroom status` as a table."""

from __future__ import annotations

from typing import Any

import pytest

from readyroom.screen import Screen
from readyroom.status import _show

SESSION = {
    "agent": "desk-agent#1",
    "program": "claude-code",
    "state": "idle",
    "dialog": False,
    "draft": False,
    "unread": 3,
    "rung": "pty",
    "last_wake": {"rung": "pty", "outcome": "read", "reason": None},
    "woken_seconds_ago": 5.2,
    "hold": None,
    "second_process": None,
}


@pytest.mark.parametrize(
    ("facts", "shown"),
    [
        ({}, "desk-agent#1 claude-code idle 3 pty read (pty, 5 s ago)"),
        ({"woken_seconds_ago": 7300.0}, "read (pty, 2 h ago)"),
        ({"woken_seconds_ago": 59.7}, "read (pty, 59 s ago)"),
        ({"last_wake": None, "woken_seconds_ago": None, "rung": None}, "idle 3 none"),
        ({"state": "waiting", "dialog": True, "hold": "dialog open"}, "waiting, a dialog is open 3"),
        ({"draft": True, "hold": "draft"}, "idle, a draft is typed 3"),
        ({"second_process": 77}, "idle, also process 77 3"),
    ],
)
def test_a_session_is_one_line(facts: dict[str, Any], shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    part = {"url": "http://127.0.0.1:7666", "trouble": None}
    answer = {"pid": 7, "version": "1", "record": part, "nerve": part, "sessions": [{**SESSION, **facts}]}
    _show(Screen(as_json=False), answer)
    row = capsys.readouterr().out.splitlines()[-1]
    assert shown in " ".join(row.split())
