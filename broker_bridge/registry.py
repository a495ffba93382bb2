"""Who is connected, by realm, and who holds which name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import takewhile

from broker_bridge.actions import Emit
from broker_bridge.chunks import Budget, Transfers
from broker_bridge.connection import Connection
from broker_bridge.limits import Bucket, Buckets, Limits
from broker_bridge.nerve import Admission

GROUPS = 10_000


class Registry:
    """The connections of one nerve. A name belongs to its holder: nobody can take another's.

    Attributes:
        keeps: whether there is a store for queues.
        claims: whether there is one for producers' names.
        now: seconds of the clock, as they were last told.
    """

    def __init__(self, limits: Limits, *, keeps: bool = False, claims: bool = False) -> None:
        self.limits, self.keeps, self.claims, self.now = limits, keeps, claims, 0.0
        self._connections: dict[str, Connection] = {}
        self._realms: dict[str, dict[str, Connection]] = {}
        self._consumers: dict[tuple[str, str, str, str], Connection] = {}
        self._budget = Budget(limits.assembling)
        self._produced, self._noticed = (
            Buckets(per_second=limits.produced_per_second, burst=limits.produced_burst) for _ in range(2)
        )
        self._turns: dict[tuple[str | None, str], int] = {}

    def open(self, id: str, *, now: float) -> None:
        """A new connection; one that is known already stays as it is."""
        bucket = Bucket(per_second=self.limits.per_second, burst=self.limits.burst, now=now)
        transfers = Transfers(self.limits, self._budget)
        self._connections.setdefault(id, Connection(id, bucket, transfers))

    def get(self, id: str) -> Connection | None:
        """The connection, while it is open."""
        return self._connections.get(id)

    def close(self, id: str) -> Connection | None:
        """Forget a connection with all that it holds."""
        left = self._connections.pop(id, None)
        if left is None:
            return None
        left.transfers.clear()
        if left.admission is None:
            return left
        realm = self._realms[left.admission.realm]
        del realm[id]
        if not realm:
            del self._realms[left.admission.realm]
        for name in left.consumers:
            if self._consumers.get(_owned(left.admission, name)) is left:
                del self._consumers[_owned(left.admission, name)]
        return left

    def admit(self, connection: Connection, admission: Admission) -> None:
        """The connection is logged in from now on."""
        connection.admission = admission
        self._realms.setdefault(admission.realm, {})[connection.id] = connection

    def realm(self, realm: str | None) -> Collection[Connection]:
        """The connections that are logged in there."""
        return self._realms.get(realm, {}).values() if realm is not None else ()

    def all_admitted(self) -> list[Connection]:
        """The connections that are logged in anywhere."""
        return [c for realm in self._realms.values() for c in realm.values()]

    def claim_consumer(
        self, connection: Connection, admission: Admission, name: str, id: str
    ) -> Connection | None:
        """Bind a consumer's name to this connection; returns the one of the same owner that held it."""
        key = _owned(admission, name)
        earlier = self._consumers.get(key)
        self._consumers[key] = connection
        connection.consumers[name] = id
        return earlier if earlier is not connection else None

    def turn(self, realm: str | None, group: str) -> int:
        """Count the messages of a group, from 0; of very many groups, those without any for longest anew."""
        count = self._turns.pop((realm, group), 0)
        self._turns[realm, group] = count + 1
        if len(self._turns) > GROUPS:
            del self._turns[next(iter(self._turns))]
        return count

    def may_produce(self, admission: Admission, *, now: float) -> bool:
        """Count a message of an owner, over whichever link; False when there were too many."""
        return self._produced.of(admission.owner, now=now).take(now)

    def bounded(self, cause: Connection, notices: Iterable[Emit]) -> Iterator[Emit]:
        """As many notices to others as the owner of a connection may cause now; the rest is left out."""
        if cause.admission is None:
            return iter(())
        bucket = self._noticed.of(cause.admission.owner, now=self.now)
        return takewhile(lambda _: bucket.take(self.now), notices)

    def producer_is_anothers(self, admission: Admission, folded: str) -> bool:
        """Whether somebody else of the realm holds this producer's name now."""
        return any(
            self.trusts(c, folded) and c.admission is not None and c.admission.owner != admission.owner
            for c in self.realm(admission.realm)
        )

    def trusts(self, connection: Connection, folded: str) -> bool:
        """Whether this producer's name is the connection's, as far as was said lately."""
        held = connection.producers.get(folded)
        return held is not None and held.until > self.now


def _owned(admission: Admission, name: str) -> tuple[str, str, str, str]:
    return *admission.owner, name
