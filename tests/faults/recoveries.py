"""How soon after a fault a session is woken again: at most five seconds, whatever the fault was."""

from __future__ import annotations

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
    """How long after the end of each fault the session was woken."""

    world: World
    rows: list[tuple[str, str, str]] = field(default_factory=list)

    async def measure(self, fault: str, *waiting: int, since: float) -> None:
        """What waits must wake within five seconds after `since`; what is said then wakes at once."""
        back = await self.world.woken_for(*waiting) - since
        await until(self.world.rests, "the session to rest", LONG)
        said_at = time.time()
        next_ = await self.world.woken_for(await self.world.say()) - said_at
        await until(self.world.rests, "the session to rest", LONG)
        self.rows.append((fault, f"{back:.2f} s", f"{next_:.2f} s"))
        assert back < BACK_SECONDS, self.world.told()
        assert next_ < BACK_SECONDS, self.world.told()

    def show(self, capsys: pytest.CaptureFixture[str]) -> None:
        show(capsys, ("fault", "woken for what waited", "then, after say"), self.rows)
