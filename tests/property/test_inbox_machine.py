"""Whatever happens, in whatever order: the inbox harms nobody, forgets nothing, and never storms."""

from __future__ import annotations

from dataclasses import dataclass, field

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from notifier.inbox import Action, CheckUnread, Counts, Inbox, Policy, Report, TellPerson, Wake
from notifier.inbox.ladder import TOLD_PERSON
from notifier.inbox.seat import Life
from notifier.sessions import Event, Process, Session, State

AGENTS = ("desk-agent#1", "desk-agent#2")
ROOMS = ("api", "ops")
SENDERS = ("lab-agent#1", "lab-agent#2", "eric")
EVENTS: tuple[Event, ...] = (
    "session-start",
    "prompt",
    "tool",
    "dialog-open",
    "dialog-close",
    "ending",
    "stop",
    "continue",
)
PLAIN_HOLDS = ("draft", "recent key", "not in front", "busy", "output still moving", "copy mode")
LONGEST_PAUSE = 600.0


@dataclass
class Real:
    """What is really so with one session."""

    pid: int
    unread: dict[str, list[int]] = field(default_factory=dict)
    """Room -> the ids of what waits there, oldest first."""
    seen: set[int] = field(default_factory=set)
    """What the last look found unread."""
    life: Life = "running"
    told: State = "starting"
    sign: State | None = None
    waking: str | None = None
    """The rung of a wake that was asked for and not answered."""
    doubtful: set[str] = field(default_factory=set)
    """Rungs whose keys went out and were followed by no turn and no reading so far."""
    sent_at: list[float] = field(default_factory=list)
    """Wakes since the session last read, or began anew."""
    person_told: bool = False
    rested_after: int = 0
    """How many looks had begun when it came to rest."""


def ids_in(rooms: dict[str, list[int]]) -> set[int]:
    return {id for ids in rooms.values() for id in ids}


def counts_of(rooms: dict[str, list[int]]) -> Counts:
    return Counts(
        sum(map(len, rooms.values())),
        {room: len(ids) for room, ids in rooms.items()},
        oldest={room: ids[0] for room, ids in rooms.items()},
    )


