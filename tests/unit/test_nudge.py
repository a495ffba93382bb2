"""The wire form of a nudge."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_bridge.nudge import Nudge


@given(st.text(), st.text(), st.integers())
def test_what_is_written_is_exactly_three_fields_and_reads_back(conv: str, sender: str, at: int) -> None:
    wire = Nudge(conv, sender, at).to_wire()
    assert wire == {"conv": conv, "from": sender, "at": at}
    assert Nudge.from_wire(wire) == Nudge(conv, sender, at)


def test_now_is_in_epoch_milliseconds() -> None:
    assert 1_700_000_000_000 < Nudge.now(conv="api", sender="a").at < 10_000_000_000_000


@pytest.mark.parametrize(
    "message",
    [
        None,
        "text",
        [],
        {},
        {"conv": "api", "from": "a"},
        {"conv": 1, "from": "a", "at": 1},
        {"conv": "api", "from": None, "at": 1},
        {"conv": "api", "from": "a", "at": "1"},
        {"conv": "api", "from": "a", "at": 1.5},
    ],
)
def test_anything_else_is_no_nudge(message: Any) -> None:
    assert Nudge.from_wire(message) is None
