"""Keeps two agents from waking each other for ever."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

from notifier.inbox.policy import Policy

Pair = frozenset[str]


class Damper:
    """Counts wakes for each pair of agents. A person's word has the reader's pairs counted anew, once."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._pairs: dict[Pair, deque[float]] = {}

    def allows(self, agent: str, senders: Collection[str], *, now: float) -> bool:
        """Whether `agent` may be woken for what `senders` wrote; a person, or nobody known, is no loop."""
        if not self._policy.damper or not senders or any(map(is_no_session, senders)):
            return True
        return any(self._recent(frozenset((agent, sender)), now) for sender in senders)

    def begin_anew(self, agent: str) -> None:
        """A person spoke to `agent`, who was woken for it, or kept going."""
        for pair in [pair for pair in self._pairs if agent in pair]:
            del self._pairs[pair]

    def count(self, agent: str, senders: Collection[str], *, now: float) -> None:
        """`agent` was woken, or kept going, for what `senders` wrote."""
        for sender in senders:
            if not is_no_session(sender):
                wakes = self._pairs.setdefault(frozenset((agent, sender)), deque())
                wakes.append(now)

    def _recent(self, pair: Pair, now: float) -> bool:
        wakes = self._pairs.get(pair)
        if wakes is None:
            return True
        while wakes and wakes[0] <= now - self._policy.damper_window:
            wakes.popleft()
        if not wakes:
            del self._pairs[pair]
        return len(wakes) < self._policy.damper_wakes


def is_no_session(sender: str) -> bool:
    """Whether a sender is a person (or a bare box): only sessions carry a number."""
    return "#" not in sender
