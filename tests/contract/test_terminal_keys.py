"""What the bytes of a human's terminal say about the draft, however they are cut."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from notifier.terminals.keys import SPLIT_SECONDS, Keys

REPORTS = {
    "cursor position": b"\x1b[12;40R",
    "device attributes": b"\x1b[?62;22c",
    "secondary attributes": b"\x1b[>1;4402;0c",
    "status": b"\x1b[0n",
    "mode": b"\x1b[?2026;2$y",
    "kitty flags": b"\x1b[?1u",
    "colour scheme": b"\x1b[?997;1n",
    "focus gained": b"\x1b[I",
    "focus lost": b"\x1b[O",
    "mouse press": b"\x1b[<0;12;7M",
    "mouse release": b"\x1b[<0;12;7m",
    "mouse, urxvt": b"\x1b[32;12;7M",
    "mouse, first form": b"\x1b[M !!",
    "window size": b"\x1b[8;30;100t",
    "background colour": b"\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\",
    "colour, ended by BEL": b"\x1b]4;1;rgb:ffff/0000/0000\x07",
    "terminal's name": b"\x1bP>|xterm(390)\x1b\\",
    "graphics": b"\x1b_Gi=31;OK\x1b\\",
}


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_what_a_terminal_says_by_itself_is_no_key(report: bytes) -> None:
    keys = Keys()
    keys.feed(report, 1.0)
    assert (keys.draft, keys.last_key) == ("empty", None)


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_a_report_that_comes_in_two_pieces_is_no_key_either(report: bytes) -> None:
    for cut in range(1, len(report)):
        keys = Keys()
        keys.feed(report[:cut], 1.0)
        assert keys.draft == "unknown" or cut == len(report)
        keys.feed(report[cut:], 1.0 + SPLIT_SECONDS / 2)
        assert (keys.draft, keys.last_key) == ("empty", None), cut


@pytest.mark.parametrize(
    ("typed", "draft"),
    {
        b"": "empty",
        b"a": "draft",
        "ü".encode(): "draft",
        "ü\x7f".encode(): "empty",
        "日本\x7f".encode(): "draft",
        b"ab\x7f\x7f": "empty",
        b"ab\x7f": "draft",
        b"\x7f\x7fa": "draft",
        b"ab\x7f\x7f\x7fc\x7f": "empty",
        b"hello\r": "empty",
        b"hello\rw": "draft",
        b"hello\x03": "empty",
        b"hello\x15": "empty",
        b"one\ntwo": "draft",
        b"one\ntwo\x15": "unknown",
        b"continued\\\r": "draft",
        b"continued\\\rdone\r": "empty",
        b"see @src/ma\r": "unknown",
        b"see @src/main.py now\r": "empty",
        b"see @src/ma\r\r": "empty",
        b"/compact\r": "empty",
        b"\x1b[200~pasted\x1b[201~": "draft",
        b"\x1b[200~pasted\r\nlines\r\x1b[201~": "draft",
        b"\x1b[200~pasted\x1b[201~\r": "empty",
        b"\x1b[200~\x1b[201~": "unknown",
        b"\x1b[200~not over yet\r": "unknown",
        b"\x1b[A": "unknown",
        b"\x1b[A\r": "empty",
        b"\x1bOA": "unknown",
        b"\x1bOM": "empty",
        b"a\x1b[D\x7f": "unknown",
        b"a\x1b[D\x03": "empty",
        b"\t": "unknown",
        b"\x1b\r": "draft",
        b"\x1bb": "unknown",
        b"\x19": "unknown",
        b"\x12": "unknown",
        b"\x0c": "empty",
        b"\x1a": "empty",
        b"\x01\x05\x17": "empty",
        b"ab\x17": "unknown",
        b"\x1b[97u": "draft",
        b"\x1b[97;1:3u": "empty",
        b"\x1b[97;65u": "draft",
        b"a\x1b[127u": "empty",
        b"a\x1b[13u": "empty",
        b"a\x1b[13;2u": "draft",
        b"a\x1b[99;5u": "empty",
        b"a\x1b[117;5u": "empty",
        b"a\x1b[27;5;99~": "empty",
        b"\x1b[57441u": "empty",
        b"\x1b[57352u": "unknown",
        b"\x1b[27u": "unknown",
    }.items(),
)
def test_typing_tells_what_stands_in_the_composer(typed: bytes, draft: str) -> None:
    keys = Keys()
    keys.feed(typed, 1.0)
    assert keys.draft == draft
    assert (keys.last_key is None) == (typed == b"")


def test_an_escape_that_stands_alone_is_the_key_and_the_next_enter_submits() -> None:
    keys = Keys()
    keys.feed(b"\x1b", 1.0)
    assert keys.draft == "unknown"
    keys.feed(b"\r", 5.0)
    assert (keys.draft, keys.last_key) == ("empty", 5.0)


def test_an_alt_bracket_does_not_swallow_what_is_typed_after_it() -> None:
    keys = Keys()
    keys.feed(b"\x1b]", 1.0)
    for number, key in enumerate(b"draft"):
        keys.feed(bytes([key]), 1.5 + number)
        assert keys.draft != "empty"
    keys.feed(b"\r", 9.0)
    assert keys.draft == "empty"


def test_a_line_feed_submits_only_where_the_kernel_edits_the_line() -> None:
    for canonical, draft in ((True, "empty"), (False, "draft")):
        keys = Keys()
        keys.feed(b"see @file\n", 1.0, canonical=canonical)
        assert keys.draft == draft


def test_what_a_wake_left_behind_is_a_draft_until_it_is_erased_or_submitted() -> None:
    keys = Keys()
    keys.left("/catchup")
    seen = [keys.draft]
    for erased in (b"\x7f" * 7, b"\x7f"):
        keys.feed(erased, 1.0)
        seen.append(keys.draft)
    assert seen == ["draft", "draft", "empty"]


PIECES = [
    *REPORTS.values(),
    b"a",
    b"\r",
    b"\x7f",
    b"\x03",
    "é".encode(),
    b"\x1b[A",
    b"\x1b[200~x\x1b[201~",
    b"\t",
]


@given(st.lists(st.sampled_from(PIECES), max_size=12), st.data())
def test_it_makes_no_difference_how_the_bytes_are_cut(pieces: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(pieces)
    whole, cut = Keys(), Keys()
    whole.feed(stream, 1.0)
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        cut.feed(stream[:size], 1.0)
        stream = stream[size:]
    assert (cut.draft, cut.last_key) == (whole.draft, whole.last_key)


@pytest.mark.parametrize(
    "keys",
    [b"\x1b[99999999u", b"\x1b[1114112u", b"\x1b[" + b"9" * 5000 + b"u", b"\x1b[97;" + b"9" * 5000 + b"u"],
)
def test_a_key_that_is_none_is_survived(keys: bytes) -> None:
    typed = Keys()
    typed.feed(keys, 1.0)
    assert typed.draft == "unknown"


@given(st.binary(max_size=40))
@example(b"\xc2\x00")
@example(b"\xc2\x00\xc2\x00\xc2")
def test_no_bytes_at_all_confuse_it_for_good(noise: bytes) -> None:
    keys = Keys()
    keys.feed(noise, 1.0)
    keys.feed(b"\x1b[201~", 2.0)  # ends a paste, if one was begun
    keys.feed(b"\x03", 3.0)
    assert keys.draft == "empty"
