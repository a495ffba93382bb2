"""The numbers behind the notifier's decisions."""

from __future__ import annotations

from dataclasses import dataclass, field

from notifier.inbox.wake_on import WakeRules


@dataclass(frozen=True, slots=True)
class Policy:
    """How patient, how eager, how thrifty. Times are seconds.

    Attributes:
        gather: nudges that come this close together cost one look at the unread counts.
        sweep: longest time between two looks while a session is alive.
        hold_retries: when a held wake is looked at again, if nothing happened before; the last one repeats.
            Two gates open by time alone, after 0.3 s without output and 2 s without a key.
        proof: how long a wake may stay without a turn.
        back_off: pauses after a wake without success; after the last one a person is told.
        settle: how long a program's own sign must contradict its hooks before the sign is believed.
        ending: a turn's end that was announced and never confirmed counts as one after this time.
        forget: how long an ended session stays listed.
        wake_on: which unread messages wake, for sessions that do not say themselves.
        damper: whether two agents who only wake each other are held back.
        damper_wakes: this many wakes of a pair within `damper_window` are too many.
        budget_wakes: this many wakes of one session within `budget_window` are too many.
    """

    gather: float = 0.2
    sweep: float = 60.0
    hold_retries: tuple[float, ...] = (*(0.35,) * 6, 2.0, 4.0, 8.0, 15.0)
    proof: float = 20.0
    back_off: tuple[float, ...] = (30.0, 120.0, 600.0)
    settle: float = 3.0
    ending: float = 10.0
    forget: float = 3600.0
    wake_on: WakeRules = field(default_factory=WakeRules)
    damper: bool = True
    damper_wakes: int = 20
    damper_window: float = 600.0
    budget_wakes: int = 240
    budget_window: float = 3600.0
