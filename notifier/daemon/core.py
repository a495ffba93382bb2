"""The inbox with hands: feeds it events, and does what it asks for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeVarTuple

import structlog

from notifier.daemon.registry import Entry, Registry
from notifier.inbox import Action, CheckUnread, Counts, Inbox, Report, TellPerson, Wake
from notifier.programs import find
from notifier.record import Record, RecordError
from notifier.sessions import Event, Process, Session, State
from notifier.wakers.base import Waker

log = structlog.get_logger()

Given = TypeVarTuple("Given")

CHECK_SECONDS = 10.0
WAKE_SECONDS = 20.0
TICK_SECONDS = 1.0
CATCHUP = "/catchup"

_HOLD_BY_SIGN: dict[State, str] = {"waiting": "dialog open", "busy": "busy", "unknown": "busy"}
_UNKNOWN_OUTCOME = "echo not seen"


class Core:
    """Runs inside a task group; what it starts there never takes the group down."""

    def __init__(
        self,
        *,
        inbox: Inbox,
        record: Record,
        registry: Registry,
        wakers: Sequence[Waker],
        person: Waker,
        bell: bool,
        report: Callable[[Report], None],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self.inbox = inbox
        self._record = record
        self._registry = registry
        self._wakers = wakers
        self._person = person
        self._bell = bell
        self._report = report
        self._spawn = spawn
        self._stirred = asyncio.Event()
        self.record_trouble: str | None = None
        self.box: str | None = None

    @staticmethod
    def now() -> float:
        """The inbox's clock."""
        return time.monotonic()

    def do(self, actions: Iterable[Action]) -> None:
        """Do what the inbox asks for; returns at once."""
        for action in actions:
            match action:
                case CheckUnread():
                    self.spawn(self._check)
                case Wake(agent, rung):
                    self.spawn(self._wake, agent, rung)
                case Report():
                    self._note(action)
                case TellPerson(agent, why):
                    log.warning("person_needed", agent=agent, why=why)
                    self.spawn(self._tell_person, agent)
        self._stirred.set()

    def spawn(self, work: Callable[[*Given], Coroutine[Any, Any, object]], *given: *Given) -> None:
        """Start something whose failure is logged and goes no further."""
        self._spawn(_guarded(work, *given))

    def known(self, entry: Entry, *, told: State | None = None) -> None:
        """A session is new, or is known better."""
        rungs = [waker.rung for waker in self._wakers if waker.fits(entry.session)]
        self.do(self.inbox.known(entry.session, rungs, now=self.now(), told=told))

    def hooked(self, agent: str, event: Event, *, resting: bool = True) -> None:
        """A hook of a known session spoke."""
        log.info("hook_heard", agent=agent, hook=event)
        self.do(self.inbox.hook(agent, event, now=self.now(), resting=resting))

    def doubled(self, agent: str, rival: Process) -> None:
        """A second live process goes by a session's handle; the report of its state says so."""
        log.warning("handle_doubled", agent=agent, second_process=rival.pid)
        if (seat := self.inbox.seats.get(agent)) is not None:
            self._report(Report(agent, seat.state))

    def may_wake(self, process: Process) -> bool:
        """Whether the session of that process is still idle, by both signs."""
        agent = self._registry.agent_of(process)
        if agent is None or self.inbox.seats[agent].state != "idle":
            return False
        return sign_of(self._registry.entries[agent]) in (None, "idle")

    def nudged(self, room: str, sender: str) -> None:
        """A nudge came in."""
        log.info("nudge_heard", room=room, sender=sender)
        self.do(self.inbox.nudged(room, sender, now=self.now()))

    def reconnected(self) -> None:
        """The nerve can be heard again."""
        self.do(self.inbox.reconnected(now=self.now()))

    async def unread_of(self, agent: str) -> dict[str, int]:
        """Room -> how much is unread in it, fresh from the record."""
        return _counts((await self._record.unread()).get(agent, {"unread": 0})).rooms

    async def tick(self) -> None:
        """Let time pass for the inbox, until cancelled."""
        while True:
            now = self.now()
            self.do(self.inbox.tick(now=now))
            self._stirred.clear()
            due = self.inbox.due(now=now)
            pause = TICK_SECONDS if due is None else min(TICK_SECONDS, max(0.005, due - now))
            try:
                async with asyncio.timeout(pause):
                    await self._stirred.wait()
            except TimeoutError:
                pass

    async def _check(self) -> None:
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                answer = await self._record.unread()
                if self.box is None:
                    self.box = str((await self._record.whoami())["box"])
            counts = {agent: _counts(told) for agent, told in answer.items()}
        except Exception as error:
            if not isinstance(error, RecordError | TimeoutError):
                log.exception("unread_not_understood")
            self._missed(error)
            return
        if self.record_trouble is not None:
            self.record_trouble = None
            log.info("record_reached")
        log.debug("unread_checked", agents=len(counts))
        self.do(self.inbox.checked(counts, now=self.now()))

    def _missed(self, error: Exception) -> None:
        trouble = str(error) or type(error).__name__
        if self.record_trouble != trouble:
            log.warning("record_not_reached", error=trouble)
        self.record_trouble = trouble
        self.do(self.inbox.check_failed(now=self.now()))

    async def _wake(self, agent: str, rung: str) -> None:
        entry = self._registry.entries.get(agent)
        sent, hold = False, "no way to wake it"
        if entry is not None and (waker := self._waker(rung, entry.session)) is not None:
            began = self.now()
            sent, hold = await self._try(waker, entry)
            log.info("wake_tried", agent=agent, rung=rung, sent=sent, hold=hold, seconds=self.now() - began)
            if sent and self._bell and rung != self._person.rung:
                self.spawn(self._tell, entry)
        self.do(self.inbox.woken(agent, sent=sent, hold=hold, now=self.now()))

    async def _tell_person(self, agent: str) -> None:
        entry = self._registry.entries.get(agent)
        told = entry is not None and await self._tell(entry)
        self.do(self.inbox.person_told(agent, told=told))

    async def _tell(self, entry: Entry) -> bool:
        """Whether a person was told, as far as that can be known."""
        wake = await self._person.wake(entry.session, "")
        log.info("person_told", agent=entry.session.agent, told=wake.sent, hold=wake.hold)
        return wake.sent

    def _waker(self, rung: str, session: Session) -> Waker | None:
        """The rung of that name that fits: each program has a `native` one of its own."""
        return next((each for each in self._wakers if each.rung == rung and each.fits(session)), None)

    async def _try(self, waker: Waker, entry: Entry) -> tuple[bool, str]:
        """Look at the program's own sign once more, then wake. What is not known counts as half sent."""
        sign = sign_of(entry)
        if sign not in (None, "idle"):
            return False, _HOLD_BY_SIGN.get(sign, "busy")
        program = find(entry.session.program)
        try:
            async with asyncio.timeout(WAKE_SECONDS):
                wake = await waker.wake(entry.session, program.catchup if program else CATCHUP)
        except Exception:
            log.exception("waker_failed", agent=entry.session.agent, rung=waker.rung)
            return False, _UNKNOWN_OUTCOME
        return wake.sent, wake.hold or ""

    def _note(self, report: Report) -> None:
        if report.wake is not None:
            log.info(
                "wake_reported",
                agent=report.agent,
                rung=report.wake.rung,
                outcome=report.wake.outcome,
                reason=report.wake.reason,
            )
        else:
            log.info("state_changed", agent=report.agent, state=report.state)
        self._report(report)


def sign_of(entry: Entry) -> State | None:
    """What the program itself shows of its state, where it does."""
    program, process = find(entry.session.program), entry.session.process
    if program is None or process is None or entry.registry is None:
        return None
    return program.sign(entry.registry, started=process.started)


def _counts(told: dict[str, Any]) -> Counts:
    return Counts(
        int(told["unread"]),
        rooms=_numbers(told.get("rooms")),
        oldest=_numbers(told.get("oldest_ids")),
        addressed_in=_numbers(told.get("addressed_in")),
        urgent_in=_numbers(told.get("urgent_in")),
        from_people_in=_numbers(told.get("from_people_in")),
    )


def _numbers(told: dict[str, Any] | None) -> dict[str, int]:
    return {str(room): int(number) for room, number in (told or {}).items()}


async def _guarded(work: Callable[[*Given], Coroutine[Any, Any, object]], *given: *Given) -> None:
    # The work is made here: a task that is cancelled before it begins has then left nothing unawaited.
    try:
        await work(*given)
    except Exception:
        log.exception("task_failed")
