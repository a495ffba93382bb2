"""What a user may expect of wakes, as plain rules over what really happened.

Written from the contract and from docs/explanation/waking.md. It sees what the inbox is told and what it asks
for, and nothing of what is inside.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from notifier.inbox import Counts, Policy
from notifier.inbox.seat import Life
from notifier.sessions import Event, State

WORK: tuple[Event, ...] = ("prompt", "tool", "ending", "stop", "continue")
AT_REST: tuple[Event, ...] = ("session-start", "stop")
THRIFTY = Policy(damper_wakes=3, budget_wakes=8)
"""Small numbers are reached sooner."""
PAUSES = (30.0, 120.0, 600.0)
SOON = 1e-6
"""Clocks add up fractions."""


@dataclass(frozen=True)
class Said:
    """A message as it waits for one session."""

    id: int
    room: str
    sender: str
    addressed: bool
    urgent: bool
    nudged: bool

    @property
    def by_a_person(self) -> bool:
        return "#" not in self.sender

    def may_wake(self, word: str) -> bool:
        if word == "none":
            return False
        if self.room == "@everyone":
            return self.urgent
        return word == "all" or self.addressed


@dataclass
class Real:
    """What is really so with one session."""

    agent: str
    pid: int
    words: dict[str, str]
    """Room -> what wakes there."""
    unread: list[Said] = field(default_factory=list)
    event: Event | None = None
    event_at: float = 0.0
    sign: State | None = None
    sign_at: float = 0.0
    life: Life = "running"
    rested_after: int = 0
    """How many looks had begun when it last came to rest."""
    rested: bool = False
    shown: list[Said] = field(default_factory=list)
    """What the last answered look found unread."""
    shown_by: int = 0
    """Which look that was."""
    asked: str | None = None
    """The rung of a wake that is not answered yet."""
    moved: bool = False
    """Whether it has worked, or read, since then."""
    sent_at: float | None = None
    """When the wake left that waits for its turn."""
    in_its_turn: bool = False
    """Whether the turn that began after a wake goes on."""
    in_doubt: set[str] = field(default_factory=set)
    """Rungs whose keys may stand in the composer."""
    out_of_reach: dict[str, float] = field(default_factory=dict)
    """Rungs that did not reach it, and when that was, since it last came to rest."""
    unproved: list[float] = field(default_factory=list)
    """Wakes since it last read."""
    wakes: list[float] = field(default_factory=list)
    """All wakes under this handle."""
    hold: str | None = None
    calls: list[float] = field(default_factory=list)
    """When a person was asked for, since it last read."""
    person_knows: bool = False

    def waking(self) -> list[Said]:
        """What is unread, as far as the record told, and may wake."""
        return [said for said in self.shown if said.may_wake(self.words.get(said.room, self.words[""]))]

    def waiting(self) -> list[Said]:
        """What is unread in the rooms where something may wake."""
        rooms = {said.room for said in self.waking()}
        return [said for said in self.shown if said.room in rooms]

    def rests(self, now: float) -> bool:
        """Idle by every sign there is: process, hooks that have spoken, and the program's own."""
        if self.life != "running" or self.event is None or self.sign not in (None, "idle"):
            return False
        for_long = now - self.event_at + SOON
        if self.event in AT_REST or (self.event == "ending" and for_long >= 10):
            return True
        return self.sign == "idle" and now - max(self.event_at, self.sign_at) + SOON >= 3

    def comes_to_rest(self, looks: int, now: float) -> None:
        """Note it, if it just does: only a look from now on counts."""
        rested, self.rested = self.rested, self.rests(now)
        if self.rested and not rested:
            self.rested_after = looks
            self.out_of_reach.clear()

    def worked(self) -> None:
        """A turn ran: whatever stood in the composer has gone."""
        self.in_doubt.clear()
        self.out_of_reach.clear()
        self.moved = True
        self.in_its_turn |= self.sent_at is not None
        self.sent_at = None

    def has_read(self) -> None:
        self.in_doubt.clear()
        self.out_of_reach.clear()
        self.unproved.clear()
        self.calls.clear()
        self.moved = True
        self.sent_at, self.in_its_turn, self.person_knows = None, False, False

    def woken_just_now(self, now: float) -> bool:
        """Whether a wake is on its way, or its turn goes on."""
        sent = self.sent_at is not None and now - self.sent_at < 20 + SOON
        return self.asked is not None or sent or (self.in_its_turn and not self.rests(now))


