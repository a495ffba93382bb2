"""Which events a subscription hears."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_bridge.guard import readable
from broker_bridge.limits import Bucket
from broker_bridge.subscriptions import Subscription, fold, reserved, topic_matches


@pytest.mark.parametrize(
    ("pattern", "heard", "not_heard"),
    [
        ("conv/+/msg", ["conv/42/msg"], ["conv/msg", "conv/1/2/msg", "conv/42/msg/x"]),
        ("conv/#", ["conv", "conv/42", "conv/42/msg"], ["con", "room/42"]),
        ("#", ["msg", "a/b/c"], []),
        ("+", ["msg"], ["a/b"]),
        ("conv", ["conv"], ["conv/1"]),
        ("a/#/b", ["a/#/b"], ["a/x/b"]),
    ],
)
def test_topics(pattern: str, heard: list[str], not_heard: list[str]) -> None:
    assert [topic_matches(pattern, event) for event in heard] == [True] * len(heard)
    assert [topic_matches(pattern, event) for event in not_heard] == [False] * len(not_heard)


@given(st.sampled_from(["agent-comms", "agent", "tool"]), st.text(max_size=12))
def test_only_the_records_pair_is_ever_delivered_under_its_name(producer: str, event: str) -> None:
    for name in ("agent-comms", "agent", "TYO-MQ-ALL", producer):
        for wanted in ("msg", "comms-msg", "#", event or "e"):
            for topic in (False, True):
                one = Subscription(fold(name), fold(wanted), "ear", topic)
                if one.delivered == "CONSUME-agent-comms-msg" and one.matches(fold(producer), fold(event)):
                    assert (fold(producer), fold(event)) == ("agent-comms", "msg")


@pytest.mark.parametrize(
    "pair",
    [
        ("agent-comms", "x"),
        ("Agent-COMMS", "msg"),
        ("agent", "Comms-msg"),
        ("agent-comm\N{LATIN SMALL LETTER LONG S}", "x"),
        ("\N{FULLWIDTH LATIN SMALL LETTER A}gent-comms", "x"),
        ("agent-comms ", "x"),
        (" agent", "com ms-msg"),
    ],
)
def test_what_reads_like_the_record_is_reserved(pair: tuple[str, str]) -> None:
    assert reserved(*pair)
    assert not reserved("build", "done")


@pytest.mark.parametrize("text", ["2", "3", "3probe", "5", "1", "40", "42[]", "2probe", "4" + "2" * 5000])
def test_packets_are_let_through(text: str) -> None:
    assert readable(text)


@pytest.mark.parametrize("text", ["", "9", "x", "4", "4[", "4[[[[", "\0", "b64", "3" + "[" * 5000, "7"])
def test_what_is_no_packet_is_not(text: str) -> None:
    assert not readable(text)


def test_a_bucket_gives_its_burst_and_then_its_rate() -> None:
    bucket = Bucket(per_second=2, burst=3, now=0)
    assert [bucket.take(0) for _ in range(4)] == [True, True, True, False]
    assert [bucket.take(0.5), bucket.take(0.5)] == [True, False]
    assert [bucket.take(100) for _ in range(4)] == [True, True, True, False]
