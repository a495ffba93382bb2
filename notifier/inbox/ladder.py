"""From unread messages to a wake, and from a wake to its proof: rung by rung, never the same keys blindly."""

from __future__ import annotations

from notifier.inbox.actions import Action, Outcome, Report, TellPerson, Wake, WakeReport
from notifier.inbox.checks import Checks
from notifier.inbox.damper import Damper, is_no_session
from notifier.inbox.policy import Policy
from notifier.inbox.seat import Attempt, Seat
from notifier.sessions import State

STATE_HOLDS: dict[State, str] = {
    "starting": "its hooks have not spoken yet",
    "busy": "busy",
    "waiting": "dialog open",
    "suspended": "suspended",
    "offline": "offline",
    "unknown": "state unknown",
}
"""Why a session in this state is not woken."""

NO_RUNG = "no way to wake it"
NO_PROOF = "no proof of the last wake"
NOT_READ = "woken, but it did not read"
NEED_PERSON = "a person is needed"
TOLD_PERSON = "a person was told"
BUDGET = "wake budget used up"
LOOP_GUARD = "loop_guard"
NOT_WANTED = "nothing unread that may wake it"

HALF_SENT = ("echo not seen",)
"""Holds after which our text may stand in the composer: the outcome is unknown."""
WITHDRAWN = ("not taken up",)
"""Holds of a wake that was taken back whole, on a rung that the program does not listen to just now."""
UNREACHABLE = ("pane gone", NO_RUNG)
"""Holds that say this rung cannot reach the session: nothing was typed, the next rung may try."""


