"""What a handle looks like, and whose it is."""

from __future__ import annotations

import re
from dataclasses import dataclass

from api.errors import BadHandle, BoxOnly
from api.models import Caller
from api.services.fields import NAME

HANDLE_CHARACTERS = 128
FIRST_USE_MOST = 999_999_999
"""The greatest number that a caller may choose for itself. The counter goes on from there one by one, and no
box ever checks in often enough to bring it to a number that is no handle's."""

_HANDLE = re.compile(r"(?P<label>[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?)(?:#(?P<number>[1-9][0-9]{0,17}))?")
_UNEXPANDED = re.compile(r"\$\{.*\}")


def compose_agent_id(box: str, handle: str | None) -> str:
    """The effective identity of a box's caller: the handle where it is the box's own, else the bare box."""
    if handle is not None and (handle == box or handle.startswith(f"{box}-")):
        return handle
    return box


@dataclass(frozen=True, slots=True)
class Handle:
    """A handle taken apart: `work3-agent-reach#2` has the label `work3-agent-reach` and the number 2."""

    text: str
    label: str
    number: int | None

    def role(self, box: str) -> str | None:
        """`reach`, in `work3-agent-reach#2` of the box `work3`; None for an unnamed session."""
        role = self.label.removeprefix(f"{box}-agent-")
        return role if role != self.label and NAME.fullmatch(role) else None


def parse(text: str) -> Handle:
    """Take a handle apart.

    Raises:
        BadHandle: it is none.
    """
    match = _HANDLE.fullmatch(text)
    if match is None or len(text) > HANDLE_CHARACTERS:
        raise BadHandle
    number = match["number"]
    return Handle(text, match["label"], int(number) if number else None)


def is_handle(text: str) -> bool:
    """Whether this is a handle, whoever's."""
    return len(text) <= HANDLE_CHARACTERS and _HANDLE.fullmatch(text) is not None


def is_unexpanded(text: str) -> bool:
    """Whether this is `${…}`, as agent programs send it when the variable is not set."""
    return _UNEXPANDED.fullmatch(text) is not None


def addresses(handle: Handle, *, box: str, role: str | None) -> tuple[str, ...]:
    """Every selector that matches a session, the exact one first."""
    every = (handle.text, handle.label, role, box, "everyone")
    return tuple(dict.fromkeys(address for address in every if address is not None))


def own_box(caller: Caller) -> tuple[str, int]:
    """The name and the row of the caller's box.

    Raises:
        BoxOnly: the caller is a person.
    """
    if caller.box is None or caller.box_id is None:
        raise BoxOnly
    return caller.box, caller.box_id
