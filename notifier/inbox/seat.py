"""What the inbox keeps of one session."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from notifier.inbox.actions import WakeReport
from notifier.inbox.policy import Policy
from notifier.inbox.wake_on import WakeOn, WakeRules, read_rules
from notifier.sessions import Session, State

EVERYONE = "@everyone"
Life = Literal["running", "stopped", "gone"]


@dataclass(frozen=True, slots=True)
class Counts:
    """What `GET /v1/unread` says of one session.

    Attributes:
        rooms: room -> its count.
        oldest: room -> the id of its oldest unread message.
        addressed_in: room -> how many of them are addressed to the session.
        urgent_in: room -> how many of them are urgent.
        from_people_in: room -> how many of them people said.
    """

    unread: int = 0
    rooms: dict[str, int] = field(default_factory=dict)
    oldest: dict[str, int] = field(default_factory=dict)
    addressed_in: dict[str, int] = field(default_factory=dict)
    urgent_in: dict[str, int] = field(default_factory=dict)
    from_people_in: dict[str, int] = field(default_factory=dict)

    def read_since(self, before: Counts) -> bool:
        """Whether something was read between `before` and these; what came in meanwhile does not hide it."""
        fewer = any(self.rooms.get(room, 0) < count for room, count in before.rooms.items())
        return fewer or any(self.oldest.get(room, id) > id for room, id in before.oldest.items())


@dataclass(slots=True)
class Attempt:
    """One wake on its way: asked for, sent, a turn started, the turn over; read may come at any point."""

    rung: str
    sent_at: float | None = None
    started: bool = False
    turn_over: bool = False
    read: bool = False


@dataclass(slots=True)
class Seat:
    """One session with everything that bears on its next wake.

    Attributes:
        told: the state that its hooks told last, at `told_at`.
        sign: the state that the program itself shows (its registry), since `sign_at`; None: no such sign.
        state: what follows from all signs.
        fresh_from: counts of an earlier check than this one may be older than the session's last turn.
        next_tried: whether the next rung has had its one immediate try since the last success.
        pauses: how many steps of the back-off were taken since the last success.
        spent: rungs whose keys went out without proof; not used again before the session has moved.
        passed: rungs whose wake was withdrawn; used again after a pause, or when the session has moved.
        closed: rungs that could not reach the session; tried again after its next turn.
        last_wake: the last one that was sent, at `last_sent_at`, and how far it came.
        parked: why a person is needed; only a turn changes that.
        person_told: they were told so.
        heard: room -> sender -> when, from nudges.
    """

    session: Session
    rungs: tuple[str, ...]
    told: State = "starting"
    told_at: float = 0.0
    ending: bool = False
    in_turn: bool = False
    sign: State | None = None
    sign_at: float = 0.0
    life: Life = "running"
    gone_at: float = 0.0
    state: State = "starting"
    counts: Counts = field(default_factory=Counts)
    fresh_from: int = 0
    attempt: Attempt | None = None
    last_wake: WakeReport | None = None
    last_sent_at: float | None = None
    hold: str | None = None
    hold_count: int = 0
    not_before: float = 0.0
    next_tried: bool = False
    pauses: int = 0
    spent: set[str] = field(default_factory=set)
    passed: set[str] = field(default_factory=set)
    closed: set[str] = field(default_factory=set)
    parked: str | None = None
    person_told: bool = False
    wakes: deque[float] = field(default_factory=deque)
    heard: dict[str, dict[str, float]] = field(default_factory=dict)

    def judged(self, policy: Policy, now: float) -> State:
        """The state that follows from process, hooks and the program's own sign; they must agree on idle."""
        if self.life != "running":
            return "offline" if self.life == "gone" else "suspended"
        told = self.told
        if self.ending and now - self.told_at >= policy.ending:
            told = "idle"
        if self.sign is None or self.sign == told:
            return told
        if self.sign == "idle":
            return "idle" if now - max(self.told_at, self.sign_at) >= policy.settle else told
        return self.sign if self.sign != "unknown" or told == "idle" else told

    def settles_at(self, policy: Policy) -> float | None:
        """When `judged` may change by time alone."""
        if self.life != "running":
            return None
        due = []
        if self.ending:
            due.append(self.told_at + policy.ending)
        if self.sign == "idle" and self.told != "idle":
            due.append(max(self.told_at, self.sign_at) + policy.settle)
        return min(due, default=None)

    def waking(self, policy: Policy) -> int:
        """How many of the unread messages may wake."""
        rules = self.wake_on(policy)
        return sum(self._waking_in(room, rules.of(room)) for room in self.counts.rooms)

    def wake_on(self, policy: Policy) -> WakeRules:
        """The session's own rules, else the box's."""
        return read_rules(self.session.wake_on) if self.session.wake_on else policy.wake_on

    def _waking_in(self, room: str, word: WakeOn) -> int:
        """What is for everyone wakes nobody by itself, unless it is urgent."""
        if word == "none":
            return 0
        if room == EVERYONE:
            return self.counts.urgent_in.get(room, 0)
        return (self.counts.rooms if word == "all" else self.counts.addressed_in).get(room, 0)

    def senders(self) -> set[str]:
        """Who wrote what is unread here, as far as nudges told."""
        names = {name for room in self.counts.rooms for name in self.heard.get(room, ())}
        return names - {self.session.agent}

    def open_rung(self) -> str | None:
        """The first rung that may be tried now."""
        shut = self.spent | self.passed | self.closed
        return next((rung for rung in self.rungs if rung not in shut), None)

    def moved(self) -> None:
        """A turn ran: earlier keys cannot stand in the composer any more, and a lost pane may be back."""
        self.spent.clear()
        self.closed.clear()
        self.passed.clear()
        self.hold_count = 0
