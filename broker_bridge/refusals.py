"""What a client is told when it may not, or cannot, have what it asked for."""

from __future__ import annotations

from collections.abc import Iterator

from broker_bridge.actions import Action, Emit, HangUp
from broker_bridge.connection import Connection

REFUSED = {
    "token": "This token is not valid here",
    "ticket": "This ticket is unknown, used or too old; get another one",
    "realm": "A token is needed to log in",
}
"""What a login is told that nobody is admitted by."""


def auth_fail(connection: Connection, code: int, message: str) -> Emit:
    """A refusal; the connection stays open."""
    return Emit(connection.id, "AUTH_FAIL", {"code": code, "message": message})


def error(connection: Connection, code: int, message: str) -> Emit:
    """An error notice; the connection stays open."""
    return Emit(connection.id, "ERROR", {"message": message, "code": code})


def no_anonymous(connection: Connection, kind: str) -> Iterator[Action]:
    """Refuse a name that anybody may have, and hang up as the original does."""
    yield error(connection, -4, f"Anonymous {kind} are not admitted; register under a name of your own")
    yield HangUp(connection.id)


def rate_limited(connection: Connection, now: float) -> Iterator[Action]:
    """A frame is dropped for going over a rate; told once a second."""
    if now - connection.told_limited_at >= 1:
        connection.told_limited_at = now
        told = {"code": 429, "reason": "messages_per_second", "retry_after": 1}
        yield Emit(connection.id, "RATE_LIMITED", told)


def is_anonymous(name: str) -> bool:
    """Whether it is one of the names that stock clients use when they have none."""
    return name == "ANONYMOUS" or name.startswith("ANONYMOUS-")
