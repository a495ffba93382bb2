"""Whose a handle is, and what it says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.errors import BadHandle
from api.services import handles
from api.services.handles import compose_agent_id

NAMES = st.from_regex(r"[a-z0-9]([a-z0-9._-]{0,20}[a-z0-9])?", fullmatch=True)


@given(box=NAMES, rest=NAMES, number=st.integers(1, 10**9))
def test_a_box_speaks_for_itself_and_for_what_begins_with_its_name_and_a_dash(
    box: str, rest: str, number: int
) -> None:
    own = f"{box}-{rest}#{number}"
    assert compose_agent_id(box, own) == own
    assert compose_agent_id(box, box) == box
    assert compose_agent_id(box, None) == box
    assert compose_agent_id(box, f"{box}{rest}") == box or rest.startswith("-")
    assert compose_agent_id(f"{box}x", own) == f"{box}x"


@given(st.text(max_size=140))
def test_a_text_is_a_handle_or_refused(text: str) -> None:
    if handles.is_handle(text):
        handle = handles.parse(text)
        assert handle.text == text
        assert text == (handle.label if handle.number is None else f"{handle.label}#{handle.number}")
    else:
        with pytest.raises(BadHandle):
            handles.parse(text)


@pytest.mark.parametrize(
    ("text", "label", "number", "role"),
    [
        ("work3-agent-reach#2", "work3-agent-reach", 2, "reach"),
        ("work3-agent-api-tests#1", "work3-agent-api-tests", 1, "api-tests"),
        ("work3-agent#12", "work3-agent", 12, None),
        ("work3-agent-reach", "work3-agent-reach", None, "reach"),
        ("work3-anything#4", "work3-anything", 4, None),
        ("work3-agentx#4", "work3-agentx", 4, None),
    ],
)
def test_a_handle_is_taken_apart(text: str, label: str, number: int | None, role: str | None) -> None:
    handle = handles.parse(text)
    assert (handle.label, handle.number, handle.role("work3")) == (label, number, role)


def test_a_session_answers_to_each_of_its_addresses_once() -> None:
    named = handles.parse("work3-agent-reach#2")
    assert handles.addresses(named, box="work3", role="reach") == (
        "work3-agent-reach#2",
        "work3-agent-reach",
        "reach",
        "work3",
        "everyone",
    )
    unnumbered = handles.parse("work3-anything")
    assert handles.addresses(unnumbered, box="work3", role=None) == ("work3-anything", "work3", "everyone")
