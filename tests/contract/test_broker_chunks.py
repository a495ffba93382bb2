"""Messages in pieces: put together in whatever order they come, and never without bound."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_bridge.chunks import CHUNK, Budget, Transfers, cut
from broker_bridge.limits import Limits
from broker_bridge.sockets import Sockets
from tests.contract.test_broker_core import Hall, messages

pytestmark = pytest.mark.long


def piece(index: int, total: int, data: str, id: str = "t") -> dict[str, Any]:
    return {"transferId": id, "index": index, "total": total, "data": data}


def in_utf16(text: str, cuts: list[int]) -> list[str]:
    """Cut as JavaScript cuts: between any two UTF-16 units, in the middle of a character too."""
    units = text.encode("utf-16-le")
    ends = [0, *sorted(2 * (each % (len(units) // 2 + 1)) for each in cuts), len(units)]
    return [units[a:b].decode("utf-16-le", "surrogatepass") for a, b in itertools.pairwise(ends)]


@given(st.text(min_size=1), st.lists(st.integers(0, 10**6), max_size=6), st.data())
def test_pieces_become_the_message_however_they_come(text: str, cuts: list[int], data: st.DataObject) -> None:
    hall = Hall()
    hall.log_in("tool", "tok-tool")
    hall.log_in("ear", "tok-devmac", producer="build", event="log")
    whole = json.dumps({"event": "log", "from": "build", "message": text}, ensure_ascii=False)
    parts = in_utf16(whole, cuts)
    order = data.draw(st.permutations(range(len(parts))))
    for number in order[:-1]:
        hall.send("tool", "PRODUCE_CHUNK", piece(number, len(parts), parts[number]))
        hall.send("tool", "PRODUCE_CHUNK", piece(number, len(parts), parts[number]))
    assert hall.consumed("ear") == []
    hall.send("tool", "PRODUCE_CHUNK", piece(order[-1], len(parts), parts[order[-1]]))
    assert messages(hall, "ear") == [text]


@pytest.mark.parametrize(
    "bad",
    [
        None,
        "null",
        {},
        {"transferId": 7},
        piece(0, 0, "x"),
        piece(-1, 2, "x"),
        piece(2, 2, "x"),
        piece(0, -1, "x"),
        piece(0, 9, "x"),
        {**piece(0, 1, "x"), "total": True},
        {**piece(0, 1, "x"), "index": 0.0},
        {**piece(0, 1, "x"), "data": None},
        piece(0, 1, "null"),
        piece(0, 1, "[" * 100_000),
        piece(0, 1, '{"event": "log"}'),
    ],
    ids=lambda bad: str(bad)[:40],
)
def test_what_is_no_piece_or_becomes_no_message_is_told_so(bad: Any) -> None:
    hall = Hall(Limits(pieces=8))
    hall.log_in("tool", "tok-tool")
    hall.send("tool", "PRODUCE_CHUNK", bad)
    assert [error["code"] for error in hall.events("tool", "ERROR")] in ([-2], [-4])


def test_a_piece_that_does_not_fit_gives_its_transfer_up_and_leaves_the_others() -> None:
    limits = Limits(transfer=10, transfers=2, pieces=4, assembling=18)
    hall = Hall(limits)
    for id in ("tool", "next"):
        hall.log_in(id, "tok-tool")
    budget = hall.core._registry._budget

    def send(id: str, *wanted: Any) -> int:
        before = len(hall.events(id, "ERROR"))
        hall.send(id, "PRODUCE_CHUNK", piece(*wanted))
        return len(hall.events(id, "ERROR")) - before

    assert send("tool", 0, 3, "12345", "a") == send("tool", 0, 2, "1", "b") == 0
    assert send("tool", 0, 3, "12345", "a") == 0, "the same again"
    assert send("tool", 0, 2, "1", "c") == 1, "a third at once"
    assert send("tool", 1, 3, "123456", "a") == 1, "more than ten characters"
    assert send("tool", 0, 2, "123456789", "a") == 0, "a is begun anew"
    assert send("tool", 1, 3, "", "b") == 1, "another total"
    assert send("next", 0, 2, "1234567890", "a") == 1, "more than all may hold"
    assert send("next", 0, 2, "123456789", "a") == 0
    assert not budget.take(1)
    hall.perform(hall.core.disconnected("next"))
    hall.perform(hall.core.disconnected("tool"))
    assert budget.take(18)


def test_a_transfer_that_does_not_go_on_is_given_up() -> None:
    hall = Hall(Limits(transfer_seconds=30))
    hall.log_in("tool", "tok-tool")
    hall.send("tool", "PRODUCE_CHUNK", piece(0, 2, "x", "a"))
    begun = hall.now
    hall.now += 20
    hall.send("tool", "PRODUCE_CHUNK", piece(0, 2, "x", "b"))
    hall.perform(hall.core.tidy(now=begun + 29.9))
    assert hall.events("tool", "ERROR") == []
    hall.perform(hall.core.tidy(now=begun + 30))
    hall.perform(hall.core.tidy(now=begun + 40))
    assert [error["code"] for error in hall.events("tool", "ERROR")] == [-2]


def test_what_comes_again_behind_the_last_piece_begins_a_new_transfer() -> None:
    transfers = Transfers(Limits(), Budget(100))
    assert transfers.add(piece(0, 1, "whole"), now=0) == "whole"
    assert transfers.add(piece(0, 2, "who"), now=0) is None
    assert transfers.add(piece(1, 2, "le"), now=0) == "whole"


@pytest.mark.parametrize("text", ["x" * CHUNK, "é" * CHUNK, "🐟" * CHUNK, '"\\' * CHUNK])
def test_a_large_envelope_is_cut_into_pieces_that_anybody_can_join(text: str) -> None:
    envelope = {"event": "log", "message": text, "from": "build"}
    pieces = list(cut("CONSUME-build-log", envelope))
    assert [(each["index"], each["total"]) for each in pieces] == [
        (number, len(pieces)) for number in range(len(pieces))
    ]
    assert all(len(each["data"]) <= CHUNK and each["data"].isascii() for each in pieces)
    assert len({each["transferId"] for each in pieces}) == 1
    assert json.loads("".join(each["data"] for each in pieces)) == envelope
    assert len(Sockets.encode("CONSUME-build-log", envelope)) == len(pieces)


@pytest.mark.parametrize("text", ["x" * (CHUNK - 14), "é" * (CHUNK - 14), "🐟" * (CHUNK // 2 - 7)])
def test_an_envelope_of_just_the_largest_size_stays_whole(text: str) -> None:
    assert len(Sockets.encode("CONSUME-a-b", {"message": text})) == 1
    assert len(Sockets.encode("CONSUME-a-b", {"message": text + "x"})) > 1
