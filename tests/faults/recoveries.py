"""How soon after a fault a session is woken again: within five seconds, whatever the fault was."""

from __future__ import annotations

import itertools
import re
import statistics
import time
from dataclasses import dataclass, field

import pytest

from tests.contract.nerves import until
from tests.faults.parts import World
from tests.faults.processes import show

BACK_SECONDS = 5.0
LONG = 60.0


@dataclass
class Recoveries:
    """How long after the end of each fault the session was woken, in seconds."""

    world: World
    rows: list[tuple[str, float, float]] = field(default_factory=list)

    async def measure(self, fault: str, *waiting: int, since: float) -> None:
        """Wait until the session is woken for what waits since the fault, and for what is said then."""
        back = await self.world.woken_for(*waiting) - since
        await until(self.world.rests, "the session to rest", LONG)
        said_at = time.time()
        next_ = await self.world.woken_for(await self.world.say()) - said_at
        await until(self.world.rests, "the session to rest", LONG)
        self.rows.append((fault, back, next_))

    def judge(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Show them all. Of each kind of fault the median counts: the machine may hold one up."""
        rows = [(fault, f"{back:.2f} s", f"{next_:.2f} s") for fault, back, next_ in self.rows]
        show(capsys, ("fault", "woken for what waited", "then, after say"), rows)
        for _, kind in itertools.groupby(sorted(self.rows, key=_kind), key=_kind):
            _, back, next_ = zip(*kind, strict=True)
            assert statistics.median(back) < BACK_SECONDS, self.world.told()
            assert statistics.median(next_) < BACK_SECONDS, self.world.told()


def _kind(row: tuple[str, float, float]) -> str:
    """The fault without how long it lasted."""
    return re.sub(r"[0-9.]+", "", row[0])
