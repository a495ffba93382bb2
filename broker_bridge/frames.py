"""Reading what strangers send: nothing here trusts a type, a size or a depth."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

Body = dict[str, Any]
DEEPEST = 500
"""Levels of nesting; what is nested as deep as can just be read could not be written again."""
CONTAINERS = (dict, list)
MOST_VALUES = 50_000
"""Values of one frame, to read and write which takes a small part of a second."""
_ASIDE = r'(?:[^,"]++|"(?:[^"\\]++|\\.?)*+(?:"|\Z))*+'
_CROWDED = re.compile(f"(?:{_ASIDE},){{{MOST_VALUES}}}", re.DOTALL)
"""So many commas beside those in strings. It looks at each character once, whatever the text is."""


class TooMany(ValueError):
    """More values than may be read in one go."""


def loads(text: str) -> Any:
    """Read JSON text as every client can read it: NaN, Infinity and what overflows to it are not JSON.

    Raises:
        TooMany: it holds more than `MOST_VALUES`.
        ValueError: it is not JSON.
        RecursionError: it is nested too deep.
    """
    if text.count(",") >= MOST_VALUES and _CROWDED.match(text):
        raise TooMany
    return json.loads(text, parse_constant=_no_constant, parse_float=_finite)


def dumps(value: object, separators: tuple[str, str] = (",", ":")) -> str:
    """Write JSON text.

    Raises:
        ValueError: a number has no JSON form.
        RecursionError: it is nested too deep.
    """
    return json.dumps(value, separators=separators, allow_nan=False)


def body(payload: object) -> Body | None:
    """The object that a frame carries, as itself or as JSON text; None for anything else, or too much."""
    if isinstance(payload, str):
        try:
            payload = loads(payload)
        except (ValueError, RecursionError):
            return None
    return payload if isinstance(payload, dict) and not _is_deep(payload) else None


def text(value: object, *, limit: int) -> str | None:
    """A non-empty string of at most `limit` characters, none of which steers what shows it; else None."""
    if not isinstance(value, str) or not 0 < len(value) <= limit or not value.isprintable():
        return None
    return value


def names(value: object) -> list[str]:
    """The strings of a list; empty for anything else."""
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def _is_deep(value: object) -> bool:
    """Whether there is anything `DEEPEST` levels below the value."""
    level: list[Any] = [value]
    for _ in range(DEEPEST - 1):
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, CONTAINERS) and inner
        ]
        if not level:
            return False
    return True


def _finite(number: str) -> float:
    value = float(number)
    return value if math.isfinite(value) else _no_constant(number)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
