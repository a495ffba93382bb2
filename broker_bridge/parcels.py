"""What the replicas of a nerve tell each other: nudges, whom to tell of them, and that they live."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import structlog

from broker_bridge import frames
from broker_bridge.nudge import Nudge
from broker_bridge.outbox import Parcel

log = structlog.get_logger()

LONGEST = 7_900
"""Bytes of a text. PostgreSQL's NOTIFY carries less than 8,000."""

NAMES_A_ROW = 80
"""Whom one row names; with the longest names it still fits into a text."""


@dataclass(frozen=True, slots=True)
class Word:
    """One text.

    Attributes:
        by: the replica that says it.
        parcels: what it tells; none in a beat, which says that it lives.
        last: it says no more, and means to.
    """

    by: str
    parcels: tuple[Parcel, ...] = ()
    last: bool = False


def beat(by: str, *, last: bool = False) -> str:
    """A text without nudges."""
    return frames.dumps({"by": by, "last": last})


def written(parcels: Iterable[Parcel], *, by: str) -> Iterator[str]:
    """As few texts as hold the parcels, in their order. All of it is ASCII."""
    head, tail = f'{{"by":{frames.dumps(by)},"nudges":[', "]}"
    rows: list[str] = []
    left = room = LONGEST - len(head) - len(tail)
    for row in _rows(parcels):
        if len(row) > room:
            log.warning("nerve_parcel_too_long")
            continue
        if len(row) + 1 > left and rows:
            yield head + ",".join(rows) + tail
            rows, left = [], room
        rows.append(row)
        left -= len(row) + 1
    if rows:
        yield head + ",".join(rows) + tail


def read(text: str) -> Word | None:
    """Read a text; None for what is none. A row that is no parcel is passed over."""
    body = frames.body(text)
    by = frames.text((body or {}).get("by"), limit=64)
    if body is None or by is None:
        return None
    rows = body.get("nudges")
    parcels = map(_parcel, rows if isinstance(rows, list) else ())
    return Word(by, tuple(filter(None, parcels)), last=body.get("last") is True)


def _rows(parcels: Iterable[Parcel]) -> Iterator[str]:
    for parcel in parcels:
        names = sorted(parcel.names)
        for first in range(0, len(names), NAMES_A_ROW):
            part = names[first : first + NAMES_A_ROW]
            yield frames.dumps([parcel.realm, parcel.nudge.to_wire(), part])


def _parcel(row: object) -> Parcel | None:
    match row:
        case [str(realm), message, list(names)] if (nudge := Nudge.from_wire(message)) is not None:
            return Parcel(realm, frozenset(frames.names(names)), nudge)
        case _:
            return None