class Ladder:
    """Decides on wakes, a seat at a time, by counts that are not older than the seat's last turn."""

    def __init__(self, policy: Policy, checks: Checks) -> None:
        self._policy = policy
        self._checks = checks
        self.damper = Damper(policy)

    def consider(self, seat: Seat, *, now: float) -> list[Action]:
        """Wake the session if it may be, else hold with the reason."""
        if seat.attempt is not None:
            return []
        if seat.waking(self._policy) == 0:
            return self._nothing_to_wake_for(seat)
        if seat.parked and seat.state == "idle" and not seat.person_told and now >= seat.not_before:
            return self._call_person(seat, seat.parked, now)
        reason = self._closed_gate(seat, now)
        if reason is not None:
            return self.hold(seat, reason)
        if seat.reopens_at is not None and now >= seat.reopens_at:
            seat.reopen()
        rung = seat.open_rung()
        if rung is None:
            return self._back_off(seat, NO_PROOF, now=now) if seat.spent else self._out_of_reach(seat, now)
        seat.attempt = Attempt(rung)
        return [Wake(seat.session.agent, rung)]

    def hold(self, seat: Seat, reason: str) -> list[Action]:
        """Not now; reported once for each new reason."""
        if seat.hold == reason:
            return []
        seat.hold = reason
        rung = seat.open_rung() or "none"
        return [Report(seat.session.agent, seat.state, WakeReport(rung, "held", reason))]

    def woken(self, seat: Seat, *, sent: bool, hold: str | None, now: float) -> list[Action]:
        """What became of the attempt that `consider` asked for."""
        attempt = seat.attempt
        if attempt is None or attempt.sent_at is not None:
            return []
        if sent:
            return self._sent(seat, attempt, now)
        seat.attempt = None
        reason = hold or NO_RUNG
        if reason in (*HALF_SENT, *WITHDRAWN):
            (seat.spent if reason in HALF_SENT else seat.passed).add(attempt.rung)
            return [*self.hold(seat, reason), *self._failed(seat, reason, now=now)]
        if reason in UNREACHABLE:
            seat.closed.add(attempt.rung)
            self._checks.want(now)  # a turn may have ended meanwhile: the next rung wants fresh counts
            return []
        retries = self._policy.hold_retries
        self._checks.want(now + retries[min(seat.hold_count, len(retries) - 1)])
        seat.hold_count += 1
        return self.hold(seat, reason)

    def turn_started(self, seat: Seat) -> list[Action]:
        """The session took up work; after a wake that is the first half of its proof."""
        attempt = seat.attempt
        if attempt is None or attempt.started:
            return []
        attempt.started = True
        return [] if attempt.sent_at is None else [self._report(seat, attempt.rung, "started")]

    def read(self, seat: Seat) -> list[Action]:
        """The session took messages: after a wake, its success."""
        seat.next_tried, seat.pauses, seat.not_before = False, 0, 0.0
        seat.parked, seat.person_told = None, False
        seat.spent.clear()
        attempt = seat.attempt
        if attempt is None:
            return []
        attempt.read = True
        if attempt.sent_at is None:
            return []
        seat.attempt = None
        return [self._report(seat, attempt.rung, "read")]

    def person_told(self, seat: Seat) -> list[Action]:
        """The person who is needed knows it."""
        if seat.parked is None:
            return []
        seat.person_told = True
        return self.hold(seat, TOLD_PERSON)

    def turn_without_reading(self, seat: Seat, *, now: float) -> list[Action]:
        """The turn that a wake began is over, and the messages are still unread."""
        seat.attempt = None
        return self._back_off(seat, NOT_READ, now=now)

    def expire(self, seat: Seat, *, now: float) -> list[Action]:
        """Give up on a wake that no turn followed. Its keys may have arrived: its rung is spent."""
        attempt = seat.attempt
        due = self.due(seat)
        if attempt is None or due is None or now < due:
            return []
        seat.attempt = None
        seat.spent.add(attempt.rung)
        return self._failed(seat, NO_PROOF, now=now)

    def due(self, seat: Seat) -> float | None:
        """When `expire` has something to do."""
        attempt = seat.attempt
        if attempt is None or attempt.sent_at is None or attempt.started:
            return None
        return attempt.sent_at + self._policy.proof

    def _closed_gate(self, seat: Seat, now: float) -> str | None:
        if seat.state != "idle":
            return STATE_HOLDS[seat.state]
        if seat.parked:
            return TOLD_PERSON if seat.person_told else NEED_PERSON
        if now < seat.not_before:
            self._checks.want(seat.not_before)
            return seat.paused_for or NO_PROOF
        if self._over_budget(seat, now):
            return BUDGET
        return LOOP_GUARD if self._loops(seat, now) else None

    def _loops(self, seat: Seat, now: float) -> bool:
        """Whether agents alone would wake it, too often. A person's word is not held, and counts once."""
        agents = {sender for sender in seat.senders(self._policy) if not is_no_session(sender)}
        return not (
            seat.person_waits(self._policy) or self.damper.allows(seat.session.agent, agents, now=now)
        )

    def _over_budget(self, seat: Seat, now: float) -> bool:
        while seat.wakes and seat.wakes[0] <= now - self._policy.budget_window:
            seat.wakes.popleft()
        return len(seat.wakes) >= self._policy.budget_wakes

    def _nothing_to_wake_for(self, seat: Seat) -> list[Action]:
        if seat.counts.unread:
            return self.hold(seat, NOT_WANTED)
        seat.hold, seat.hold_count = None, 0
        return []

    def _sent(self, seat: Seat, attempt: Attempt, now: float) -> list[Action]:
        attempt.sent_at = seat.last_sent_at = now
        seat.hold, seat.hold_count = None, 0
        seat.wakes.append(now)
        if seat.person_waits(self._policy):
            self.damper.begin_anew(seat.session.agent)
        seat.heed()
        self.damper.count(seat.session.agent, seat.senders(self._policy), now=now)
        actions: list[Action] = [self._report(seat, attempt.rung, "sent")]
        if attempt.started:
            actions.append(self._report(seat, attempt.rung, "started"))
        if attempt.read:
            actions += self.read(seat)
        elif attempt.turn_over:
            self._checks.want(now)
        return actions

    def _failed(self, seat: Seat, reason: str, *, now: float) -> list[Action]:
        """No turn came of it. The next rung may try at once, one time; then patience."""
        if not seat.next_tried and seat.open_rung() is not None:
            seat.next_tried = True
            self._checks.want(now)
            return []
        return self._back_off(seat, reason, now=now)

    def _back_off(self, seat: Seat, reason: str, *, now: float) -> list[Action]:
        steps = self._policy.back_off
        if seat.open_rung() is None:
            seat.reopen()
        seat.paused_for = reason
        if seat.pauses < len(steps):
            seat.not_before = now + steps[seat.pauses]
            seat.pauses += 1
            seat.next_tried = True
            self._checks.want(seat.not_before)
            return self.hold(seat, reason)
        return self._call_person(seat, reason, now)

    def _out_of_reach(self, seat: Seat, now: float) -> list[Action]:
        """Nothing was typed on any rung, so all may be tried again, after pauses that grow."""
        if seat.rungs and seat.reopens_at is None:
            steps = self._policy.back_off
            seat.reopens_at = now + steps[min(seat.reopened, len(steps) - 1)]
            seat.reopened += 1
        if seat.reopens_at is not None:
            self._checks.want(seat.reopens_at)
        return self.hold(seat, NO_RUNG)

    def _call_person(self, seat: Seat, reason: str, now: float) -> list[Action]:
        """Have them told; once more after the longest pause, as long as that fails."""
        seat.parked, seat.not_before = reason, now + self._policy.back_off[-1]
        self._checks.want(seat.not_before)
        return [*self.hold(seat, NEED_PERSON), TellPerson(seat.session.agent, reason)]

    def _report(self, seat: Seat, rung: str, outcome: Outcome) -> Report:
        seat.last_wake = WakeReport(rung, outcome)
        return Report(seat.session.agent, seat.state, seat.last_wake)
