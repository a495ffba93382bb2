"""What the inbox asks to be done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from notifier.sessions import State

Outcome = Literal["held", "sent", "started", "read"]


@dataclass(frozen=True, slots=True)
class CheckUnread:
    """Ask the record for the box's unread counts, once. Always answered: with `checked` or `check_failed`."""


@dataclass(frozen=True, slots=True)
class Wake:
    """Try to wake a session by one rung. Always answered, with `woken`."""

    agent: str
    rung: str


@dataclass(frozen=True, slots=True)
class WakeReport:
    """What became of a wake: `held` (with its reason) < `sent` < turn `started` < `read`."""

    rung: str
    outcome: Outcome
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """Tell the record how a session is, and what became of its last wake if that is news."""

    agent: str
    state: State
    wake: WakeReport | None = None


@dataclass(frozen=True, slots=True)
class TellPerson:
    """Nothing helped: this session has unread messages and cannot be brought to read them.

    Always answered, with `person_told`.
    """

    agent: str
    why: str


Action = CheckUnread | Wake | Report | TellPerson
