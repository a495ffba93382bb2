"""How fast one caller may go, and how much there may be of a thing."""

from __future__ import annotations

import contextlib
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator

from api.errors import LimitReached, RateLimited

MANY = 10_000


class Rate:
    """A token bucket for each caller.

    Args:
        name: of the limit, in the RateLimit headers.
        what: is counted, in the plural.
        per_second: how many tokens come back in a second.
        burst: how many there are at most.
        clock: seconds, never going back.
    """

    def __init__(
        self,
        name: str,
        *,
        what: str,
        per_second: float,
        burst: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._what = what
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._buckets: dict[int, tuple[float, float]] = {}
        self._many = MANY

    def spend(self, agent_id: int) -> None:
        """Take one token.

        Raises:
            RateLimited: there is none; `retry_after` says in how many seconds there will be.
        """
        now = self._clock()
        tokens, since = self._buckets.get(agent_id, (float(self._burst), now))
        tokens = min(self._burst, tokens + (now - since) * self._per_second)
        if tokens < 1:
            wait = (1 - tokens) / self._per_second
            raise RateLimited(
                f"At most {self._per_second:g} {self._what} a second, {self._burst} in a burst. "
                f"Wait {(seconds := max(1, math.ceil(wait)))} s and send it again.",
                retry_after=seconds,
                limit=self._name,
                quota=self._burst,
                window_seconds=max(1, math.ceil(self._burst / self._per_second)),
            )
        if len(self._buckets) >= self._many:
            self._forget_full(now)
        self._buckets[agent_id] = (tokens - 1, now)

    def _forget_full(self, now: float) -> None:
        refill = self._burst / self._per_second
        self._buckets = {key: value for key, value in self._buckets.items() if now - value[1] < refill}
        self._many = max(MANY, 2 * len(self._buckets))


class Waiting:
    """How many calls of one caller may wait for something to arrive at a time.

    Args:
        most: so many.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._counts: Counter[int] = Counter()

    @contextlib.contextmanager
    def one(self, agent_id: int) -> Iterator[None]:
        """Count one call for as long as the block lasts.

        Raises:
            RateLimited: as many as may wait do.
        """
        if self._counts[agent_id] >= self._most:
            raise RateLimited(
                f"{self._most} of your calls wait already. One that waits is enough; end those that nobody "
                "reads, or call without wait_seconds.",
                retry_after=1,
                limit="waiting",
                quota=self._most,
                window_seconds=1,
            )
        self._counts[agent_id] += 1
        try:
            yield
        finally:
            self._counts[agent_id] -= 1
            if not self._counts[agent_id]:
                del self._counts[agent_id]


def check_ceiling(there: int, most: int, *, limit: str, what: str) -> None:
    """Refuse what would be one too many.

    Args:
        there: how many there are, the new one included.
        most: how many there may be.
        limit: the setting's name.
        what: is counted, in the plural.

    Raises:
        LimitReached: there are too many.
    """
    if there > most:
        raise LimitReached(limit=limit, what=what, most=most)
