"""Reading what strangers send: nothing here trusts a type, a size or a depth."""

from __future__ import annotations

import json
from typing import Any

Body = dict[str, Any]


def body(payload: object) -> Body | None:
    """The object that a frame carries, sent as itself or as JSON text; None for anything else."""
    if isinstance(payload, str):
        try:
            payload = json.loads(payload)
        except (ValueError, RecursionError):
            return None
    return payload if isinstance(payload, dict) else None


def text(value: object, *, limit: int) -> str | None:
    """A non-empty string of at most `limit` characters, or None."""
    return value if isinstance(value, str) and 0 < len(value) <= limit else None


def names(value: object) -> list[str]:
    """The strings of a list; empty for anything else."""
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []
