"""The token bucket by a clock of its own."""

from __future__ import annotations

import pytest

from api.errors import LimitReached, RateLimited
from api.services.limits import MANY, Rate, check_ceiling


class Clock:
    """Tells what it is set to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def rate(clock: Clock, *, per_second: float = 2, burst: int = 3) -> Rate:
    return Rate("say", what="messages", per_second=per_second, burst=burst, clock=clock)


def test_it_refuses_what_is_over_the_burst_and_gives_a_token_back_in_time() -> None:
    clock = Clock()
    bucket = rate(clock)
    for _ in range(3):
        bucket.spend(1)
    with pytest.raises(RateLimited) as refused:
        bucket.spend(1)
    assert refused.value.facts == {"retry_after": 1, "limit": "say", "quota": 3, "window_seconds": 2}
    bucket.spend(2)
    clock.now = 0.49
    with pytest.raises(RateLimited):
        bucket.spend(1)
    clock.now = 0.5
    bucket.spend(1)


def test_a_refusal_never_promises_too_early() -> None:
    bucket = rate(Clock(), per_second=0.4, burst=1)
    bucket.spend(1)
    with pytest.raises(RateLimited) as refused:
        bucket.spend(1)
    assert refused.value.facts["retry_after"] == 3


def test_it_forgets_the_quiet_and_remembers_the_loud_however_many_they_are() -> None:
    clock = Clock()
    bucket = rate(clock, burst=1)
    for caller in range(MANY):
        bucket.spend(caller)
    clock.now = 100.0
    for caller in range(MANY, 3 * MANY):
        bucket.spend(caller)
    assert len(bucket._buckets) == 2 * MANY
    with pytest.raises(RateLimited):
        bucket.spend(MANY)


def test_as_many_as_there_may_be_are_let_in() -> None:
    check_ceiling(2, 2, limit="rooms_per_realm", what="rooms")
    with pytest.raises(LimitReached) as refused:
        check_ceiling(3, 2, limit="rooms_per_realm", what="rooms")
    assert "READYROOM_ROOMS_PER_REALM" in refused.value.detail
