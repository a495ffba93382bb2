"""The record's errors name calls of its API; on the command line they name the commands that make them."""

from __future__ import annotations

import re

from notifier.record import RecordError, Refused

CALLS = (
    (r"POST /v1/rooms/\S+/join(?: \([^)]*\))?", "`readyroom join {room}`"),
    (r"POST /v1/rooms\b", "`readyroom start {room}`"),
    (r"GET /v1/rooms\?scope=all", "`readyroom rooms --all`"),
    (r"POST /v1/admin/realms", "`readyroom admin realm add {realm}`"),
    (r"GET /v1/webhooks", "`readyroom webhook list`"),
    (r"DELETE /v1/webhooks/…", "`readyroom webhook remove ID`"),
)
"""Pattern -> command; the problem's facts stand in it where it has them."""

WORDS = {
    "unauthenticated": (
        "The record does not know this token, or not any more. See what READYROOM_TOKEN or "
        "READYROOM_TOKEN_FILE holds, or ask the operator for another (`readyroom admin box add NAME`, or "
        "`rotate NAME` for a box that exists)."
    ),
    "bad_handle": (
        "READYROOM_AGENT must be a handle such as work3-agent#1 or work3-agent-reach#1: lower case, at most "
        "128 characters, no blanks. Unset it to speak as this user's shell."
    ),
    "record_down": (
        "The record's database does not answer, and whether this took effect is not known. Try again in a "
        "few seconds; what has a --client-id is said once."
    ),
}
"""What is said in place of a detail that speaks of headers and fields, by code."""


def in_commands(error: RecordError) -> str:
    """The error's detail for somebody who types commands."""
    detail = WORDS.get(error.code, error.detail)
    facts = error.facts if isinstance(error, Refused) else {}
    known = {"room": "ROOM", "realm": "NAME", **facts}
    for call, command in CALLS:
        named = command.format(**known)
        detail = re.sub(call, lambda _, named=named: named, detail)  # type: ignore[misc]
    return detail
