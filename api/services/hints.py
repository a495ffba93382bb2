"""What a caller is told that speaks as the bare box without meaning to, and what the log says of it."""

from __future__ import annotations

import structlog

from api.models import Caller
from api.services.metrics import Metrics

log = structlog.get_logger()

REMEMBERED = 50_000

CURE = "Start the session with `readyroom run`, or give its program a handle with `readyroom setup`."
ABSENT = f"You speak as the bare box: X-Tyode-Agent is not set. {CURE}"
UNEXPANDED = f"You speak as the bare box: X-Tyode-Agent holds a variable that was never set. {CURE}"

DOUBLED = (
    "Two live processes speak as {agent}, and each message reaches one of them only. Give the other a handle "
    "of its own: start it with `readyroom run --new`."
)


class Hints:
    """Gives the hint, counts headers that were not honoured, and logs each case once."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._told: set[tuple[str, str, str | None]] = set()

    def absent(self, bare: Caller, *, blank: bool) -> str:
        """No handle came; a bare box may well mean that."""
        self._log(bare, "blank" if blank else "absent")
        return ABSENT

    def unexpanded(self, bare: Caller) -> str:
        """The header held `${…}`."""
        self._metrics.handles_not_honoured.labels("unexpanded").inc()
        self._log(bare, "unexpanded")
        return UNEXPANDED

    def foreign(self, bare: Caller, handle: str) -> str:
        """The handle is of another box's namespace; most often a stale environment variable."""
        self._metrics.handles_not_honoured.labels("foreign").inc()
        self._log(bare, "foreign", handle)
        return f"You speak as the bare box: {handle} is no session of {bare.box}. {CURE}"

    def _log(self, bare: Caller, reason: str, handle: str | None = None) -> None:
        told = (bare.token_id, reason, handle)
        if told in self._told or len(self._told) >= REMEMBERED:
            return
        self._told.add(told)
        log.warning(
            "handle_not_honoured" if handle else "handle_missing",
            realm=bare.realm,
            agent=bare.handle,
            handle=handle,
            reason=reason,
            cure=CURE,
        )
