"""How many bytes a link of the nerve may send, over a clock of the test's own."""

from __future__ import annotations

from broker_bridge.allowances import Allowances, cost
from broker_bridge.limits import Bucket, Limits
from broker_bridge.nerve import Admission, Kind

LIMITS = Limits(
    stranger_frame=10, stranger_bytes=15, frame=1000, bytes_per_second=10, bytes_burst=100, strangers=2
)


def admission(name: str = "build", kind: Kind = "client") -> Admission:
    return Admission("main", name, "both", "t1", kind)


def logged_in(*links: str, kind: Kind = "client") -> Allowances:
    allowances = Allowances(LIMITS)
    for link in links:
        allowances.opened(link, "here")
        allowances.admitted(link, admission(kind=kind), now=0)
    return allowances


def test_a_bucket_that_is_owed_to_says_when_it_is_even() -> None:
    bucket = Bucket(per_second=10, burst=100, now=0)
    assert bucket.owe(100, 0) == 0
    assert bucket.owe(50, 0) == 5
    assert bucket.owe(0, 4) == 1
    assert bucket.owe(0, 1000) == 0
    assert bucket.owe(101, 1000) == 0.1


def test_a_stranger_sends_small_frames_and_few() -> None:
    allowances = Allowances(LIMITS)
    allowances.opened("link", "here")
    assert not allowances.fits("link", 11)
    assert allowances.spend("link", "x" * 10, now=0) == 0
    assert allowances.spend("link", "x" * 6, now=1000) is None
    assert allowances.spend("unknown", "x", now=0) is None


def test_the_links_of_one_holder_share_and_the_next_waits() -> None:
    allowances = logged_in("one", "two")
    assert allowances.spend("one", "x" * 100, now=0) == 0
    assert allowances.spend("two", "x" * 20, now=0) == 2
    assert allowances.spend("one", "x" * 1001, now=0) is None


def test_whoever_comes_back_owes_on() -> None:
    allowances = logged_in("one")
    allowances.spend("one", "x" * 200, now=0)
    allowances.closed("one")
    allowances.opened("again", "here")
    allowances.admitted("again", admission(), now=5)
    assert allowances.spend("again", "x" * 10, now=5) == 6


def test_the_record_is_not_counted() -> None:
    allowances = logged_in("one", kind="record")
    assert [allowances.spend("one", "x" * 1000, now=0) for _ in range(3)] == [0, 0, 0]


def test_anonymous_listeners_of_an_address_share_and_send_small_frames() -> None:
    allowances = logged_in("one", kind="anonymous")
    allowances.opened("two", "here")
    allowances.admitted("two", admission("another", "anonymous"), now=0)
    assert not allowances.fits("two", 11)
    assert [allowances.spend("one", "x" * 10, now=0) for _ in range(10)] == [0] * 10
    assert allowances.spend("two", "x" * 10, now=0) == 1


def test_the_strangers_of_an_address_are_a_crowd_until_they_log_in_or_go() -> None:
    allowances = Allowances(LIMITS)
    for link, address in (("a", "here"), ("b", "here"), ("c", "there"), ("d", "here")):
        allowances.opened(link, address)
    assert allowances.crowd("there") == []
    assert allowances.crowd("here") == ["a", "b", "d"]
    allowances.admitted("b", admission(), now=0)
    assert allowances.crowd("here") == []
    for link in ("a", "b", "c", "d", "nobody"):
        allowances.closed(link)
    assert allowances.crowd("here") == allowances.crowd("there") == []


def test_values_cost_more_than_their_length() -> None:
    assert cost("x" * 50) == 50
    assert cost("1,1,1") == 5 + 2 * 32
    assert cost(b"1,1,1") == 5
