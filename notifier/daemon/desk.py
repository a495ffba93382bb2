"""What comes through the door: hooks, launchers, and questions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from notifier.control.messages import Ended, Flagged, Hook, Launched, Request, Status, Who
from notifier.control.server import Answer
from notifier.daemon import missed
from notifier.daemon.core import Core
from notifier.daemon.handover import Handover, waiting_text
from notifier.daemon.naming import Naming
from notifier.daemon.registry import Entry, Registry
from notifier.daemon.watch import Watch
from notifier.record import RecordError
from notifier.wakers.flags import Flags, sweep

log = structlog.get_logger()

ANSWER_SECONDS = 1.0
"""A hook waits no longer than this for the record."""
GREETING_SECONDS = 0.8
"""Within that, so that a session is told its handle whatever the record does."""

NOT_OURS = (
    "READYROOM_AGENT names {}, which is no session of this box: under that name nothing can be said or read "
    "here, and this session is not woken. Unset it, or start the program with `readyroom run`."
)


class Desk:
    """Answers requests. A hook is answered in time, whatever the record does."""

    def __init__(
        self,
        *,
        core: Core,
        registry: Registry,
        watch: Watch,
        handover: Handover,
        naming: Naming,
        flags: Flags,
        folder: str,
        status: Callable[[], Answer],
    ) -> None:
        self._core = core
        self._registry = registry
        self._watch = watch
        self._handover = handover
        self._naming = naming
        self._flags = flags
        self._folder = folder
        self._status = status

    async def answer(self, request: Request) -> Answer:
        """Answer one request."""
        match request:
            case Hook():
                missed.discard(missed.open_folder(self._folder), request.process)
                return await self.hook(request)
            case Flagged(process=process):
                return {"wake": self._flags.answer(process, wake=self._core.may_wake(process))}
            case Launched():
                self._core.known(self._registry.launched(request))
                self._registry.save()
            case Ended():
                self._end(request.agent)
            case Who(above=above):
                return {"agent": self._registry.agent_of(*above)}
            case Status():
                return self._status()
        return {}

    async def hook(self, told: Hook) -> Answer:
        """Take in what a hook says; the answer says what it is to print."""
        if told.agent is not None and not await self._is_ours(told.agent):
            log.warning("handle_of_another_box", agent=told.agent, hook=told.event)
            return {"text": NOT_OURS.format(told.agent)} if told.event == "session-start" else {}
        known = told.agent or self._registry.agent_of(told.process, *told.above)
        agent = known or await self._naming.name(told)
        if agent is None:
            return {}
        known_rival = self._registry.rival(agent)
        entry = self._registry.hooked(agent, told)
        if entry is None:
            log.info("hook_of_another_process_ignored", agent=agent, hook=told.event)
            rival = self._registry.rival(agent)
            if rival is not None and rival != known_rival:
                self._core.doubled(agent, rival)
            return {"agent": agent}
        if told.event == "session-start" and entry.session.wake_on != told.wake_on:
            log.warning("wake_on_not_understood", agent=agent)
        self._take_in(entry, told)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return {"agent": agent, **await self._follow_up(agent, told)}
        except (RecordError, TimeoutError) as error:
            log.info("hook_answered_without_record", agent=agent, hook=told.event, error=str(error))
            return {"agent": agent}

    async def _is_ours(self, agent: str) -> bool:
        return agent in self._registry.entries or await self._naming.is_ours(agent)

    def _take_in(self, entry: Entry, told: Hook) -> None:
        agent = entry.session.agent
        self._core.known(entry)
        self._core.hooked(agent, told.event, resting=told.resting)
        if told.event == "session-end":
            self._end(agent)
            return
        entry.told = self._core.inbox.seats[agent].told
        self._registry.save()
        self._watch.alert()

    async def _follow_up(self, agent: str, told: Hook) -> Answer:
        match told.event:
            case "session-start":
                sweep(self._folder)
                return {"text": await self._greeting(agent)}
            case "prompt":
                self._handover.begin(agent)
            case "tool":
                return await self._between_tools(agent, told)
            case "ending":
                return await self._turn_ends(agent, told)
            case "continue":
                senders = self._handover.took(agent)
                self._core.inbox.engaged(agent, senders, now=self._core.now())
                self._core.do(self._core.inbox.look_soon(now=self._core.now()))
                log.info("turn_kept_going", agent=agent, senders=sorted(senders))
            case "stop":
                self._core.spawn(self._handover.settle, agent)
        return {}

    async def _between_tools(self, agent: str, told: Hook) -> Answer:
        if told.handed:
            senders = self._handover.took(agent, at_end=False)
            log.info("handed_over_between_tools", agent=agent, senders=sorted(senders))
            return {}
        if told.read:
            self._handover.polled(agent)
        rooms = self._core.inbox.pressing(agent) if told.boundary and told.mode == "engage" else []
        if not rooms:
            self._core.spawn(self._handover.seen, agent)
            return {}
        try:
            text = await self._handover.offer_between(agent, rooms, lone=told.lone)
        finally:
            self._core.do(self._core.inbox.look_soon(now=self._core.now()))
        return {"text": text} if text else {}

    async def _turn_ends(self, agent: str, told: Hook) -> Answer:
        if told.mode == "notify":
            rooms = await self._core.unread_of(agent)
            return {"notice": waiting_text(rooms)} if rooms else {}
        text = None
        if self._may_engage(agent):
            text = await self._handover.offer(agent, allowed=lambda senders: self._may_engage(agent, senders))
        return {"text": text} if text else {}

    def _may_engage(self, agent: str, senders: set[str] | None = None) -> bool:
        may = self._core.inbox.may_engage(agent, senders, now=self._core.now())
        if not may:
            log.info("turn_not_kept_going", agent=agent, reason="loop_guard")
        return may

    async def _greeting(self, agent: str) -> str:
        """The handle, and what the record says in time: the rooms, and what waits there."""
        name = f"You are {agent} in Readyroom, where agents talk across machines."
        try:
            async with asyncio.timeout(GREETING_SECONDS):
                unread, rooms = await asyncio.gather(
                    self._core.unread_of(agent), self._handover.rooms_of(agent)
                )
        except (RecordError, TimeoutError):
            return name
        joined = f" Your rooms: {', '.join(rooms)}." if rooms else ""
        how = " Read with the tool poll_convs, or with `readyroom poll`." if unread else ""
        return f"{name}{joined} {waiting_text(unread)}.{how}"

    def _end(self, agent: str) -> None:
        self._core.do(self._core.inbox.lives(agent, "gone", now=self._core.now()))
        self._registry.entries.pop(agent, None)
        self._registry.save()
        self._handover.forget(agent)
