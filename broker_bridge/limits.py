"""How much one connection may ask of the nerve."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass

HOLDERS = 10_000


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one connection; what goes beyond is refused, told, and in the end hung up on.

    Attributes:
        text: characters of a name, an event or a token.
        names: consumer names, and as many producer names.
        subscriptions: live subscriptions.
        held: frames that wait for the answer to a login.
        logins: failed logins.
        per_second: frames a second, on average.
        burst: frames at once.
        produced_per_second: messages a second that one box, person or nerve token produces, over all links;
            and as many notices to others that it came or went.
        produced_burst: messages, and notices, at once.
        flood: frames dropped for going over the rate, in all.
        outgoing: packets that wait for a slow reader.
        outgoing_size: characters that wait for one.
        pieces: of one message.
        transfers: unfinished messages in pieces.
        transfer: characters of them, together.
        transfer_seconds: until one is given up of which nothing more comes.
        assembling: characters of all unfinished messages of all connections.
        links: connections of one box, person or nerve token.
        anonymous: anonymous listeners of one realm.
        grace: seconds until a connection must be admitted.
        stranger_frame: bytes of one frame before the login; and of a cheap frame after it, of which a link
            whose holder owes may send so many a second.
        stranger_bytes: bytes of all frames before the login.
        strangers: links of one address over which nobody is logged in.
        frame: bytes of one frame.
        listener_frame: bytes of one frame of whoever only listens.
        bytes_per_second: bytes a second of one box, person or nerve token; values cost more.
        bytes_burst: bytes at once.
        patience: seconds that a cheap frame beyond those waits at most, however much its sender owes.
    """

    text: int = 256
    names: int = 8
    subscriptions: int = 64
    held: int = 64
    logins: int = 8
    per_second: float = 50
    burst: int = 200
    produced_per_second: float = 200
    produced_burst: int = 1000
    flood: int = 2000
    outgoing: int = 2000
    outgoing_size: int = 64 * 1024 * 1024
    pieces: int = 128
    transfers: int = 4
    transfer: int = 8 * 1024 * 1024
    transfer_seconds: float = 30
    assembling: int = 64 * 1024 * 1024
    links: int = 64
    anonymous: int = 200
    grace: float = 10
    stranger_frame: int = 16 * 1024
    stranger_bytes: int = 64 * 1024
    strangers: int = 256
    frame: int = 2 * 1024 * 1024
    listener_frame: int = 64 * 1024
    bytes_per_second: float = 1024 * 1024
    bytes_burst: int = 8 * 1024 * 1024
    patience: float = 2

    def has_room(self, names: Collection[str], name: str) -> bool:
        """Whether a connection that holds `names` may hold `name` too."""
        return name in names or len(names) < self.names


class Bucket:
    """A token bucket over a clock that the caller reads."""

    __slots__ = ("_burst", "_left", "_per_second", "_seen")

    def __init__(self, *, per_second: float, burst: int, now: float) -> None:
        self._per_second, self._burst = per_second, burst
        self._left, self._seen = float(burst), now

    def take(self, now: float) -> bool:
        """Take one; False when none is left at `now` (seconds; time does not go back for an earlier one)."""
        self._fill(now)
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def owe(self, amount: float, now: float) -> float:
        """Take as many as are asked for, there or not; the seconds until they would have been there."""
        self._fill(now)
        self._left -= amount
        return max(0.0, -self._left / self._per_second)

    def give(self) -> None:
        """Give one back: what it was for cost nobody anything."""
        self._left = min(self._burst, self._left + 1)

    def _fill(self, now: float) -> None:
        passed = max(0.0, now - self._seen)
        self._left = min(self._burst, self._left + passed * self._per_second)
        self._seen += passed


class Buckets:
    """A bucket for each holder. Of very many, those who took nothing for longest begin anew."""

    def __init__(self, *, per_second: float, burst: int) -> None:
        self._per_second, self._burst = per_second, burst
        self._buckets: dict[Hashable, Bucket] = {}

    def of(self, holder: Hashable, *, now: float) -> Bucket:
        """The holder's bucket, a full one for a new holder."""
        bucket = self._buckets.pop(holder, None) or Bucket(
            per_second=self._per_second, burst=self._burst, now=now
        )
        self._buckets[holder] = bucket
        if len(self._buckets) > HOLDERS:
            del self._buckets[next(iter(self._buckets))]
        return bucket
