"""The inbox, one promise at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from notifier.inbox import Action, CheckUnread, Counts, Inbox, Policy, Report, TellPerson, Wake, read_rules
from notifier.inbox.seat import Seat
from notifier.sessions import Process, Session

A = "desk-agent#1"
B = "lab-agent#1"


@dataclass
class World:
    """An inbox with a clock, and everything that it asked for."""

    inbox: Inbox = field(default_factory=Inbox)
    now: float = 1000.0
    asked: list[Action] = field(default_factory=list)
    looking: bool = False
    person: bool = True
    """Whether somebody can be told."""

    def do(self, actions: list[Action]) -> list[Action]:
        self.asked += actions
        if CheckUnread() in actions:
            assert not self.looking
            self.looking = True
        for action in actions:
            if isinstance(action, TellPerson):
                self.asked += self.inbox.person_told(action.agent, told=self.person)
        return actions

    def known(self, agent: str = A, *, rungs: tuple[str, ...] = ("pty", "tmux"), pid: int = 7) -> None:
        self.do(self.inbox.known(Session(agent, "plain", process=Process(pid, 1)), rungs, now=self.now))

    def hook(self, event: str, agent: str = A) -> list[Action]:
        return self.do(self.inbox.hook(agent, event, now=self.now))  # type: ignore[arg-type]

    def counts(self, unread: int, agent: str = A, *, room: str = "api", oldest: int = 1) -> list[Action]:
        assert self.looking, "nobody asked"
        self.looking = False
        told = {agent: Counts(unread, {room: unread}, {room: oldest})} if unread else {}
        return self.do(self.inbox.checked(told, now=self.now))

    def nudge(self, sender: str = B, room: str = "api") -> list[Action]:
        return self.do(self.inbox.nudged(room, sender, now=self.now))

    def woken(self, *, sent: bool = True, hold: str | None = None, agent: str = A) -> list[Action]:
        return self.do(self.inbox.woken(agent, sent=sent, hold=hold, now=self.now))

    def later(self, seconds: float) -> list[Action]:
        self.now += seconds
        return self.do(self.inbox.tick(now=self.now))

    def idle(self, agent: str = A) -> None:
        """A session that has rested, with counts that are fresh."""
        self.known(agent)
        self.hook("session-start", agent)
        self.settle()

    def settle(self) -> None:
        """Answer the looks that are due with nothing unread."""
        for _ in range(3):
            if self.looking:
                self.counts(0)
            self.later(1)
        self.asked.clear()

    def wakes(self) -> list[Wake]:
        return [action for action in self.asked if isinstance(action, Wake)]

    def holds(self) -> list[str | None]:
        reports = [action for action in self.asked if isinstance(action, Report)]
        return [each.wake.reason for each in reports if each.wake and each.wake.outcome == "held"]

    def outcomes(self) -> list[str]:
        return [each.wake.outcome for each in self.asked if isinstance(each, Report) and each.wake]


@pytest.fixture
def world() -> World:
    world = World()
    world.idle()
    return world


def woken_world() -> World:
    world = World()
    world.idle()
    world.nudge()
    world.counts(2)
    world.woken()
    return world


def test_a_nudge_costs_one_look_and_wakes_an_idle_session(world: World) -> None:
    assert world.nudge() == [CheckUnread()]
    assert world.counts(2) == [Wake(A, "pty")]


def test_ten_nudges_at_once_cost_one_look_then_and_one_after(world: World) -> None:
    for _ in range(10):
        world.nudge()
    assert world.asked == [CheckUnread()]
    world.counts(2)
    world.later(0.3)
    assert world.asked.count(CheckUnread()) == 2
    assert len(world.wakes()) == 1


def test_a_wake_that_is_withdrawn_leaves_the_next_rung_a_try_and_is_tried_again_after_a_turn(
    world: World,
) -> None:
    world.nudge()
    assert world.counts(1) == [Wake(A, "pty")]
    world.woken(sent=False, hold="not taken up")
    assert world.counts(1) == [Wake(A, "tmux")]
    world.woken()
    world.hook("prompt")
    world.hook("stop")
    world.asked.clear()
    world.counts(0)
    world.nudge()
    world.later(0.3)
    assert world.counts(1) == [Wake(A, "pty")]


def test_a_wake_that_is_withdrawn_from_the_only_rung_is_tried_again_after_a_pause() -> None:
    world = World()
    world.known(rungs=("native",))
    world.hook("session-start")
    world.settle()
    world.nudge()
    world.counts(1)
    world.woken(sent=False, hold="not taken up")
    assert world.holds() == ["not taken up"]
    world.later(29)
    assert world.wakes() == [Wake(A, "native")]
    world.later(2)
    assert world.counts(1) == [Wake(A, "native")]


def test_a_session_with_nothing_to_read_is_not_woken(world: World) -> None:
    world.nudge()
    assert world.counts(0) == []


def test_a_busy_session_is_not_woken_but_when_its_turn_is_over(world: World) -> None:
    world.hook("prompt")
    world.nudge()
    world.counts(1)
    assert world.wakes() == []
    assert world.holds() == ["busy"]
    world.later(1)
    assert CheckUnread() in world.hook("stop")
    assert world.counts(1) == [Wake(A, "pty")]


def test_counts_from_before_the_turns_end_wake_nobody(world: World) -> None:
    world.hook("prompt")
    world.nudge()
    world.hook("stop")
    assert world.counts(1) == [CheckUnread()]
    world.later(0.3)
    world.counts(0)
    assert world.wakes() == []


def test_a_message_during_the_turns_end_is_not_lost(world: World) -> None:
    world.hook("prompt")
    world.hook("ending")
    world.nudge()
    world.counts(0)
    world.hook("stop")
    world.later(0.3)
    assert Wake(A, "pty") in world.counts(1)


def test_an_open_dialog_holds(world: World) -> None:
    world.hook("prompt")
    world.hook("dialog-open")
    world.nudge()
    world.counts(1)
    assert world.holds() == ["dialog open"]


def test_read_is_success_and_the_next_message_wakes_at_once() -> None:
    world = woken_world()
    world.hook("prompt")
    world.hook("stop")
    world.later(0.3)
    world.counts(0)
    assert world.outcomes() == ["sent", "started", "read"]
    world.later(1)
    world.nudge()
    assert Wake(A, "pty") in world.counts(1)


def test_a_partial_read_is_success_too() -> None:
    world = woken_world()
    world.hook("prompt")
    world.later(1)
    world.nudge()
    world.counts(1)
    assert world.outcomes() == ["sent", "started", "read", "held"]


def test_without_a_turn_the_next_rung_tries_once_and_no_key_is_repeated() -> None:
    world = woken_world()
    world.later(19)
    assert len(world.wakes()) == 1
    world.later(2)
    world.counts(2)
    assert [wake.rung for wake in world.wakes()] == ["pty", "tmux"]
    world.woken()
    for _ in range(2000):
        world.later(1)
        if world.looking:
            world.counts(2)
    assert len(world.wakes()) == 2
    assert [action.agent for action in world.asked if isinstance(action, TellPerson)] == [A]


def test_a_turn_that_reads_nothing_backs_off_then_tells_a_person() -> None:
    world = woken_world()
    tries: list[float] = [world.now]
    for _ in range(4000):
        if world.inbox.seats[A].attempt is not None:
            world.hook("prompt")
            world.hook("stop")
        world.later(1)
        if world.looking:
            world.counts(2)
            attempt = world.inbox.seats[A].attempt
            if attempt is not None and attempt.sent_at is None:
                tries.append(world.now)
                world.woken()
    gaps = [after - before for before, after in pairwise(tries)]
    assert [round(gap / 10) * 10 for gap in gaps[:3]] == [30, 120, 600]
    assert sum(isinstance(action, TellPerson) for action in world.asked) >= 1
    assert all(gap >= 599 for gap in gaps[2:])


def woken_in_vain(world: World, *, seconds: int) -> list[float]:
    """Each wake is sent and comes to nothing; returns when a person was asked for, in minutes from now."""
    began = world.now
    asked: list[float] = []
    for _ in range(seconds):
        world.later(1)
        if world.looking:
            calls = sum(isinstance(action, TellPerson) for action in world.counts(2))
            asked += [round((world.now - began) / 60)] * calls
            attempt = world.inbox.seats[A].attempt
            if attempt is not None and attempt.sent_at is None:
                world.woken()
    return asked


def test_a_person_is_told_once() -> None:
    world = woken_world()
    assert woken_in_vain(world, seconds=4000) == [13]
    assert world.holds()[-1] == "a person was told"


def test_a_person_who_could_not_be_told_is_told_later() -> None:
    world = woken_world()
    world.person = False
    assert woken_in_vain(world, seconds=1600) == [13, 23]
    assert world.holds()[-1] == "a person is needed"
    world.person = True
    assert len(woken_in_vain(world, seconds=1600)) == 1
    assert world.holds()[-1] == "a person was told"


def test_what_comes_in_during_a_turn_does_not_hide_that_it_read() -> None:
    world = woken_world()
    world.hook("prompt")
    world.later(1)
    world.hook("stop")
    world.later(0.1)
    assert world.counts(2, oldest=3)[-1] == Wake(A, "pty")
    assert world.outcomes() == ["sent", "started", "read"]


def test_half_sent_keys_are_not_repeated(world: World) -> None:
    world.nudge()
    world.counts(1)
    world.woken(sent=False, hold="echo not seen")
    world.later(0.3)
    world.counts(1)
    assert [wake.rung for wake in world.wakes()] == ["pty", "tmux"]


def test_a_hold_is_reported_once_and_tried_again(world: World) -> None:
    world.nudge()
    world.counts(1)
    world.woken(sent=False, hold="draft")
    world.later(1.1)
    world.counts(1)
    world.woken(sent=False, hold="draft")
    assert world.holds() == ["draft"]
    world.later(2.1)
    world.counts(1)
    world.woken(sent=True)
    assert [wake.rung for wake in world.wakes()] == ["pty", "pty", "pty"]
    assert world.outcomes() == ["held", "sent"]


def test_a_rung_that_cannot_reach_gives_way_after_one_look(world: World) -> None:
    world.nudge()
    world.counts(1)
    assert world.woken(sent=False, hold="pane gone") == [CheckUnread()]
    assert world.counts(1) == [Wake(A, "tmux")]


def test_a_pane_that_was_gone_is_tried_again_after_a_turn(world: World) -> None:
    world.known(rungs=("tmux",))
    world.nudge()
    world.counts(1)
    world.woken(sent=False, hold="pane gone")
    while world.looking:
        world.counts(1)
        world.later(1)
    assert world.holds()[-1] == "no way to wake it"
    world.hook("prompt")
    world.hook("stop")
    assert world.counts(1)[-1] == Wake(A, "tmux")


def test_a_pane_that_was_gone_is_tried_again_after_pauses_that_grow(world: World) -> None:
    world.known(rungs=("tmux",))
    world.nudge()
    tried: list[float] = []
    for _ in range(1800):
        if world.looking:
            world.counts(1)
        if world.inbox.seats[A].attempt is not None:
            tried.append(world.now)
            world.woken(sent=False, hold="pane gone")
        world.later(1)
    pauses = [b - a for a, b in pairwise(tried)]
    assert [pause // 10 * 10 for pause in pauses] == [30, 120, 600, 600]
    assert world.holds() == ["no way to wake it"]


def test_a_withdrawn_wake_beside_a_lost_pane_is_tried_again(world: World) -> None:
    world.known(rungs=("native", "tmux"))
    world.nudge()
    world.counts(1)
    world.woken(sent=False, hold="not taken up")
    world.counts(1)
    world.woken(sent=False, hold="pane gone")
    world.counts(1)
    world.later(31)
    assert world.counts(1) == [Wake(A, "native")]


def test_no_rung_is_a_reported_hold(world: World) -> None:
    world.known(rungs=())
    world.nudge()
    world.counts(1)
    assert world.holds() == ["no way to wake it"]


def test_a_silent_nerve_is_made_good_by_the_sweep(world: World) -> None:
    world.later(61)
    assert world.asked == [CheckUnread()]
    assert world.counts(1) == [Wake(A, "pty")]


def test_a_failed_look_is_repeated(world: World) -> None:
    world.nudge()
    world.looking = False
    world.do(world.inbox.check_failed(now=world.now))
    assert world.later(0.6) == [CheckUnread()]


def test_nudges_that_go_on_and_on_cost_five_looks_a_second(world: World) -> None:
    for _ in range(100):
        world.nudge()
        if world.looking:
            world.counts(0)
        world.later(0.01)
    assert world.asked.count(CheckUnread()) <= 6


def test_a_reconnect_looks_again(world: World) -> None:
    assert world.do(world.inbox.reconnected(now=world.now)) == [CheckUnread()]


def test_a_session_whose_hooks_never_spoke_is_left_alone() -> None:
    world = World()
    world.known()
    world.counts(3)
    assert world.wakes() == []
    assert world.holds() == ["its hooks have not spoken yet"]


def test_a_suspended_session_is_left_alone_until_it_runs_again(world: World) -> None:
    world.do(world.inbox.lives(A, "stopped", now=world.now))
    world.nudge()
    world.counts(1)
    assert world.holds() == ["suspended"]
    world.later(1)
    world.do(world.inbox.lives(A, "running", now=world.now))
    assert Wake(A, "pty") in world.counts(1)


def test_a_gone_session_is_offline_and_costs_no_look(world: World) -> None:
    assert world.do(world.inbox.lives(A, "gone", now=world.now)) == [Report(A, "offline")]
    world.nudge()
    assert world.asked == [Report(A, "offline")]


def test_hooks_and_the_programs_own_sign_must_agree_on_idle(world: World) -> None:
    world.do(world.inbox.signed(A, "busy", now=world.now))
    world.nudge()
    world.counts(1)
    assert world.holds() == ["busy"]
    world.later(1)
    world.do(world.inbox.signed(A, "idle", now=world.now))
    assert Wake(A, "pty") in world.counts(1)


def test_an_interrupted_turn_that_no_hook_tells_of_ends_by_the_programs_own_sign(world: World) -> None:
    world.hook("prompt")
    world.do(world.inbox.signed(A, "busy", now=world.now))
    world.later(5)
    world.do(world.inbox.signed(A, "idle", now=world.now))
    world.later(1)
    assert world.inbox.seats[A].state == "busy"
    world.later(3)
    assert world.inbox.seats[A].state == "idle"


def test_a_turns_end_that_was_never_confirmed_counts_as_one(world: World) -> None:
    world.hook("prompt")
    world.hook("ending")
    world.later(9)
    assert world.inbox.seats[A].state == "busy"
    world.later(2)
    assert world.inbox.seats[A].state == "idle"


def test_what_is_for_everyone_wakes_nobody(world: World) -> None:
    world.nudge(room="@everyone")
    world.counts(2, room="@everyone")
    assert world.wakes() == []
    assert world.holds() == ["nothing unread that may wake it"]


def everything(room: str) -> Counts:
    """Three messages in a room: one addressed, one urgent, and one of neither kind."""
    return Counts(3, {room: 3}, {room: 1}, addressed_in={room: 1}, urgent_in={room: 1})


@pytest.mark.parametrize(
    ("rules", "wakes"),
    [
        ("all", {"api": 3, "ops": 3, "@everyone": 1}),
        ("addressed", {"api": 1, "ops": 1, "@everyone": 1}),
        ("none", {"api": 0, "ops": 0, "@everyone": 0}),
        ("ops=none", {"api": 3, "ops": 0, "@everyone": 1}),
        (" none , api = all,ops=addressed ", {"api": 3, "ops": 1, "@everyone": 0}),
        ("@everyone=none", {"api": 3, "ops": 3, "@everyone": 0}),
    ],
)
@pytest.mark.parametrize("whose", ["the session's", "the box's"])
def test_what_wakes_is_said_for_each_session_and_room(rules: str, wakes: dict[str, int], whose: str) -> None:
    own = rules if whose == "the session's" else None
    policy = Policy(wake_on=read_rules("none" if own else rules))
    for room, number in wakes.items():
        seat = Seat(Session(A, "plain", wake_on=own), (), counts=everything(room))
        assert seat.waking(policy) == number, room


@pytest.mark.parametrize("text", ["some", "api", "api=", "=", "all all", "api=everything", "ops=none; all"])
def test_what_cannot_be_read_of_the_rules_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="none of all, addressed, none"):
        read_rules(text)


def test_an_urgent_broadcast_wakes(world: World) -> None:
    world.nudge(room="@everyone")
    world.looking = False
    world.do(world.inbox.checked({A: everything("@everyone")}, now=world.now))
    assert world.wakes() == [Wake(A, "pty")]


def answered_wake(world: World) -> bool:
    """One message, one wake, read at once; False when it was held."""
    world.later(1)
    world.nudge()
    before = len(world.wakes())
    world.counts(1)
    if len(world.wakes()) == before:
        return False
    world.woken()
    world.hook("prompt")
    world.hook("stop")
    world.later(0.3)
    world.counts(0)
    return True


def looping(world: World) -> None:
    """Twenty wakes, and the twenty-first is held."""
    assert [answered_wake(world) for _ in range(21)] == [True] * 20 + [False]
    assert world.holds()[-1] == "loop_guard"


def person_says(world: World, *, room: str = "api") -> list[Action]:
    """A person's word waits beside an agent's."""
    world.later(1)
    world.nudge(sender="eric", room=room)
    world.looking = False
    rooms = {"api": 2} if room == "api" else {"api": 1, room: 1}
    counts = Counts(2, rooms, dict.fromkeys(rooms, 1), from_people_in={room: 1})
    return world.do(world.inbox.checked({A: counts}, now=world.now))


def test_two_agents_who_only_wake_each_other_are_held_until_a_person_speaks(world: World) -> None:
    looping(world)
    assert Wake(A, "pty") in person_says(world)


def test_a_persons_word_frees_a_loop_once(world: World) -> None:
    """The room is never seen empty: the other agent's answer is always there before the next look."""
    looping(world)
    person_says(world)
    wakes = 0
    for newest in range(100, 160):
        if world.inbox.seats[A].attempt is None:
            break
        wakes += 1
        world.woken()
        world.hook("prompt")
        world.nudge()
        world.hook("stop")
        while world.looking:
            world.counts(1, oldest=newest)
        world.later(1)
    assert wakes == 20
    assert world.holds()[-1] == "loop_guard"


