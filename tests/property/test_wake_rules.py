"""Hold the inbox to plain rules: gates, no storm, no endless loop, and nothing unread is ever forgotten."""

from __future__ import annotations

from typing import Literal

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from notifier.inbox import Action, CheckUnread, Inbox, Policy, Report, TellPerson, Wake
from notifier.inbox.seat import Life
from notifier.sessions import Event, Process, Session, State
from tests.property.wake_rules import (
    AT_REST,
    THRIFTY,
    WORK,
    Guard,
    Real,
    Said,
    counts_of,
    may_call,
    may_hold,
    may_wake,
)

DESK, TOWER = "desk-agent#1", "desk-agent#2"
AGENTS = (DESK, TOWER)
SENDERS = (DESK, TOWER, "lab-agent#1", "eric")
ROOMS = ("api", "ops", "@everyone")
RUNGS = ("native", "tmux")
RULES: dict[str, dict[str, str]] = {
    "": {"": "all"},
    "all, ops=none": {"": "all", "ops": "none"},
    "addressed, api=all": {"": "addressed", "api": "all"},
    "none": {"": "none"},
}
GONE = ("pane gone", "no way to wake it")
HOLDS = ("draft", "recent key", "busy", "copy mode", "output still moving", "nobody could be told")
Ending = Literal["begun anew", "a turn", "left alone"]


