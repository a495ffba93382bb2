"""The tyo-mq protocol as the nerve speaks it: frames in, actions out; it opens and awaits nothing.

Whoever holds the sockets calls `connected`, `frame`, `admitted` and `disconnected`, and performs what comes
back, in order. Each frame gets exactly one `Answer`: at once, or when the login before it is decided, or when
the store or the door has said what it was asked (`answered`).
What differs from the original broker, and why, is in docs/reference/nerve.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from broker_bridge import claims, durable, presence
from broker_bridge.actions import (
    Acknowledge,
    Action,
    Answer,
    Claim,
    Detach,
    Emit,
    Find,
    HangUp,
    Keep,
    Open,
    Question,
    Whose,
)
from broker_bridge.connection import Connection, Frame
from broker_bridge.handlers import HANDLERS
from broker_bridge.limits import Limits
from broker_bridge.names import Name
from broker_bridge.nerve import Admission
from broker_bridge.nudge import Nudge
from broker_bridge.publishing import claimed, is_record, nudge_deliveries, whose
from broker_bridge.queues import Kept
from broker_bridge.refusals import REFUSED, auth_fail, error, rate_limited
from broker_bridge.registry import Registry

SERVER = "readyroom"
"""What AUTH_OK says in `server`: by it the record knows that it may name the boxes to tell."""

ANSWERED: dict[type[Question], Callable[[Registry, Any, Any], Iterator[Action]]] = {
    Open: durable.opened,
    Find: durable.found,
    Keep: durable.kept,
    Acknowledge: durable.acknowledged,
    Whose: whose,
    Claim: claimed,
}


class Protocol:
    """Everything that the nerve decides. Times are seconds of one clock that never goes back."""

    def __init__(self, limits: Limits, *, keeps: bool = False, claims: bool = False) -> None:
        """`keeps`: whoever holds the sockets has a store for queues, and performs what is asked of it.

        `claims`: it has one for producers' names. Without it a name is its holder's in this nerve alone.
        """
        self._limits = limits
        self._registry = Registry(limits, keeps=keeps, claims=claims)

    @property
    def admissions(self) -> dict[str, Admission]:
        """The connections that are logged in."""
        return {c.id: c.admission for c in self._registry.all_admitted() if c.admission}

    def admission(self, id: str) -> Admission | None:
        """Who is logged in over a connection."""
        connection = self._registry.get(id)
        return connection.admission if connection is not None else None

    def knows(self, id: str) -> bool:
        """Whether the connection stands, as far as was said."""
        return self._registry.get(id) is not None

    def connected(self, id: str, *, now: float) -> None:
        """A connection stands; until it is logged in it can do nothing else."""
        self._registry.open(id, now=now)

    def disconnected(self, id: str) -> list[Action]:
        """A connection is gone; an unknown one is fine."""
        left = self._registry.close(id)
        if left is None:
            return []
        return [
            *self._answer_login(left),
            *(Answer(frame.ref) for frame in left.held),
            *(Detach(id, each.queue) for each in left.subscriptions.values() if each.queue is not None),
            *claims.let_go(left),
            *self._registry.bounded(left, presence.gone(left, self._registry.realm(left.realm))),
        ]

    def frame(self, id: str, event: object, payload: object, *, now: float, ref: Any) -> list[Action]:
        """One frame of a connection; `ref` comes back in its Answer."""
        connection, self._registry.now = self._registry.get(id), now
        if connection is None:
            return [Answer(ref)]
        if not is_record(connection.admission) and not connection.bucket.take(now):
            return [*self._limited(connection, now), Answer(ref)]
        if not connection.waits:
            return self._dispatch(connection, Frame(event, payload, ref, now))
        if len(connection.held) >= self._limits.held:
            return [HangUp(id), Answer(ref)]
        connection.held.append(Frame(event, payload, ref, now))
        return []

    def admitted(self, id: str, admission: Admission | None) -> list[Action]:
        """The answer to an Ask; the frames that waited for it follow, in order."""
        connection = self._registry.get(id)
        if connection is None or connection.asking is None:
            return []
        refusal, connection.asking = REFUSED[connection.asking.by], None
        actions = [*self._log_in(connection, admission, refusal), *self._answer_login(connection)]
        return [*actions, *self._go_on(connection)]

    def unanswered(self, id: str) -> list[Action]:
        """An Ask that nobody could answer: not the client's fault, so it may come back."""
        connection = self._registry.get(id)
        if connection is None or not connection.asking:
            return []
        return [auth_fail(connection, 503, "The record cannot be asked now; connect again soon"), HangUp(id)]

    def answered(self, asked: Question, answer: Any) -> list[Action]:
        """What was said to a question, or `Unkept`; the frames that waited for it follow."""
        actions = list(ANSWERED[type(asked)](self._registry, asked, answer))
        if any(isinstance(action, Question) for action in actions):
            return actions
        if not any(isinstance(action, Answer) for action in actions):
            actions.append(Answer(asked.frame.ref))
        connection = self._registry.get(asked.connection)
        if connection is not None:
            connection.storing = False
            actions += self._go_on(connection)
        return actions

    def deliver(self, id: str, queue: int, messages: Iterable[Kept]) -> list[Emit]:
        """Messages of a queue, for the connection that it is attached to."""
        connection = self._registry.get(id)
        return list(durable.deliveries(connection, queue, messages)) if connection is not None else []

    @property
    def claimed(self) -> set[Name]:
        """The producers' names that have to be renewed."""
        return claims.all_claimed(self._registry)

    def renewed(self, asked: Collection[Name], still: Collection[Name], *, until: float) -> None:
        """Of the names `asked` for, those `still` their holders' may be gone by until then."""
        claims.renewed(self._registry, asked, still, until=until)

    def tidy(self, *, now: float) -> list[Action]:
        """Give up what has not gone on for long; call it every few seconds."""
        self._registry.now = now
        return [
            error(connection, -2, "A message in pieces was given up: nothing more of it came")
            for connection in self._registry.all_admitted()
            for _ in range(connection.transfers.give_up_stale(now=now))
        ]

    def nudge(self, nudge: Nudge, *, realm: str, names: Collection[str]) -> list[Emit]:
        """Deliver to those of `realm` who subscribed and whose box or person is among `names`."""
        return list(nudge_deliveries(self._registry, nudge, realm, frozenset(names)))

    def _answer_login(self, connection: Connection) -> Iterator[Answer]:
        if connection.login is not None:
            yield Answer(connection.login.ref)
            connection.login = None

    def _go_on(self, connection: Connection) -> list[Action]:
        """Deal with the frames that waited, until one has to wait for something itself."""
        actions: list[Action] = []
        while connection.held and not connection.waits:
            actions += self._dispatch(connection, connection.held.popleft())
        return actions

    def _log_in(self, connection: Connection, admission: Admission | None, refusal: str) -> Iterator[Action]:
        if admission is None:
            connection.failed_logins += 1
            yield auth_fail(connection, 401, refusal)
            if connection.failed_logins >= self._limits.logins:
                yield HangUp(connection.id)
            return
        if admission.kind == "anonymous" and self._is_full(admission.realm):
            yield auth_fail(connection, 503, "There are as many anonymous listeners as there may be")
            yield HangUp(connection.id)
            return
        self._registry.admit(connection, admission)
        welcome = {"realm": admission.realm, "role": admission.role, "server": SERVER}
        yield Emit(connection.id, "AUTH_OK", welcome)
        yield from self._too_many(admission)

    def _too_many(self, admission: Admission) -> Iterator[Action]:
        """The oldest connections of one owner make room for its newest."""
        realm = self._registry.realm(admission.realm)
        links = [c.id for c in realm if c.admission is not None and c.admission.owner == admission.owner]
        for id in links[: -self._limits.links]:
            yield HangUp(id)

    def _is_full(self, realm: str) -> bool:
        """Whether as many anonymous listeners are there as may be; none of them makes room for another."""
        admissions = (c.admission for c in self._registry.realm(realm))
        return sum(a is not None and a.kind == "anonymous" for a in admissions) >= self._limits.anonymous

    def _limited(self, connection: Connection, now: float) -> Iterator[Action]:
        connection.dropped += 1
        yield from rate_limited(connection, now)
        if connection.dropped > self._limits.flood:
            yield HangUp(connection.id)

    def _dispatch(self, connection: Connection, frame: Frame) -> list[Action]:
        handler = HANDLERS.get(frame.event) if isinstance(frame.event, str) else None
        if handler is None:
            return [Answer(frame.ref)]
        event = str(frame.event)
        if connection.may(event):
            actions = list(handler(self._registry, connection, frame))
        elif connection.admission is None:
            actions = [auth_fail(connection, 401, f"Log in before {event}")]
        else:
            role = connection.admission.role
            actions = [auth_fail(connection, 403, f"A token with the role {role} may not send {event}")]
        connection.storing = any(isinstance(action, Question) for action in actions)
        if not connection.waits and not any(isinstance(action, Answer) for action in actions):
            actions.append(Answer(frame.ref))
        return actions