def test_a_nudge_that_brought_no_persons_word_frees_no_loop(world: World) -> None:
    looping(world)
    world.later(1)
    world.nudge(sender="eric")
    assert not any(isinstance(action, Wake) for action in world.counts(1))


def test_a_persons_word_that_may_not_wake_frees_no_loop(world: World) -> None:
    session = Session(A, "plain", process=Process(7, 1), wake_on="all, ops=none")
    world.do(world.inbox.known(session, ("pty", "tmux"), now=world.now))
    looping(world)
    assert not any(isinstance(action, Wake) for action in person_says(world, room="ops"))


def test_the_damper_can_be_switched_off() -> None:
    world = World(Inbox(Policy(damper=False)))
    world.idle()
    assert all(answered_wake(world) for _ in range(60))


def test_a_new_process_under_the_handle_is_a_new_beginning() -> None:
    world = woken_world()
    world.known(pid=8)
    assert world.inbox.seats[A].state == "starting"
    assert world.woken() == []


def test_a_new_process_under_the_handle_has_what_is_left_of_the_budget() -> None:
    world = World(Inbox(Policy(budget_wakes=1)))
    world.idle()
    assert answered_wake(world)
    world.known(pid=8)
    world.hook("session-start")
    world.nudge()
    while world.looking:
        world.counts(1)
    assert world.holds()[-1:] == ["wake budget used up"]


def test_a_session_whose_hooks_never_spoke_is_not_idle_by_its_own_sign_alone() -> None:
    world = World()
    world.known()
    world.do(world.inbox.signed(A, "idle", now=world.now))
    world.later(10)
    assert world.inbox.seats[A].state == "starting"


def test_a_hook_that_speaks_of_a_turns_end_tells_of_a_turn(world: World) -> None:
    """The hook of its beginning was lost."""
    world.hook("ending")
    world.nudge()
    world.counts(1)
    assert world.holds()[-1] == "busy"


def test_a_pause_is_said_to_be_one_whatever_happened_meanwhile(world: World) -> None:
    world.nudge()
    world.counts(1)
    world.woken()
    world.hook("prompt")
    world.hook("stop")
    world.counts(1)
    world.hook("dialog-open")
    world.nudge()
    world.later(1)
    world.counts(1)
    world.hook("stop")
    world.counts(1)
    assert world.holds()[-3:] == ["woken, but it did not read", "dialog open", "woken, but it did not read"]


def test_due_names_the_next_moment_of_interest(world: World) -> None:
    world.nudge()
    world.counts(1)
    world.woken()
    due = world.inbox.due(now=world.now)
    assert due is not None
    assert due - world.now <= 20
