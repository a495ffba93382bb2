"""When to look at the unread counts: soon after a nudge, at every edge, once a sweep; one at a time."""

from __future__ import annotations

from notifier.inbox.policy import Policy

_FAILED_PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class Checks:
    """The schedule of looks. Serial numbers tell which look began after which event.

    Each look that begins is answered by `done` or `failed`.

    Attributes:
        serial: of the newest look that began.
        began_at: when it began.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.serial = 0
        self.began_at = float("-inf")
        self._in_flight = False
        self._wanted_at: float | None = None
        self._gathering = False
        self._gathered_at = float("-inf")
        self._failures = 0

    def want(self, at: float) -> None:
        """A look is wanted at that time, or earlier."""
        self._wanted_at = at if self._wanted_at is None else min(self._wanted_at, at)

    def want_gathered(self, now: float) -> None:
        """A look is wanted now; what follows soon after another one like it waits, and shares."""
        self._gathering = True
        self.want(max(now, self._gathered_at + self._policy.gather))

    def begin(self, now: float) -> bool:
        """Whether to begin a look at this moment; True counts it as begun."""
        if self._in_flight or self._wanted_at is None or now < self._wanted_at:
            return False
        self._in_flight, self._wanted_at = True, now + self._policy.sweep
        if self._gathering:
            self._gathering, self._gathered_at = False, now
        self.serial += 1
        self.began_at = now
        return True

    def done(self) -> None:
        """The look was answered."""
        self._in_flight = False
        self._failures = 0

    def failed(self, now: float) -> None:
        """The look came to nothing; the next one follows after a pause that grows."""
        if self._in_flight:
            self._in_flight = False
            pause = _FAILED_PAUSES[min(self._failures, len(_FAILED_PAUSES) - 1)]
            self._failures += 1
            self._wanted_at = now + pause

    def retry_now(self, now: float) -> None:
        """The record or the nerve is back."""
        self._failures = 0
        self.want_gathered(now)

    def due(self) -> float | None:
        """When the next look is due; None while one is in flight."""
        return None if self._in_flight else self._wanted_at
