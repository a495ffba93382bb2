"""A session of an agent program that belongs to a Readyroom, and sits in a room of its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from tests.real.model import Model
from tests.real.office import Office
from tests.real.terminal import Terminal
from tests.real.waiting import PATIENCE, until


class Front(Protocol):
    """An agent program in a terminal, with a human before it."""

    @property
    def terminal(self) -> Terminal:
        """Where it is shown."""

    def typed(self) -> bytes:
        """Every byte that has reached its input, but for what a terminal says by itself."""

    def draft(self, text: str) -> None:
        """Type a line into the composer and leave it there."""

    def prompt(self, text: str) -> None:
        """Give the program a line as a human does."""


F = TypeVar("F", bound=Front)


@dataclass(frozen=True)
class Session(Generic[F]):
    """One session, and all that it touches.

    Attributes:
        agent: its handle.
        room: the room that it is in.
    """

    front: F
    model: Model
    office: Office
    agent: str
    room: str

    def row(self) -> dict[str, Any]:
        """What the notifier knows of it."""
        return self.office.session(self.agent)

    def until_row(self, *, seconds: float = PATIENCE, **facts: object) -> None:
        """Wait until the notifier knows all these facts."""
        until(
            lambda: facts.items() <= self.row().items(),
            lambda: f"{facts}, not {self.row()}:\n{self.scene()}",
            seconds=seconds,
        )

    def until_shown(self, body: str, *, seconds: float = PATIENCE) -> None:
        """Wait until the model has been shown a message's text as the result of its own poll."""
        until(
            lambda: self.model.was_shown(f"> {body}"), lambda: f"{body!r}:\n{self.scene()}", seconds=seconds
        )

    def until_handed(self, body: str) -> None:
        """Wait until the model has been handed a message's text by a hook."""
        until(lambda: self.model.was_handed(f"> {body}"), lambda: f"{body!r}:\n{self.scene()}")

    def until_sender_is_told(self, message: dict[str, Any], why: str | None) -> None:
        """Wait until the message's receipt says why it is unread; None: that it is read."""
        told = partial(self.office.why_unread, message, self.agent)
        until(lambda: told() == why, lambda: f"{why!r}, not {told()!r}")

    def say(self, body: str, *, urgent: bool = False) -> dict[str, Any]:
        """Have the other box say something in its room; returns the message."""
        return self.office.say_elsewhere(self.room, body, urgent=urgent)

    def scene(self) -> str:
        """What a failure is understood by."""
        return f"{self.front.terminal.screen()}\n{self.office.log()}\n{self.model.heard[-3:]}"


def handles(office: Office) -> set[str]:
    """Of all sessions that have not ended."""
    return {row["agent"] for row in office.sessions() if row["state"] != "offline"}


def new_handle(office: Office, before: set[str]) -> str:
    """The handle of the one session that has come since; waits for it."""
    until(lambda: handles(office) - before, lambda: f"a session:\n{office.log()}")
    (agent,) = handles(office) - before
    return agent