class InboxMachine(RuleBasedStateMachine):
    """A small box with two sessions and a record, and an adversary who picks what happens next."""

    def __init__(self) -> None:
        super().__init__()
        self.inbox = Inbox(Policy(damper=False))
        self.now = 1000.0
        self.looking: dict[str, dict[str, list[int]]] | None = None
        self.said = 0
        self.proved: set[str] = set()
        """Sessions of whose wake a reading has been reported since the last look."""
        self.looks = self.answered = 0
        self.pids = 100
        self.real: dict[str, Real] = {}
        for agent in AGENTS:
            self.begin(agent)

    @initialize(resting=st.booleans())
    def both_rest(self, resting: bool) -> None:
        if resting:
            for agent in AGENTS:
                self.hook(agent, "session-start")

    def begin(self, agent: str) -> None:
        self.pids += 1
        old = self.real.get(agent)
        self.real[agent] = Real(self.pids, unread=old.unread if old else {})
        session = Session(agent, "plain", process=Process(self.pids, 1))
        self.do(self.inbox.known(session, ("pty", "tmux"), now=self.now))

    def do(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case CheckUnread():
                    assert self.looking is None, "two looks at once"
                    self.looking = self.truth()
                    self.looks += 1
                case Wake(agent, rung):
                    self.may_wake(agent, rung)
                    self.real[agent].waking = rung
                case Report(agent, _, wake) if wake is not None and wake.outcome == "read":
                    self.has_read(agent)
                case TellPerson(agent, _):
                    self.real[agent].person_told = True
                    self.do(self.inbox.person_told(agent, told=True))

    def may_wake(self, agent: str, rung: str) -> None:
        real, seat = self.real[agent], self.inbox.seats[agent]
        assert real.life == "running"
        assert seat.state == "idle", "woke a session that is not idle"
        assert real.sign in (None, "idle"), "woke against the program's own sign"
        assert seat.counts.unread > 0, "woke a session with nothing to read"
        assert self.answered > real.rested_after, "woke by counts that are older than the last turn"
        assert real.waking is None, "two wakes of one session at once"
        assert rung not in real.doubtful, "repeated keys whose outcome is not known"

    def has_read(self, agent: str) -> None:
        self.proved.add(agent)
        real = self.real[agent]
        real.doubtful.clear()
        real.sent_at.clear()

    def truth(self) -> dict[str, dict[str, list[int]]]:
        return {
            agent: {room: list(ids) for room, ids in real.unread.items() if ids}
            for agent, real in self.real.items()
        }

    agents = st.sampled_from(AGENTS)

    @rule(seconds=st.sampled_from((0.1, 0.3, 1.0, 5.0, 20.5, 61.0, 130.0, 700.0)))
    def time_passes(self, seconds: float) -> None:
        """The daemon ticks when the inbox says so."""
        end = self.now + seconds
        for _ in range(50):
            due = self.inbox.due(now=self.now)
            if due is None or due > end:
                break
            self.now = max(due, self.now)
            self.do(self.inbox.tick(now=self.now))
        self.now = end
        self.do(self.inbox.tick(now=self.now))

    @rule(agent=agents, room=st.sampled_from(ROOMS), sender=st.sampled_from(SENDERS), heard=st.booleans())
    def message(self, agent: str, room: str, sender: str, heard: bool) -> None:
        self.said += 1
        self.real[agent].unread.setdefault(room, []).append(self.said)
        if heard:
            self.do(self.inbox.nudged(room, sender, now=self.now))

    @rule(agent=agents, reads=st.booleans())
    def news_finds_it_resting(self, agent: str, reads: bool) -> None:
        """The common course: a message, a look at it, a wake if one is asked for, and its turn."""
        self.hook(agent, "stop")
        self.message(agent, "api", "lab-agent#1", heard=True)
        for _ in range(2):
            if self.looking is not None:
                self.look_ends(answered=True)
        if self.real[agent].waking is not None and reads:
            self.obey(agent)

    @rule(agent=agents, end=st.sampled_from(("sent", "echo not seen")), turn=st.booleans())
    def a_wake_is_for_nothing(self, agent: str, end: str, turn: bool) -> None:
        """The keys are sent, or half of them; nothing follows, or a turn that reads nothing."""
        real = self.real[agent]
        if real.waking is None:
            return
        self.wake_ends(agent, end)
        if turn:
            self.hook(agent, "prompt")
            self.hook(agent, "stop")
        for _ in range(2):
            if self.looking is not None:
                self.look_ends(answered=True)
            self.time_passes(1.0 if turn else 20.5)
        if self.looking is not None:
            self.look_ends(answered=True)

    @rule(sender=st.sampled_from(SENDERS))
    def nudge_for_nothing(self, sender: str) -> None:
        self.do(self.inbox.nudged("elsewhere", sender, now=self.now))

    @precondition(lambda self: self.looking is not None)
    @rule(answered=st.booleans())
    def look_ends(self, answered: bool) -> None:
        found, self.looking = self.looking, None
        if not answered:
            self.do(self.inbox.check_failed(now=self.now))
            return
        assert found is not None
        self.answered = self.looks
        waited = {agent: self.on_its_way(agent) for agent in found}
        reading = {agent for agent, rooms in found.items() if self.real[agent].seen - ids_in(rooms)}
        for agent, rooms in found.items():
            self.real[agent].seen = ids_in(rooms)
            if agent in reading:
                self.has_read(agent)
        self.proved.clear()
        self.do(self.inbox.checked({agent: counts_of(rooms) for agent, rooms in found.items()}, now=self.now))
        for agent in reading:
            assert not waited[agent] or agent in self.proved, "what was read is no proof of the wake"

    def on_its_way(self, agent: str) -> bool:
        """Whether a wake of this session was sent, and is still looked after."""
        seat = self.inbox.seats.get(agent)
        return seat is not None and seat.attempt is not None and seat.attempt.sent_at is not None

    @rule(agent=agents, event=st.sampled_from(EVENTS))
    def hook(self, agent: str, event: Event) -> None:
        real = self.real[agent]
        if real.life == "gone":
            return
        if event in ("prompt", "tool", "ending", "stop", "continue"):
            real.doubtful.clear()
        if event == "stop":
            real.rested_after = self.looks
        self.do(self.inbox.hook(agent, event, now=self.now))

    @rule(agent=agents)
    def reads(self, agent: str) -> None:
        self.real[agent].unread.clear()

    @rule(agent=agents, room=st.sampled_from(ROOMS), more=st.booleans())
    def reads_one(self, agent: str, room: str, more: bool) -> None:
        """The oldest message of a room; another may come in, so that the count stays what it was."""
        del self.real[agent].unread.get(room, [])[:1]
        if more:
            self.message(agent, room, "lab-agent#1", heard=True)

    @rule(agent=agents)
    def a_wake_is_read_while_more_comes_in(self, agent: str) -> None:
        """A turn that reads what there was, and ends with as much unread as it began with."""
        real = self.real[agent]
        if real.waking is None:
            return
        self.wake_ends(agent, "sent")
        self.hook(agent, "prompt")
        for room in [room for room, ids in real.unread.items() if ids]:
            self.reads_one(agent, room, more=True)
        self.hook(agent, "stop")
        for _ in range(2):
            if self.looking is not None:
                self.look_ends(answered=True)

    @rule(agent=agents, sign=st.sampled_from((None, "idle", "busy", "waiting", "unknown")))
    def sign(self, agent: str, sign: State | None) -> None:
        real = self.real[agent]
        if sign == "busy":
            real.doubtful.clear()
        real.sign = sign
        self.do(self.inbox.signed(agent, sign, now=self.now))

    @rule(agent=agents, life=st.sampled_from(("running", "stopped", "gone")))
    def life(self, agent: str, life: Life) -> None:
        real = self.real[agent]
        if real.life != "gone":
            real.life = life
            self.do(self.inbox.lives(agent, life, now=self.now))

    @rule(agent=agents)
    def starts_anew(self, agent: str) -> None:
        if self.real[agent].waking is None:
            self.begin(agent)

    @rule()
    def reconnects(self) -> None:
        self.do(self.inbox.reconnected(now=self.now))

    @rule(
        agent=agents,
        end=st.sampled_from(
            ("sent", "echo not seen", "not taken up", "pane gone", "no way to wake it", *PLAIN_HOLDS)
        ),
    )
    def wake_ends(self, agent: str, end: str) -> None:
        real = self.real[agent]
        rung = real.waking
        if rung is None:
            return
        real.waking = None
        attempt = self.inbox.seats[agent].attempt if agent in self.inbox.seats else None
        if attempt is not None and end in ("sent", "echo not seen"):
            if not attempt.started and not attempt.read:
                real.doubtful.add(rung)
            if end == "sent":
                real.sent_at.append(self.now)
        self.do(
            self.inbox.woken(agent, sent=end == "sent", hold=None if end == "sent" else end, now=self.now)
        )

    @invariant()
    def no_storm(self) -> None:
        """Without a reading between, a second rung may follow at once; then there are pauses."""
        for real in self.real.values():
            sent = real.sent_at
            assert all(third - first >= 29.9 for first, third in zip(sent, sent[2:], strict=False))
            assert all(sixth - first >= 599.9 for first, sixth in zip(sent, sent[5:], strict=False))

    @invariant()
    def who_is_said_to_know_was_told(self) -> None:
        for agent, seat in self.inbox.seats.items():
            assert seat.hold != TOLD_PERSON or self.real[agent].person_told

    @invariant()
    def somebody_looks_now_and_then(self) -> None:
        if any(seat.life != "gone" for seat in self.inbox.seats.values()):
            assert self.looking is not None or self.inbox.due(now=self.now) is not None

    @invariant()
    def what_is_known_to_be_unread_is_being_cared_for(self) -> None:
        """A wake under way, a reported hold, or a look that will come."""
        for agent, seat in self.inbox.seats.items():
            if seat.life == "gone" or not seat.counts.unread or self.real[agent].life == "gone":
                continue
            looks = self.looking is not None or self.inbox.due(now=self.now) is not None
            assert seat.attempt is not None or seat.hold is not None or looks

    def teardown(self) -> None:
        """When all is well again, everything that stayed unread is read, or a person was told."""
        for agent, real in self.real.items():
            real.waking = None
            self.begin(agent)
            self.do(self.inbox.hook(agent, "session-start", now=self.now))
        for _ in range(60):
            if self.looking is not None:
                self.look_ends(answered=True)
            for agent, real in self.real.items():
                if real.waking is not None:
                    self.obey(agent)
            self.time_passes(1.5)
        assert not any(ids_in(real.unread) for real in self.real.values())

    def obey(self, agent: str) -> None:
        """A session that does what `/catchup` asks."""
        self.real[agent].waking = None
        self.do(self.inbox.woken(agent, sent=True, hold=None, now=self.now))
        self.do(self.inbox.hook(agent, "prompt", now=self.now))
        self.real[agent].unread.clear()
        self.do(self.inbox.hook(agent, "stop", now=self.now))


class ObedientMachine(InboxMachine):
    """The same box, whose sessions never begin anew: at the end only their hooks speak."""

    def teardown(self) -> None:
        for agent, real in self.real.items():
            if real.life == "gone":
                continue
            real.waking = None
            self.do(self.inbox.woken(agent, sent=False, hold="busy", now=self.now))
            real.life = "running"
            self.do(self.inbox.lives(agent, "running", now=self.now))
            self.sign(agent, None)
            self.hook(agent, "prompt")
            self.hook(agent, "stop")
        for _ in range(30):
            if self.looking is not None:
                self.look_ends(answered=True)
            for agent, real in self.real.items():
                if real.waking is not None:
                    self.obey(agent)
            self.time_passes(61.0)
        assert not any(ids_in(real.unread) for real in self.real.values() if real.life != "gone")


@pytest.mark.parametrize("machine", [InboxMachine, ObedientMachine])
@pytest.mark.parametrize("examples", [60, pytest.param(600, marks=pytest.mark.long)])
def test_the_inbox_keeps_its_promises(machine: type[InboxMachine], examples: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
