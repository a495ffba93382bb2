"""How many bytes a sender may send: a stranger few, whoever is logged in so many a second."""

from __future__ import annotations

from dataclasses import dataclass

from broker_bridge.limits import Bucket, Buckets, Limits
from broker_bridge.nerve import Admission

VALUE = 32
"""What a value in JSON costs on top of its length; to read it takes as long as to read so many characters."""
PACKET = 128
"""What the smallest packet costs, a heartbeat as any: to take one takes as long as so many characters."""


@dataclass(slots=True)
class _Link:
    """What one link may send.

    Attributes:
        largest: bytes of one frame.
        left: bytes in all; None: as `bucket` has it.
        bucket: its holder's; None beside `left` None: it is the record's, which is not counted.
        own: for cheap frames while the holder owes; None: strangers have none.
    """

    address: str
    largest: int
    left: int | None
    bucket: Bucket | None = None
    own: Bucket | None = None


class Allowances:
    """The links of one nerve by their engine.io id; times are seconds of one clock."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._links: dict[str, _Link] = {}
        self._strangers: dict[str, dict[str, None]] = {}
        self._holders = Buckets(per_second=limits.bytes_per_second, burst=limits.bytes_burst)

    def opened(self, link: str, address: str) -> None:
        """A link stands; nobody is logged in over it."""
        self._links[link] = _Link(address, self._limits.stranger_frame, self._limits.stranger_bytes)
        self._strangers.setdefault(address, {})[link] = None

    def closed(self, link: str) -> None:
        """A link is over, and sends nothing more; an unknown one is fine."""
        left = self._links.pop(link, None)
        if left is not None:
            self._is_no_stranger(link, left.address)

    def admitted(self, link: str, admission: Admission, *, now: float) -> None:
        """Somebody is logged in over a link from now on; an unknown one is fine."""
        it = self._links.get(link)
        if it is None:
            return
        self._is_no_stranger(link, it.address)
        it.left = None
        if admission.kind == "anonymous":
            it.bucket = self._holders.of((admission.realm, admission.kind, it.address), now=now)
        else:
            cheap = self._limits.stranger_frame
            it.own = Bucket(per_second=cheap, burst=cheap, now=now)
            listens = admission.role == "consumer"
            it.largest = self._limits.listener_frame if listens else self._limits.frame
            it.bucket = None if admission.kind == "record" else self._holders.of(admission.owner, now=now)

    def crowd(self, address: str) -> list[str]:
        """The strangers of an address, oldest first, when they are more than may be; else none."""
        strangers = list(self._strangers.get(address, ()))
        return strangers if len(strangers) > self._limits.strangers else []

    def readable(self, link: str) -> int:
        """Bytes of a frame that are read at most: a large one may lie behind a login that is looked up."""
        it = self._links.get(link)
        return 0 if it is None else it.largest if it.left is None else self._limits.stranger_bytes

    def fits(self, link: str, size: int) -> bool:
        """Whether a link may send so many bytes at once."""
        it = self._links.get(link)
        return it is not None and size <= it.largest and (it.left is None or size <= it.left)

    def spend(self, link: str, frame: str | bytes, *, now: float) -> float | None:
        """Count a frame. The seconds after which it may be read; None: it may not, and the link is over.

        A cheap one waits little, and not at all where its own link sent few of them: it must not stand behind
        all that other links of its holder have sent.
        """
        if not self.fits(link, len(frame)):
            return None
        it, price = self._links[link], cost(frame)
        if it.left is not None:
            it.left -= price
            return 0 if it.left >= 0 else None
        seconds = it.bucket.owe(price, now) if it.bucket is not None else 0
        if not seconds or price > self._limits.stranger_frame:
            return seconds
        own = it.own.owe(price, now) if it.own is not None else seconds
        return min(seconds, own, self._limits.patience)

    def _is_no_stranger(self, link: str, address: str) -> None:
        strangers = self._strangers.get(address, {})
        strangers.pop(link, None)
        if not strangers:
            self._strangers.pop(address, None)


def cost(frame: str | bytes) -> int:
    """A frame's length, and `VALUE` more for each value in it, as its commas tell; `PACKET` at least."""
    return max(PACKET, len(frame) + (VALUE * frame.count(",") if isinstance(frame, str) else 0))