@dataclass
class Guard:
    """The damper as a bound: so many wakes and hand-overs for each correspondent, until a person speaks.

    Exact counts for each pair would need the inbox's own idea of who wrote what.
    """

    limit: int
    kept_going: dict[str, list[float]] = field(default_factory=dict)
    """Session -> wakes and hand-overs for what agents alone wrote, all of them known by nudges."""
    everything: list[float] = field(default_factory=list)
    heeded: set[tuple[str, int]] = field(default_factory=set)
    """Words of persons that a session was woken for."""

    def fresh(self, agent: str, waiting: list[Said]) -> set[tuple[str, int]]:
        """Words of persons that it has not been woken for."""
        return {(agent, said.id) for said in waiting if said.by_a_person} - self.heeded

    def note(self, agent: str, for_what: list[Said], now: float) -> None:
        """It was woken, or kept going, for these."""
        if fresh := self.fresh(agent, for_what):
            self.heeded |= fresh
            self.kept_going.clear()
        self.everything.append(now)
        if all(said.nudged and not said.by_a_person for said in for_what):
            self.kept_going.setdefault(agent, []).append(now)

    def check(self, agent: str, for_what: list[Said], correspondents: int, now: float) -> None:
        """It is about to be woken for these."""
        if self.fresh(agent, for_what) or any(not said.nudged or said.by_a_person for said in for_what):
            return
        recent = [at for at in self.kept_going.get(agent, []) if at > now - 600 + SOON]
        assert len(recent) < self.limit * max(1, correspondents), "two agents wake each other undamped"

    def may_hold(self, agent: str, for_what: list[Said], now: float) -> None:
        """It is said to be held for looping."""
        assert not self.fresh(agent, for_what), "a person's word was held as a loop"
        recent = [at for at in self.everything if at >= now - 600 - SOON]
        assert len(recent) >= self.limit, "held as a loop without one"


def may_wake(real: Real, rung: str, *, policy: Policy, now: float) -> None:
    """Everything that must be so before a session is woken."""
    assert real.rests(now), "woke a session that is not idle by every sign"
    assert real.shown_by > real.rested_after, "woke by counts that are older than the last turn"
    assert real.waking(), "woke for nothing"
    assert real.asked is None, "two wakes at once"
    assert rung not in real.in_doubt, "repeated keys whose outcome is not known"
    assert real.sent_at is None or now - real.sent_at + SOON >= 20, "did not wait for a turn"
    assert now - real.out_of_reach.get(rung, float("-inf")) + SOON >= PAUSES[0], "did not let a lost rung be"
    hour = [at for at in real.wakes if at > now - 3600 + SOON]
    assert len(hour) < policy.budget_wakes, "more wakes in an hour than the budget has"
    unproved = [*real.unproved, now]
    assert all(b - a + SOON >= PAUSES[0] for a, b in zip(unproved, unproved[2:], strict=False)), "no pause"
    assert all(b - a + SOON >= PAUSES[2] for a, b in zip(unproved, unproved[5:], strict=False)), (
        "no long pause"
    )


def may_call(real: Real, now: float) -> None:
    """A person is asked for: after every pause, and not again and again."""
    assert real.rests(now), "asked for a person although the session is not at rest"
    assert not real.person_knows, "told a person twice"
    calls = [*real.calls, now]
    assert all(b - a + SOON >= PAUSES[2] for a, b in pairwise(calls)), "pestered a person"


def may_hold(real: Real, reason: str, *, policy: Policy, now: float) -> None:
    """A hold that is reported must be true."""
    match reason:
        case "wake budget used up":
            assert len([at for at in real.wakes if at >= now - 3600 - SOON]) >= policy.budget_wakes
        case "nothing unread that may wake it":
            assert real.shown
            assert not real.waking()
        case "dialog open" | "suspended" | "offline" | "its hooks have not spoken yet" | "state unknown":
            assert not real.rests(now)
        case "a person was told":
            assert real.person_knows, "said that a person knows, who was not told"


def counts_of(waiting: list[Said]) -> Counts:
    """The same as the record counts it."""
    of: dict[str, list[Said]] = {}
    for said in waiting:
        of.setdefault(said.room, []).append(said)

    def such(which: str) -> dict[str, int]:
        found = {room: sum(bool(getattr(said, which)) for said in here) for room, here in of.items()}
        return {room: number for room, number in found.items() if number}

    return Counts(
        len(waiting),
        {room: len(here) for room, here in of.items()},
        {room: here[0].id for room, here in of.items()},
        such("addressed"),
        such("urgent"),
        such("by_a_person"),
    )