class WakeRules(RuleBasedStateMachine):
    """Two sessions of a box, their record, and an adversary who picks what happens next."""

    def __init__(self) -> None:
        super().__init__()
        self.policy = THRIFTY
        self.inbox = Inbox(self.policy)
        self.guard = Guard(self.policy.damper_wakes)
        self.now = 1000.0
        self.looking: dict[str, list[Said]] | None = None
        self.looks = self.said = self.pids = 0
        self.person_hears = True
        self.ending: Ending = "begun anew"
        self.writers: set[str] = set()
        """The agents of whom nudges told."""
        self.wake_on = dict.fromkeys(AGENTS, "")
        self.real: dict[str, Real] = {}

    @initialize(
        ending=st.sampled_from(("begun anew", "a turn", "left alone")),
        rules=st.tuples(st.sampled_from(list(RULES)), st.sampled_from(("", "all, ops=none"))),
        resting=st.booleans(),
    )
    def begins(self, ending: Ending, rules: tuple[str, str], resting: bool) -> None:
        self.ending = ending
        self.wake_on = dict(zip(AGENTS, rules, strict=True))
        for agent in AGENTS:
            self.starts_anew(agent)
            if resting:
                self.hook(agent, "session-start")

    # What the inbox asks for

    def do(self, actions: list[Action]) -> None:
        for real in self.real.values():
            real.comes_to_rest(self.looks, self.now)
        for action in actions:
            match action:
                case CheckUnread():
                    assert self.looking is None, "two looks at once"
                    self.looking = {agent: list(real.unread) for agent, real in self.real.items()}
                    self.looks += 1
                case Wake(agent, rung):
                    self.asked_to_wake(self.real[agent], rung)
                case Report(agent, _, wake) if wake is not None:
                    self.reported(self.real[agent], wake.outcome, wake.reason)
                case TellPerson(agent):
                    self.asked_to_call(self.real[agent])

    def asked_to_wake(self, real: Real, rung: str) -> None:
        may_wake(real, rung, policy=self.policy, now=self.now)
        self.guard.check(real.agent, real.waiting(), len(self.writers - {real.agent}), self.now)
        real.asked, real.sent_at, real.moved = rung, None, False

    def asked_to_call(self, real: Real) -> None:
        may_call(real, self.now)
        real.calls.append(self.now)
        real.person_knows = self.person_hears
        self.do(self.inbox.person_told(real.agent, told=self.person_hears))

    def reported(self, real: Real, outcome: str, reason: str | None) -> None:
        real.hold = reason if outcome == "held" else None
        if outcome == "read":
            real.has_read()
        if outcome == "held":
            assert reason, "held without a reason"
            may_hold(real, reason, policy=self.policy, now=self.now)
            if reason == "loop_guard":
                self.guard.may_hold(real.agent, real.waiting(), self.now)

    # What happens

    agents = st.sampled_from(AGENTS)

    @rule(seconds=st.sampled_from((0.1, 0.4, 1.0, 3.5, 11.0, 20.5, 61.0, 130.0, 610.0)))
    def time_passes(self, seconds: float) -> None:
        """Ticks come when they are due."""
        end = self.now + seconds
        for _ in range(100):
            due = self.inbox.due(now=self.now)
            if due is None or due > end:
                break
            self.now = max(due, self.now)
            self.do(self.inbox.tick(now=self.now))
        self.now = end
        self.do(self.inbox.tick(now=self.now))

    @rule(seconds=st.sampled_from((45.0, 700.0, 30_000.0)), noticed=st.booleans())
    def sleeps(self, seconds: float, noticed: bool) -> None:
        """The machine, or the notifier alone: one late tick for all that was due."""
        self.now += seconds
        self.do(self.inbox.tick(now=self.now))
        if noticed:
            self.do(self.inbox.reconnected(now=self.now))

    @rule(
        sender=st.sampled_from(SENDERS),
        room=st.sampled_from(ROOMS),
        kind=st.sampled_from(("plain", "addressed", "urgent")),
        nudged=st.booleans(),
    )
    def somebody_says(self, sender: str, room: str, kind: str = "plain", nudged: bool = True) -> None:
        self.said += 1
        said = Said(self.said, room, sender, kind == "addressed", kind == "urgent", nudged)
        for agent, real in self.real.items():
            if agent != sender:
                real.unread.append(said)
        if nudged:
            self.a_nudge(sender, room)

    @rule(sender=st.sampled_from((*SENDERS, "system")), room=st.sampled_from((*ROOMS, "elsewhere")))
    def a_nudge(self, sender: str, room: str) -> None:
        """By itself: for nothing that these sessions have to read."""
        self.writers |= {sender} if "#" in sender else set()
        self.do(self.inbox.nudged(room, sender, now=self.now))

    @rule(count=st.integers(2, 12), sender=st.sampled_from(SENDERS))
    def a_burst(self, count: int, sender: str) -> None:
        """Many at once cost two looks at most: one at the first, one for all that came in meanwhile."""
        before = self.looks
        for _ in range(count):
            self.somebody_says(sender, "api")
        self.looked()
        assert self.looks - before <= 2, "a look for every nudge"

    @precondition(lambda self: self.looking is not None)
    @rule(answered=st.booleans())
    def look_ends(self, answered: bool = True) -> None:
        found, self.looking = self.looking, None
        if found is None:
            return
        if not answered:
            self.do(self.inbox.check_failed(now=self.now))
            return
        for agent, waiting in found.items():
            real = self.real[agent]
            if set(real.shown) - set(waiting):
                real.has_read()
            real.shown, real.shown_by = waiting, self.looks
            if not real.waking() and real.shown_by > real.rested_after:
                real.hold = None
        told = {agent: counts_of(waiting) for agent, waiting in found.items() if waiting}
        self.do(self.inbox.checked(told, now=self.now))
        for real in self.real.values():
            self.nothing_is_forgotten(real)

    def nothing_is_forgotten(self, real: Real) -> None:
        """After a look: a wake is on its way, or it is said why not."""
        if real.life == "gone" or not real.waking() or real.shown_by <= real.rested_after:
            return
        on_its_way = real.woken_just_now(self.now)
        assert on_its_way or real.hold is not None, "neither a wake nor a reason"
        if real.rests(self.now) and not on_its_way:
            assert real.hold not in ("dialog open", "suspended", "offline"), "a reason that is over"
            if self.guard.fresh(real.agent, real.waiting()):
                assert real.hold != "loop_guard", "a person's word does not end the hold"

    def looked(self) -> None:
        """Every look that is wanted is answered."""
        for _ in range(3):
            self.look_ends()

    @rule(agent=agents, event=st.sampled_from((*WORK, "session-start", "dialog-open", "dialog-close")))
    def hook(self, agent: str, event: Event) -> None:
        real = self.real[agent]
        if real.life == "gone":
            return
        real.event, real.event_at = event, self.now
        if event in WORK:
            real.worked()
        if event in AT_REST:
            real.rested_after = self.looks
        self.do(self.inbox.hook(agent, event, now=self.now))

    @rule(agent=agents, sign=st.sampled_from((None, "idle", "busy", "waiting", "unknown")))
    def sign(self, agent: str, sign: State | None) -> None:
        real = self.real[agent]
        if sign == "busy":
            real.worked()
        if sign != real.sign:
            real.sign, real.sign_at = sign, self.now
        self.do(self.inbox.signed(agent, sign, now=self.now))

    @rule(agent=agents, life=st.sampled_from(("running", "stopped", "gone")))
    def life(self, agent: str, life: Life) -> None:
        real = self.real[agent]
        if real.life == "gone":
            return
        real.life = life
        if life == "gone":
            real.asked = real.sent_at = real.hold = None
        self.do(self.inbox.lives(agent, life, now=self.now))

    @rule(agent=agents)
    def starts_anew(self, agent: str) -> None:
        """A new process under the same handle: its composer is empty, its hours are not."""
        old = self.real.get(agent)
        self.pids += 1
        real = Real(agent, self.pids, RULES[self.wake_on[agent]])
        if old is not None:
            real.unread, real.wakes = old.unread, old.wakes
        real.rested_after, real.event_at = self.looks, self.now
        self.real[agent] = real
        session = Session(agent, "plain", process=Process(self.pids, 1), wake_on=self.wake_on[agent] or None)
        self.do(self.inbox.known(session, RUNGS, now=self.now))

    @rule(agent=agents, room=st.sampled_from((*ROOMS, None)))
    def reads(self, agent: str, room: str | None) -> None:
        """What waits in one room, or everywhere."""
        real = self.real[agent]
        real.unread = [said for said in real.unread if room not in (None, said.room)]

    @rule(agent=agents, end=st.sampled_from(("sent", "echo not seen", "not taken up", *GONE, *HOLDS)))
    def wake_ends(self, agent: str, end: str) -> None:
        real, rung = self.real[agent], self.real[agent].asked
        if rung is None:
            return
        real.asked = None
        sent = end == "sent"
        if sent:
            real.wakes.append(self.now)
            real.unproved.append(self.now)
            real.sent_at, real.in_its_turn = self.now, not real.rests(self.now)
            self.guard.note(agent, real.waiting(), self.now)
        if end in ("sent", "echo not seen") and not real.moved:
            real.in_doubt.add(rung)
        if end in GONE:
            real.out_of_reach[rung] = self.now
        self.do(self.inbox.woken(agent, sent=sent, hold=None if sent else end, now=self.now))

    @rule(hears=st.booleans())
    def the_person(self, hears: bool) -> None:
        """Whether somebody sits there who can be told."""
        self.person_hears = hears

    @rule()
    def reconnects(self) -> None:
        self.do(self.inbox.reconnected(now=self.now))

    @rule(agent=agents)
    def turn_ends_with_a_hand_over(self, agent: str) -> None:
        """At a turn's end what is unread is handed over, if that is no loop, and the turn goes on."""
        real = self.real[agent]
        if real.life != "running" or real.asked is not None:
            return
        self.hook(agent, "ending")
        senders = {said.sender for said in real.unread}
        allowed = bool(senders) and self.inbox.may_engage(agent, senders, now=self.now)
        assert allowed or all("#" in sender for sender in senders), "a person's word was not handed over"
        if allowed:
            self.guard.note(agent, list(real.unread), self.now)
            self.reads(agent, None)
            self.inbox.engaged(agent, senders, now=self.now)
            self.hook(agent, "continue")
            self.do(self.inbox.look_soon(now=self.now))
        self.hook(agent, "stop")

    @rule(
        agent=agents,
        sender=st.sampled_from(SENDERS),
        room=st.sampled_from(("api", "api", "ops")),
        prompt_reply=st.booleans(),
        times=st.integers(1, 6),
    )
    def ping_pong(self, agent: str, sender: str, room: str, prompt_reply: bool, times: int) -> None:
        """Somebody writes, the session is woken and reads, again and again; answers may be there at once."""
        if self.real[agent].event is None or sender == agent:
            return
        for _ in range(times):
            self.somebody_says(sender, room)
            self.looked()
            if self.real[agent].asked is not None:
                self.obeys(agent)
                if not prompt_reply:
                    self.looked()
            self.time_passes(1.0)

    @rule(
        agent=agents,
        end=st.sampled_from(("sent", "echo not seen", "not taken up", "pane gone")),
        turn=st.booleans(),
    )
    def a_wake_for_nothing(self, agent: str, end: str, turn: bool) -> None:
        if self.real[agent].asked is None:
            return
        self.wake_ends(agent, end)
        if turn:
            self.hook(agent, "prompt")
            self.hook(agent, "stop")
        self.looked()
        self.time_passes(20.5)
        self.looked()

    def obeys(self, agent: str) -> None:
        """It does what `/catchup` asks."""
        self.wake_ends(agent, "sent")
        self.hook(agent, "prompt")
        self.reads(agent, None)
        self.hook(agent, "stop")

    # What holds at all times

    @invariant()
    def somebody_looks_once_a_minute(self) -> None:
        if self.looking is None and any(real.life != "gone" for real in self.real.values()):
            due = self.inbox.due(now=self.now)
            assert due is not None
            assert due <= self.now + 60 + 1e-6

    # How it ends

    def teardown(self) -> None:
        """Now everything works. What may wake is read, or a person was told."""
        self.person_hears = True
        for agent, real in self.real.items():
            self.wake_ends(agent, "busy")
            if self.ending == "begun anew":
                self.starts_anew(agent)
                self.hook(agent, "session-start")
            elif real.life != "gone":
                self.comes_to_rest(agent)
        for _ in range(80):
            self.looked()
            for agent, real in self.real.items():
                if real.asked is not None:
                    self.obeys(agent)
            self.time_passes(60.5)
        for agent, real in self.real.items():
            if real.life != "gone":
                self.is_cared_for(agent, real)

    def comes_to_rest(self, agent: str) -> None:
        """By a turn of its own; left alone, only if it rests already."""
        self.life(agent, "running")
        self.sign(agent, None)
        if self.ending == "a turn":
            self.hook(agent, "prompt")
            self.hook(agent, "stop")

    def is_cared_for(self, agent: str, real: Real) -> None:
        left = [said for said in real.unread if said in real.waking()]
        if self.ending == "left alone":
            assert not left or not real.rests(self.now) or real.person_knows, (
                f"{agent} was forgotten: {real.hold}"
            )
        else:
            assert not left, f"{agent} was not woken: {real.hold}"


def hold_to_the_rules(*, examples: int, steps: int, phases: tuple[Phase, ...] = tuple(Phase)) -> None:
    run_state_machine_as_test(
        WakeRules,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            phases=phases,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )


def test_wakes_follow_the_rules() -> None:
    hold_to_the_rules(examples=120, steps=25, phases=(Phase.reuse, Phase.generate))


@pytest.mark.long
def test_wakes_follow_the_rules_for_long() -> None:
    hold_to_the_rules(examples=1500, steps=45)


def test_the_numbers_are_those_of_the_contract() -> None:
    policy = Policy()
    assert (policy.damper, policy.damper_wakes, policy.damper_window) == (True, 20, 600)
    assert (policy.back_off, policy.sweep) == ((30, 120, 600), 60)
