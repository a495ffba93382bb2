"""A terminal in memory: the seam at its smallest, for tests of what stands above it."""

from __future__ import annotations

from dataclasses import dataclass, field

from notifier.terminals.base import Hold, Look


@dataclass
class MemoryTerminal:
    """Shows what is pasted into it, and keeps what it was sent.

    Attributes:
        seen: what `look` answers, as long as nothing was pasted.
        echoes: whether a paste is shown.
        received: every line that was submitted.
        composer: what was pasted and not submitted yet.
    """

    seen: Look = field(default_factory=lambda: Look(draft="empty", bracketed=True))
    echoes: bool = True
    received: list[str] = field(default_factory=list)
    composer: str = ""

    async def look(self) -> Look:
        """See what the test says, or a draft after a paste."""
        if not self.composer:
            return self.seen
        return Look(
            hold=self.seen.hold,
            draft="draft",
            key_age=self.seen.key_age,
            output_age=self.seen.output_age,
            bracketed=self.seen.bracketed,
            alternate=self.seen.alternate,
        )

    async def paste(self, line: str) -> Hold | None:
        """Put `line` into the composer."""
        if self.seen.hold is None:
            self.composer += line
        return self.seen.hold

    async def shows(self, line: str) -> bool:
        """Whether the composer holds exactly `line`."""
        return self.echoes and self.composer == line

    async def enter(self, line: str) -> Hold | None:
        """Submit the composer."""
        if self.seen.hold is None:
            self.received.append(self.composer)
            self.composer = ""
        return self.seen.hold
