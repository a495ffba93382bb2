"""Waiting for the thing itself, and no longer than it may take."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 40.0
"""Seconds: about ten times what the slowest step takes."""


def until(holds: Callable[[], object], what: Callable[[], str] | str, *, seconds: float = PATIENCE) -> None:
    """Wait until something holds; fail with `what` when it never does."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s for {what if isinstance(what, str) else what()}")
        time.sleep(0.05)
