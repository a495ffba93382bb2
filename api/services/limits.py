"""How much one agent may say."""

from __future__ import annotations

import time
from collections.abc import Callable

from api.errors import RateLimited

MANY = 10_000


class Rate:
    """A token bucket an agent.

    Args:
        per_second: how many tokens come back in a second.
        burst: how many there are at most.
        clock: seconds, never going back.
    """

    def __init__(self, *, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._buckets: dict[int, tuple[float, float]] = {}

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
                f"At most {self._per_second:g} messages a second, {self._burst} in a burst. "
                f"Wait {wait:.1f} s and send it again.",
                retry_after=max(1, round(wait)),
            )
        if len(self._buckets) >= MANY:
            self._forget_full(now)
        self._buckets[agent_id] = (tokens - 1, now)

    def _forget_full(self, now: float) -> None:
        refill = self._burst / self._per_second
        self._buckets = {key: value for key, value in self._buckets.items() if now - value[1] < refill}
