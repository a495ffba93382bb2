"""How a fault is logged: its kind and where it came from, never the values in it.

An exception's text may quote what somebody said; a log must not.
"""

from __future__ import annotations

import traceback
from pathlib import Path

from structlog.typing import ExcInfo


def places(exc_info: ExcInfo) -> str:
    """The exception's type and its frames, innermost last; causes come first."""
    _, error, _ = exc_info
    lines: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        frames = (
            f"{Path(frame.filename).name}:{frame.lineno} {frame.name}"
            for frame in traceback.extract_tb(current.__traceback__)
        )
        lines.insert(0, f"{type(current).__qualname__} at " + " > ".join(frames))
        current = current.__cause__ or current.__context__
    return "\n".join(lines)
