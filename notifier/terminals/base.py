"""The seam between a wake that types and the terminals that it can type into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Hold = Literal[
    "dialog open",
    "draft",
    "recent key",
    "busy",
    "suspended",
    "not in front",
    "another screen",
    "process gone",
    "pane gone",
    "input off",
    "copy mode",
    "synchronised panes",
    "composer not known",
    "output still moving",
    "echo not seen",
    "no answer",
    "not taken up",
    "no way to wake it",
    "nobody could be told",
]
"""The closed gate that kept a wake from being sent, in words that a person reads."""

Draft = Literal["empty", "draft", "unknown"]
"""What stands in the program's composer. `unknown` is treated as a draft."""

KEY_SECONDS = 2.0
"""A human who pressed a key less than this long ago is still there."""

QUIET_SECONDS = 0.3
"""A program that printed less than this long ago is still at work."""


@dataclass(frozen=True, slots=True)
class Look:
    """What can be known of a terminal at this moment.

    Attributes:
        hold: a gate that the terminal itself knows to be closed.
        draft: what stands in the composer.
        key_age: seconds since a human last pressed a key; None where none was seen.
        output_age: seconds since the program last printed; None where it has not, or where it can't be known.
        bracketed: whether the program asked for bracketed paste; None where it can't be known.
        alternate: whether the alternate screen is shown (vim, less, a full-screen program).
    """

    hold: Hold | None = None
    draft: Draft = "unknown"
    key_age: float | None = None
    output_age: float | None = None
    bracketed: bool | None = None
    alternate: bool = False


class Terminal(Protocol):
    """One terminal with one program in it. No call raises for a fault of the terminal: `look` says it."""

    async def look(self) -> Look:
        """See what can be known now. Sends nothing."""

    async def paste(self, line: str) -> Hold | None:
        """Put `line` into the program's input, bracketed if the program asked for it; never submits.

        `line` holds no control characters. Returns why nothing was put there, if so.
        """

    async def shows(self, line: str) -> bool:
        """Whether the program has shown the pasted `line`. Sends nothing."""

    async def enter(self, line: str) -> Hold | None:
        """Press Enter, and nothing else, unless something else than `line` is in front by now.

        Returns why it was not pressed, if so.
        """


def closed_gate(look: Look) -> Hold | None:
    """The first gate that `look` shows to be closed before a paste; None when all are open."""
    if look.hold is not None:
        return look.hold
    if look.key_age is not None and look.key_age < KEY_SECONDS:
        return "recent key"
    if look.draft != "empty":
        return "draft" if look.draft == "draft" else "composer not known"
    if look.output_age is not None and look.output_age < QUIET_SECONDS:
        return "output still moving"
    return None
