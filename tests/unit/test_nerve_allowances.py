"""How many bytes a link of the nerve may send, over a clock of the test's own."""

from __future__ import annotations

from broker_bridge.allowances import Allowances, cost
from broker_bridge.limits import Bucket, Limits
from broker_bridge.nerve import Admission, Kind

LIMITS = Limits(
    stranger_frame=1000,
    stranger_bytes=1500,
    frame=100_000,
    listener_frame=3000,
    bytes_per_second=1000,
    bytes_burst=10_000,
    patience=3,
    strangers=2,
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
    assert not allowances.fits("link", 1100)
    assert allowances.spend("link", "x" * 1000, now=0) == 0
    assert allowances.spend("link", "x" * 600, now=1000) is None
    assert allowances.spend("unknown", "x", now=0) is None


def test_the_links_of_one_holder_share_and_the_next_waits() -> None:
    allowances = logged_in("one", "two")
    assert allowances.spend("one", "x" * 10_000, now=0) == 0
    assert allowances.spend("two", "x" * 2000, now=0) == 2
    assert allowances.spend("one", "x" * 100_001, now=0) is None


def test_whoever_comes_back_owes_on() -> None:
    allowances = logged_in("one")
    allowances.spend("one", "x" * 20_000, now=0)
    allowances.closed("one")
    allowances.opened("again", "here")
    allowances.admitted("again", admission(), now=5)
    assert allowances.spend("again", "x" * 2000, now=5) == 7


def test_the_record_is_not_counted() -> None:
    allowances = logged_in("one", kind="record")
    assert [allowances.spend("one", "x" * 100_000, now=0) for _ in range(3)] == [0, 0, 0]


def test_anonymous_listeners_of_an_address_share_and_send_small_frames() -> None:
    allowances = logged_in("one", kind="anonymous")
    allowances.opened("two", "here")
    allowances.admitted("two", admission("another", "anonymous"), now=0)
    assert not allowances.fits("two", 1100)
    assert [allowances.spend("one", "x" * 1000, now=0) for _ in range(10)] == [0] * 10
    assert allowances.spend("two", "x" * 1000, now=0) == 1


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


def test_a_cheap_frame_waits_little_for_what_others_of_its_holder_sent() -> None:
    allowances = logged_in("one", "two")
    assert allowances.spend("one", "x" * 90_000, now=0) == 80
    assert [allowances.spend("two", "x" * 125, now=0) for _ in range(7)] == [0] * 7
    assert allowances.spend("two", "x" * 1000, now=0) == 0.896
    assert [allowances.spend("two", "x" * 1000, now=0) for _ in range(3)] == [1.896, 2.896, 3]
    assert allowances.spend("two", "x" * 1001, now=0) == 85.897


def test_whoever_only_listens_sends_small_frames() -> None:
    allowances = Allowances(LIMITS)
    allowances.opened("link", "here")
    allowances.admitted("link", Admission("main", "work3", "consumer", "t1"), now=0)
    assert allowances.fits("link", 3000)
    assert not allowances.fits("link", 3001)


def test_the_smallest_packet_costs_something_before_the_login_and_after_it() -> None:
    allowances = logged_in("known")
    allowances.opened("stranger", "here")
    assert [allowances.spend("stranger", "3", now=0) for _ in range(12)][-2:] == [0, None]
    assert [allowances.spend("known", "3", now=0) for _ in range(86)][-1] == 0.024


def test_values_cost_more_than_their_length() -> None:
    assert cost("x" * 5000) == 5000
    assert cost(f"{'1,' * 50}1") == 101 + 50 * 32
    assert cost(b"1," * 500) == 1000
    assert cost("3") == 128
