"""Large messages in pieces: those that come are put together within bounds, those that go are cut."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field

from broker_bridge import frames
from broker_bridge.limits import Limits

CHUNK = 262_144
"""Characters, in UTF-16 as the protocol counts them, of the largest envelope and the largest piece."""


class BadPiece(Exception):
    """A piece that cannot be taken; says why. Its transfer is given up."""


class Budget:
    """How many characters all unfinished transfers may hold together."""

    def __init__(self, left: int) -> None:
        self._left = left

    def take(self, size: int) -> bool:
        """Take some; False when there is not so much left."""
        if size > self._left:
            return False
        self._left -= size
        return True

    def give(self, size: int) -> None:
        """Give back what was taken."""
        self._left += size


@dataclass(slots=True)
class _Transfer:
    total: int
    grew_at: float
    pieces: dict[int, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return sum(map(len, self.pieces.values()))


class Transfers:
    """The unfinished transfers of one connection."""

    def __init__(self, limits: Limits, budget: Budget) -> None:
        self._limits, self._budget = limits, budget
        self._open: dict[str, _Transfer] = {}

    def add(self, body: frames.Body, *, now: float) -> str | None:
        """Take a piece, in whatever order; one that was there before changes nothing.

        Returns:
            The whole text, when this was the last piece that was missing.

        Raises:
            BadPiece: it is none, or there is no room for it.
        """
        id = frames.text(body.get("transferId"), limit=self._limits.text)
        index, total, data = body.get("index"), body.get("total"), body.get("data")
        if id is None or type(index) is not int or type(total) is not int or not isinstance(data, str):
            raise BadPiece("PRODUCE_CHUNK needs transferId, index, total and data")
        try:
            return self._add(id, index, total, data, now)
        except BadPiece:
            self._drop(id)
            raise

    def _add(self, id: str, index: int, total: int, data: str, now: float) -> str | None:
        if not 0 <= index < total <= self._limits.pieces:
            raise BadPiece(f"index counts from 0 and total is at most {self._limits.pieces}")
        if id not in self._open and len(self._open) >= self._limits.transfers:
            raise BadPiece("Too many messages in pieces at once on this connection")
        transfer = self._open.setdefault(id, _Transfer(total, now))
        if total != transfer.total:
            raise BadPiece("total is the same in every piece of a transfer")
        transfer.grew_at = now
        if index not in transfer.pieces:
            held = sum(each.size for each in self._open.values())
            if held + len(data) > self._limits.transfer or not self._budget.take(len(data)):
                raise BadPiece(f"A message in pieces has at most {self._limits.transfer} characters")
            transfer.pieces[index] = data
        if len(transfer.pieces) < total:
            return None
        self._drop(id)
        return _joined([transfer.pieces[number] for number in range(total)])

    def give_up_stale(self, *, now: float) -> int:
        """Forget transfers of which no piece has come for long; how many."""
        stale = [id for id, each in self._open.items() if now - each.grew_at >= self._limits.transfer_seconds]
        for id in stale:
            self._drop(id)
        return len(stale)

    def clear(self) -> None:
        """Forget all of them."""
        for id in list(self._open):
            self._drop(id)

    def _drop(self, id: str) -> None:
        transfer = self._open.pop(id, None)
        if transfer is not None:
            self._budget.give(transfer.size)


def cut(event: str, payload: object) -> Iterator[frames.Body]:
    """The pieces of an envelope that is too large for one frame; none for one that is not.

    The text that is cut is ASCII: a piece never ends within a character, whoever joins them.
    """
    whole = json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    if len(whole.encode("utf-16-le", "surrogatepass")) // 2 <= CHUNK:
        return
    text = frames.dumps(payload)
    starts = range(0, len(text), CHUNK)
    id = secrets.token_hex(8)
    for index, start in enumerate(starts):
        data = text[start : start + CHUNK]
        yield {"transferId": id, "event": event, "index": index, "total": len(starts), "data": data}


def _joined(pieces: list[str]) -> str:
    """The whole text. Who counts in UTF-16 may have cut a character in two halves, which become one again."""
    return "".join(pieces).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
