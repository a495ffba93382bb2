"""What the replicas of a nerve tell each other: all of it arrives, and each text is short enough."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_bridge import parcels
from broker_bridge.nudge import Nudge
from broker_bridge.outbox import Parcel
from broker_bridge.parcels import LONGEST, Word, beat, read, written

NAME = st.text("abcdefghijklmnopqrstuvwxyz0123456789._-", min_size=1, max_size=64)
HANDLE = st.text("abcdefghijklmnopqrstuvwxyz0123456789._-#", min_size=1, max_size=128)
PARCELS = st.lists(
    st.builds(
        Parcel,
        NAME,
        st.frozensets(NAME, min_size=1, max_size=300),
        st.builds(Nudge, HANDLE.map("@{}".format), HANDLE, st.integers(0, 2**52)),
    ),
    max_size=40,
)


def told(texts: list[str]) -> dict[tuple[str, Nudge], set[str]]:
    names: dict[tuple[str, Nudge], set[str]] = {}
    for text in texts:
        word = read(text)
        assert word is not None
        assert word.by == "me"
        for parcel in word.parcels:
            names.setdefault((parcel.realm, parcel.nudge), set()).update(parcel.names)
    return names


@settings(deadline=None, max_examples=50)
@given(PARCELS)
def test_all_of_it_arrives_in_texts_that_a_notify_can_carry(sent: list[Parcel]) -> None:
    texts = list(written(sent, by="me"))
    assert all(len(text.encode()) <= LONGEST for text in texts)
    wanted: dict[tuple[str, Nudge], set[str]] = {}
    for parcel in sent:
        wanted.setdefault((parcel.realm, parcel.nudge), set()).update(parcel.names)
    assert told(texts) == wanted


def test_the_longest_names_of_all_still_fit() -> None:
    names = frozenset(f"{number:03}{'x' * 61}" for number in range(500))
    parcel = Parcel("r" * 64, names, Nudge("@" + "c" * 128, "s" * 128, 10**13))
    texts = list(written([parcel], by="me"))
    assert set().union(*told(texts).values()) == names
    assert max(map(len, texts)) <= LONGEST


def test_many_rooms_share_a_text() -> None:
    sent = [Parcel("main", frozenset({"work3"}), Nudge(f"room{n}", "a", n)) for n in range(1000)]
    texts = list(written(sent, by="me"))
    assert len(texts) < 15
    rooms = [parcel.nudge.conv for text in texts for parcel in (read(text) or Word("")).parcels]
    assert rooms == [f"room{n}" for n in range(1000)]


def test_there_is_nothing_in_a_text_but_who_where_and_when() -> None:
    (text,) = written([Parcel("main", frozenset({"work3"}), Nudge("api", "devmac-agent#1", 7))], by="me")
    assert json.loads(text) == {
        "by": "me",
        "nudges": [["main", {"conv": "api", "from": "devmac-agent#1", "at": 7}, ["work3"]]],
    }


def test_a_parcel_that_cannot_fit_stops_no_other() -> None:
    huge = Parcel("main", frozenset({"work3"}), Nudge("x" * LONGEST, "a", 1))
    small = Parcel("main", frozenset({"work3"}), Nudge("api", "a", 1))
    assert [word.parcels for text in written([huge, small], by="me") if (word := read(text))] == [(small,)]


def test_a_beat_and_a_last_word_carry_no_nudge() -> None:
    assert read(beat("me")) == Word("me")
    assert read(beat("me", last=True)) == Word("me", last=True)


@pytest.mark.parametrize(
    "text", ["", "beat", "[]", "{}", '{"by": 1}', '{"nudges": []}', "[" * 100_000, '{"by": ""}']
)
def test_what_is_no_text_of_ours_is_passed_over(text: str) -> None:
    assert read(text) is None


@settings(deadline=None, max_examples=50)
@given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=4)))
def test_rows_that_are_no_parcels_are_passed_over(rows: object) -> None:
    good = ["main", {"conv": "api", "from": "a", "at": 1}, ["work3", 7]]
    word = read(json.dumps({"by": "me", "nudges": [rows, good]}))
    assert word is not None
    assert word.parcels[-1] == Parcel("main", frozenset({"work3"}), Nudge("api", "a", 1))
    assert parcels.read(json.dumps({"by": "me", "nudges": rows})) is not None
