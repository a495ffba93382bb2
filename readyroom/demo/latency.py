"""How long each step took: commit, nudge, keys, read. All clocks are this machine's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.table import Table

from readyroom.demo.stage import Box


@dataclass(frozen=True, slots=True)
class Leg:
    """One message on its way; moments in seconds since 1970.

    Attributes:
        sender: the box that spoke.
        reader: the box that read.
        committed: when the record stored it, by its own word (`created_at`).
        nudged: when the reader's notifier heard that something happened; None where a re-check found it.
        keyed: when the first key of the wake reached the reader's program.
        read: when the reader had read and acknowledged it.
    """

    sender: str
    reader: str
    committed: float
    nudged: float | None
    keyed: float
    read: float

    @classmethod
    def measured(cls, said: dict[str, Any], read: dict[str, Any], *, sender: Box, reader: Box) -> Leg:
        """Put the moments together from what programs and notifiers wrote down."""
        keys = [
            noted["at"]
            for noted in reader.journal.events()
            if noted["event"] == "keys" and noted["at"] <= read["at"]
        ]
        committed = _moment(said["created_at"])
        return cls(
            sender=sender.name,
            reader=reader.name,
            committed=committed,
            nudged=_first(_nudges(reader), since=committed),
            keyed=keys[-1],
            read=read["at"],
        )

    def steps(self) -> dict[str, float | None]:
        """Step -> milliseconds; None where it did not happen."""
        nudged = self.nudged
        return {
            "commit → nudge": None if nudged is None else (nudged - self.committed) * 1000,
            "nudge → keys" if nudged else "commit → keys": (self.keyed - (nudged or self.committed)) * 1000,
            "keys → read": (self.read - self.keyed) * 1000,
            "commit → read": (self.read - self.committed) * 1000,
        }

    def to_json(self) -> dict[str, object]:
        """The steps for a machine, in milliseconds."""
        steps = {f"{name.replace(' → ', '_to_')}_ms": value for name, value in self.steps().items()}
        return {
            "from": self.sender,
            "to": self.reader,
            **{name: value and round(value, 1) for name, value in steps.items()},
        }


def _nudges(box: Box) -> Iterable[float]:
    """When the box's notifier heard a nudge, by its own log."""
    for noted in box.notifier_events():
        if noted["event"] == "nudge_heard":
            yield _moment(noted["timestamp"])


def _moment(iso: str) -> float:
    return datetime.fromisoformat(iso).timestamp()


def _first(moments: Iterable[float], *, since: float) -> float | None:
    return next((moment for moment in moments if moment >= since), None)


def latency_table(legs: Iterable[Leg]) -> Table:
    """The legs side by side, in milliseconds."""
    columns = list(legs)
    table = Table("milliseconds", title="How long each step took", title_justify="left")
    for leg in columns:
        table.add_column(f"{leg.sender} → {leg.reader}", justify="right")
    for step in columns[0].steps():
        table.add_row(step, *(_milliseconds(leg.steps().get(step)) for leg in columns))
    return table


def _milliseconds(value: float | None) -> str:
    return "no nudge" if value is None else f"{value:.1f}"
