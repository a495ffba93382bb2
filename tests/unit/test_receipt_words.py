"""Receipts say why in the contract's words, whatever a notifier calls it."""

from __future__ import annotations

import datetime as dt
from typing import Any, get_args

import pytest

from api.services.receipts import why
from notifier.inbox import ladder
from notifier.terminals.base import Hold
from notifier.terminals.process import ProcessHold

WORDS = {
    "dialog open": "held: permission dialog open",
    "draft": "held: someone is typing",
    "recent key": "held: someone is typing",
    "busy": "busy",
    "output still moving": "busy",
    "offline": "offline",
    "pane gone": "no way to wake it",
    "process gone": "no way to wake it",
    "no answer": "no way to wake it",
    "not taken up": "no way to wake it",
    "no way to wake it": "no way to wake it",
    "suspended": "held: suspended",
    "not in front": "held: not in front",
    "another screen": "held: another screen",
    "input off": "held: input off",
    "copy mode": "held: copy mode",
    "synchronised panes": "held: synchronised panes",
    "composer not known": "held: composer not known",
    "echo not seen": "held: echo not seen",
    "its hooks have not spoken yet": "held: its hooks have not spoken yet",
    "state unknown": "held: state unknown",
    "no proof of the last wake": "held: no proof of the last wake",
    "woken, but it did not read": "held: woken, but it did not read",
    "a person is needed": "held: a person is needed",
    "nobody could be told": "held: nobody could be told",
    "a person was told": "held: a person was told",
    "wake budget used up": "held: wake budget used up",
    "loop_guard": "held: loop_guard",
    "nothing unread that may wake it": "held: nothing unread that may wake it",
}


def row(**changes: Any) -> dict[str, Any]:
    """What is known of a reader that is idle and was not woken."""
    nothing = dict.fromkeys(("expired", "retired", "has_left", "leased", "passed"), False)
    unknown = dict.fromkeys(("offline_since", "wake_rung", "wake_outcome", "wake_reason", "woken_seconds"))
    return {**nothing, **unknown, "state": "idle", **changes}


def known_holds() -> set[str]:
    """Every reason that a notifier of this release can give."""
    ours = {value for name, value in vars(ladder).items() if name.isupper() and isinstance(value, str)}
    return ours | set(ladder.STATE_HOLDS.values()) | {*get_args(Hold), *get_args(ProcessHold)}


def test_every_hold_has_its_words() -> None:
    assert known_holds() == set(WORDS)


@pytest.mark.parametrize(("reason", "words"), WORDS.items())
def test_a_hold_is_told_in_the_words_of_receipts(reason: str, words: str) -> None:
    assert why(row(wake_outcome="held", wake_reason=reason)) == words


HELD = {"wake_outcome": "held", "wake_reason": "draft"}
SENT = {"wake_outcome": "sent", "woken_seconds": 3.2}


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"expired": True, "retired": True, "leased": True, **HELD}, "expired"),
        ({"retired": True, "has_left": True, "state": "offline"}, "retired"),
        ({"has_left": True, "leased": True, "passed": True}, "left"),
        ({"leased": True, "passed": True, **HELD}, "leased"),
        ({"passed": True, "state": "offline"}, "skipped"),
        (
            {"state": "offline", "offline_since": dt.datetime(2026, 11, 30, 8, tzinfo=dt.UTC), **HELD},
            "offline since 2026-11-30T08:00:00Z",
        ),
        (SENT, "woken 3 s ago"),
        ({"wake_rung": "bell", **SENT}, "a person was told 3 s ago"),
        ({"state": "busy", **SENT}, "woken 3 s ago"),
        ({"state": "busy"}, "busy"),
        ({"state": "waiting"}, "held: permission dialog open"),
        ({"state": "suspended"}, "held: suspended"),
        ({"state": "unknown"}, "no way to wake it"),
        ({"state": "unknown", **HELD}, "not read yet"),
        ({}, "not read yet"),
    ],
    ids=str,
)
def test_the_strongest_thing_that_is_known_is_told(known: dict[str, Any], words: str) -> None:
    assert why(row(**known)) == words
