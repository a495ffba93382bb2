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
        paused_for: why nothing is tried before `not_before`.
        passed: rungs whose wake was withdrawn; used again after a pause, or when the session has moved.
        closed: rungs that could not reach the session; likewise.
        reopens_at: when `passed` and `closed` are given up, since they leave no rung.
        reopened: how often that was so since its last turn.
        last_wake: the last one that was sent, at `last_sent_at`, and how far it came.
        parked: why a person is needed; only a turn changes that.
        person_told: they were told so.
        heard: room -> sender -> when, from nudges.
        heeded: room -> its oldest unread message, and how many were said by people, at the last wake.
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
    paused_for: str | None = None
    passed: set[str] = field(default_factory=set)
    closed: set[str] = field(default_factory=set)
    reopens_at: float | None = None
    reopened: int = 0
    parked: str | None = None
    person_told: bool = False
    wakes: deque[float] = field(default_factory=deque)
    heard: dict[str, dict[str, float]] = field(default_factory=dict)
    heeded: dict[str, tuple[int, int]] = field(default_factory=dict)

    def judged(self, policy: Policy, now: float) -> State:
        """The state that follows from process, hooks and the program's own sign; they must agree on idle."""
        if self.life != "running":
            return "offline" if self.life == "gone" else "suspended"
        told = self.told
        if self.ending and now - self.told_at >= policy.ending:
            told = "idle"
        if self.sign is None or self.sign == told or (told == "starting" and self.sign == "idle"):
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
        return sum(self._waking_rooms(policy).values())

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

    def _waking_rooms(self, policy: Policy) -> dict[str, int]:
        rules = self.wake_on(policy)
        found = {room: self._waking_in(room, rules.of(room)) for room in self.counts.rooms}
        return {room: number for room, number in found.items() if number}

    def senders(self, policy: Policy | None = None) -> set[str]:
        """Who wrote what is unread here, or with a `policy` where it may wake, as far as nudges told."""
        rooms = self.counts.rooms if policy is None else self._waking_rooms(policy)
        return {name for room in rooms for name in self.heard.get(room, ())} - {self.session.agent}

    def person_waits(self, policy: Policy) -> bool:
        """Whether a person's word is unread, where something may wake, that no wake has been sent for.

        Nudges do not tell: they say neither whether it was a message, nor whether it has been read since.
        """
        return any(self._person_waits_in(room) for room in self._waking_rooms(policy))

    def _person_waits_in(self, room: str) -> bool:
        oldest, said = self._people_in(room)
        before, heeded = self.heeded.get(room, (oldest, 0))
        return said > 0 and (oldest != before or said > heeded)

    def heed(self) -> None:
        """A wake was sent for all that is unread."""
        self.heeded = {room: self._people_in(room) for room in self.counts.rooms}

    def _people_in(self, room: str) -> tuple[int, int]:
        return self.counts.oldest.get(room, 0), self.counts.from_people_in.get(room, 0)

    def open_rung(self) -> str | None:
        """The first rung that may be tried now."""
        shut = self.spent | self.passed | self.closed
        return next((rung for rung in self.rungs if rung not in shut), None)

    def moved(self) -> None:
        """A turn ran: earlier keys cannot stand in the composer any more, and a lost pane may be back."""
        self.spent.clear()
        self.reopen()
        self.reopened = self.hold_count = 0

    def reopen(self) -> None:
        """Rungs on which nothing was typed may be tried again."""
        self.closed.clear()
        self.passed.clear()
        self.reopens_at = None

    def begins_anew(self, before: Seat) -> None:
        """Another process under the handle: who wrote what is unread, and what the hour cost, stays."""
        self.wakes, self.heard = before.wakes, before.heard
