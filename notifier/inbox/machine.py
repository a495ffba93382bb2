"""The inbox: keeps every session's state, asks for unread counts, and lets the ladder decide."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from notifier.inbox.actions import Action, CheckUnread, Report
from notifier.inbox.checks import Checks
from notifier.inbox.damper import is_no_session
from notifier.inbox.ladder import NOT_READ, Ladder
from notifier.inbox.policy import Policy
from notifier.inbox.seat import Counts, Life, Seat
from notifier.sessions import Event, Session, State

_TOLD: dict[Event, State] = {
    "session-start": "idle",
    "prompt": "busy",
    "tool": "busy",
    "dialog-open": "waiting",
    "dialog-close": "busy",
    "ending": "busy",
    "stop": "idle",
    "continue": "busy",
}
_WORK: tuple[Event, ...] = ("prompt", "tool", "ending", "stop", "continue")


class Inbox:
    """Events in, actions out; `now` is seconds on any clock that never goes back.

    A wake is asked for only when a look at the unread counts that began after the session's last turn has
    shown something to read, the session is idle, and no earlier wake of it is on its way.
    """

    def __init__(self, policy: Policy | None = None) -> None:
        self.policy = policy or Policy()
        self.seats: dict[str, Seat] = {}
        self._checks = Checks(self.policy)
        self._ladder = Ladder(self.policy, self._checks)

    def known(
        self, session: Session, rungs: Collection[str], *, now: float, told: State | None = None
    ) -> list[Action]:
        """A session was launched, checked in, or is known better; `told` restores what its hooks said.

        A new process is a new beginning.
        """
        seat = self.seats.get(session.agent)
        if seat is None or seat.life == "gone" or seat.session.process != session.process:
            before, seat = seat, Seat(session, tuple(rungs), told_at=now, fresh_from=self._checks.serial + 1)
            if before is not None:
                seat.begins_anew(before)
            self.seats[session.agent] = seat
            seat.told = told or "starting"
            seat.state = seat.judged(self.policy, now)
            self._checks.want(now)
            return [Report(session.agent, seat.state), *self._look(now)]
        if tuple(rungs) != seat.rungs:
            seat.rungs = tuple(rungs)
            seat.reopen()
        seat.session = session
        return self._look(now)

    def hook(self, agent: str, event: Event, *, now: float, resting: bool = True) -> list[Action]:
        """A hook spoke. `resting`: after a `session-start`, whether the session waits for input."""
        seat = self.seats.get(agent)
        if seat is None:
            return []
        if event == "session-end":
            return self.lives(agent, "gone", now=now)
        actions: list[Action] = []
        if event in _WORK:
            seat.in_turn = True
            actions += self._ladder.turn_started(seat)
        seat.ending = event == "ending"
        if event != "session-start" or resting:
            seat.told = _TOLD[event]
        elif seat.told == "starting":
            seat.told = "busy"
        seat.told_at = now
        actions += self._settle(seat, now)
        if event in ("stop", "session-start") and seat.state == "idle":
            self._rest(seat, now)
        return [*actions, *self._look(now)]

    def signed(self, agent: str, sign: State | None, *, now: float) -> list[Action]:
        """The program's own sign, read again."""
        seat = self.seats.get(agent)
        if seat is None:
            return []
        if sign != seat.sign:
            seat.sign, seat.sign_at = sign, now
        return [*self._settle(seat, now), *self._look(now)]

    def lives(self, agent: str, life: Life, *, now: float) -> list[Action]:
        """Whether the session's process runs, is suspended, or is gone."""
        seat = self.seats.get(agent)
        if seat is None or seat.life in (life, "gone"):
            return []
        seat.life = life
        if life == "gone":
            seat.gone_at, seat.attempt, seat.hold = now, None, None
        return [*self._settle(seat, now), *self._look(now)]

    def nudged(self, conv: str, sender: str, *, now: float) -> list[Action]:
        """Something happened in a room."""
        for seat in self.seats.values():
            seat.heard.setdefault(conv, {})[sender] = now
        if self._someone_lives():
            self._checks.want_gathered(now)
        return self._look(now)

    def reconnected(self, *, now: float) -> list[Action]:
        """The nerve or the record is back, or the machine woke up: nudges may have been lost."""
        self._checks.retry_now(now)
        return self._look(now)

    def checked(self, counts: Mapping[str, Counts], *, now: float) -> list[Action]:
        """The answer to `CheckUnread`; agents that are left out have nothing unread."""
        self._checks.done()
        actions: list[Action] = []
        for agent, seat in self.seats.items():
            actions += self._counted(seat, counts.get(agent, Counts()), now)
        return [*actions, *self._look(now)]

    def check_failed(self, *, now: float) -> list[Action]:
        """`CheckUnread` came to nothing."""
        self._checks.failed(now)
        return self._look(now)

    def woken(self, agent: str, *, sent: bool, hold: str | None, now: float) -> list[Action]:
        """What became of a `Wake`."""
        seat = self.seats.get(agent)
        if seat is None:
            return []
        return [*self._ladder.woken(seat, sent=sent, hold=hold, now=now), *self._look(now)]

    def person_told(self, agent: str, *, told: bool) -> list[Action]:
        """What became of a `TellPerson`."""
        seat = self.seats.get(agent)
        return self._ladder.person_told(seat) if seat is not None and told else []

    def may_engage(self, agent: str, senders: Collection[str] | None = None, *, now: float) -> bool:
        """Whether a turn may be kept going for what `senders` wrote; None: those that nudges told of."""
        seat = self.seats.get(agent)
        if seat is None:
            return False
        known = self._writers(seat) if senders is None else set(senders) - {agent}
        return self._ladder.damper.allows(agent, known, now=now)

    def engaged(self, agent: str, senders: Collection[str], *, now: float) -> None:
        """Messages of these senders kept a turn going: as good as a wake, and counted like one."""
        if any(map(is_no_session, senders)):
            self._ladder.damper.begin_anew(agent)
        self._ladder.damper.count(agent, set(senders) - {agent}, now=now)

    def _writers(self, seat: Seat) -> set[str]:
        """Who wrote what is unread, as far as nudges and counts told; none where a person did: no loop."""
        if seat.counts.from_people_in:
            return set()
        return {sender for sender in seat.senders() if not is_no_session(sender)}

    def pressing(self, agent: str) -> list[str]:
        """Rooms where something urgent, or said by a person, was unread when the record was last asked."""
        seat = self.seats.get(agent)
        if seat is None:
            return []
        return sorted(seat.counts.urgent_in.keys() | seat.counts.from_people_in.keys())

    def look_soon(self, *, now: float) -> list[Action]:
        """Something was read, or leased, by other hands than a wake's."""
        self._checks.want_gathered(now)
        return self._look(now)

    def tick(self, *, now: float) -> list[Action]:
        """Time passed. Call it at `due`, or about once a second."""
        actions: list[Action] = []
        for agent, seat in list(self.seats.items()):
            actions += [*self._settle(seat, now), *self._ladder.expire(seat, now=now)]
            if seat.life == "gone" and now - seat.gone_at >= self.policy.forget:
                del self.seats[agent]
        return [*actions, *self._look(now)]

    def due(self, *, now: float) -> float | None:
        """When `tick` has something to do next; None: only when something happens."""
        times = [self._checks.due()] if self._someone_lives() else []
        for seat in self.seats.values():
            settles = seat.settles_at(self.policy)
            times += [settles if settles and settles > now else None, self._ladder.due(seat)]
        return min((at for at in times if at is not None), default=None)

    def _someone_lives(self) -> bool:
        return any(seat.life != "gone" for seat in self.seats.values())

    def _look(self, now: float) -> list[Action]:
        return [CheckUnread()] if self._someone_lives() and self._checks.begin(now) else []

    def _settle(self, seat: Seat, now: float) -> list[Action]:
        state = seat.judged(self.policy, now)
        if state == seat.state:
            return []
        seat.state = state
        actions: list[Action] = [Report(seat.session.agent, state)]
        if state == "busy":
            seat.in_turn = True
            actions += self._ladder.turn_started(seat)
        elif state == "idle":
            self._rest(seat, now)
        return actions

    def _turn_over(self, seat: Seat, now: float) -> None:
        seat.moved()
        if seat.attempt is not None and seat.attempt.started:
            seat.attempt.turn_over = True
        if seat.parked:
            seat.parked, seat.person_told = None, False
            seat.pauses = len(self.policy.back_off) - 1
            seat.paused_for = NOT_READ
            seat.not_before = now + self.policy.back_off[-1]

    def _rest(self, seat: Seat, now: float) -> None:
        """Idle from here on: only counts from now on tell whether there is something to read."""
        if seat.in_turn:
            seat.in_turn = False
            self._turn_over(seat, now)
        seat.hold_count = 0
        seat.fresh_from = self._checks.serial + 1
        self._checks.want(now)

    def _counted(self, seat: Seat, counts: Counts, now: float) -> list[Action]:
        actions = self._ladder.read(seat) if counts.read_since(seat.counts) else []
        seat.counts = counts
        if self._checks.serial < seat.fresh_from or seat.life == "gone":
            return actions
        began = self._checks.began_at
        seat.heard = {
            room: senders
            for room, senders in seat.heard.items()
            if room in counts.rooms or max(senders.values()) >= began
        }
        attempt = seat.attempt
        if attempt is not None and attempt.turn_over and attempt.sent_at is not None:
            actions += self._ladder.turn_without_reading(seat, now=now)
        return [*actions, *self._ladder.consider(seat, now=now)]
