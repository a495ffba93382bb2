"""Requests as they come through the door, checked; the caller's side is described in `client`."""

from __future__ import annotations

from typing import Literal

import msgspec

from notifier.sessions import Event, Process, TmuxPane


class Place(msgspec.Struct, kw_only=True, frozen=True):
    """Where a session runs, as far as the caller knows."""

    process: Process | None = None
    cwd: str | None = None
    tty: str | None = None
    tmux: TmuxPane | None = None
    pty_socket: str | None = None
    watches: bool = False


class Hook(Place, kw_only=True, frozen=True, tag_field="op", tag="hook"):
    """A hook spoke.

    Attributes:
        sure: `process` is the program's own, not a guess.
        above: the hook's ancestors, nearest first.
        registry: the file in which the program itself says what it does.
        resting: after a `session-start`, whether the session waits for input.
        read: the model has just been handed what a poll returned.
        boundary: a `tool` at which a text can be handed to the model.
        lone: boundaries of other tools may follow before the model has read it.
        handed: it was.
        mode: at `ending` and at a boundary, what to do with unread messages.
        wake_on: what may wake the session, where it says so itself.
    """

    event: Event
    program: str
    agent: str | None = None
    session_id: str | None = None
    sure: bool = False
    above: tuple[Process, ...] = ()
    registry: str | None = None
    resting: bool = True
    read: bool = False
    boundary: bool = False
    lone: bool = False
    handed: bool = False
    mode: Literal["engage", "notify", "off"] = "off"
    wake_on: str | None = None


class Flagged(msgspec.Struct, kw_only=True, frozen=True, tag_field="op", tag="flagged"):
    """A program has seen its flag change, and asks whether it is to wake."""

    process: Process


class Launched(Place, kw_only=True, frozen=True, tag_field="op", tag="launched"):
    """`readyroom run` started a session; it says so again and again."""

    agent: str
    program: str


class Ended(msgspec.Struct, kw_only=True, frozen=True, tag_field="op", tag="ended"):
    """The program of a `readyroom run` has ended."""

    agent: str


class Who(msgspec.Struct, kw_only=True, frozen=True, tag_field="op", tag="who"):
    """Which session does a command run in?

    Attributes:
        above: the command's ancestors, nearest first.
    """

    above: tuple[Process, ...]


class Status(msgspec.Struct, kw_only=True, frozen=True, tag_field="op", tag="status"):
    """What is known?"""


Request = Hook | Flagged | Launched | Ended | Who | Status

read_request = msgspec.json.Decoder(Request).decode
"""Reads one line; raises `msgspec.MsgspecError` with what is wrong."""
