"""Who heard whom, as a table at the end of a run."""

from __future__ import annotations

from collections.abc import Iterable


def table(pairings: Iterable[tuple[str, str, str]]) -> str:
    """Who hears whom: (producer, consumer, outcome), a row for each producer."""
    cells = {(producer, consumer): outcome for producer, consumer, outcome in pairings}
    rows = list(dict.fromkeys(producer for producer, _ in cells))
    columns = list(dict.fromkeys(consumer for _, consumer in cells))
    lines = [["said by \\ heard by", *columns]]
    lines += [[row, *(cells.get((row, column), "") for column in columns)] for row in rows]
    return "\n".join("  ".join(cell.ljust(18) for cell in line).rstrip() for line in lines)
