"""Everything a caller can run into, without a word of HTTP.

ServiceError
├── Malformed          BadHandle, BadRequest
├── Oversized          TooLarge
├── Unauthenticated    BadToken
├── Forbidden          NotAMember, OperatorOnly, NerveOnly, BoxOnly, WrongOrigin
├── Misdirected        WrongHost
├── NotFound           RoomNotFound, MessageNotFound, NoSuchInvite, NoSuchThing
├── Conflict           NameTaken, TooManyTokens, TooManyWebhooks, ClientIdReused, LimitReached
├── Invalid            BadField, NoSuchAgent, HopsUsedUp, SearchTooBroad
├── TooMany            RateLimited
└── Unavailable        ChecksBusy, RecordDown (SchemaBehind), RoomHeldUp, SearchesBusy

`problems.py` says what each kind costs in HTTP. A `detail` says what to do next; facts travel as fields.
"""

from __future__ import annotations

from typing import Any


class ServiceError(Exception):
    """The root. `code` is stable and documented in docs/reference/errors.md."""

    code = "error"
    title = "Error"

    def __init__(self, detail: str, **facts: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.facts = facts


class Malformed(ServiceError):
    """The request cannot be read."""


class Oversized(ServiceError):
    """More than anybody may send."""


class Unauthenticated(ServiceError):
    """Nobody we know."""


class Forbidden(ServiceError):
    """Known, but not allowed."""


class Misdirected(ServiceError):
    """Sent to somebody of another name."""


class NotFound(ServiceError):
    """Not there, or not for this caller to see: the answer is the same."""


class Conflict(ServiceError):
    """It contradicts what is already so."""


class Invalid(ServiceError):
    """Readable, but a value will not do."""


class TooMany(ServiceError):
    """Too much, too fast; `retry_after` is in seconds."""


class Unavailable(ServiceError):
    """The record cannot answer now; the caller did nothing wrong and may try again."""


class BadRequest(Malformed):
    """The body is not what it claims to be."""

    code = "bad_request"
    title = "The request cannot be read"


class TooLarge(Oversized):
    """The request's body is larger than any call may have."""

    code = "too_large"
    title = "The request is too large"

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"A request has at most {limit_bytes} bytes. Split it.", limit_bytes=limit_bytes)


class BadHandle(Malformed):
    """The session header holds no valid handle."""

    code = "bad_handle"
    title = "Not a handle"

    def __init__(
        self,
        detail: str = "X-Tyode-Agent must be a handle such as work3-agent#1 or work3-agent-reach#1: lower "
        "case, at most 128 characters, no blanks. Leave the header out to speak as the bare box.",
    ) -> None:
        super().__init__(detail)


class BadToken(Unauthenticated):
    """One answer for a missing, unknown, revoked and expired token."""

    code = "unauthenticated"
    title = "A valid token is needed"

    def __init__(self) -> None:
        super().__init__(
            "Send `Authorization: Bearer <token>` with a token of this record. Ask the operator for one, "
            "who makes one with `readyroom admin box add`."
        )


class NotAMember(Forbidden):
    """The caller has not joined this room."""

    code = "not_a_member"
    title = "Not a member"

    def __init__(self, room: str, *, leaving: bool = False) -> None:
        join = f"Join it first: POST /v1/rooms/{room}/join (`readyroom join {room}`, tool join_conv)."
        super().__init__(
            f"You are not in room {room}. {'There is nothing to leave.' if leaving else join}", room=room
        )


class OperatorOnly(Forbidden):
    """An act of the operator, asked for with another token."""

    code = "operator_only"
    title = "The operator's token is needed"

    def __init__(self) -> None:
        super().__init__("Only the operator may do this. Use the token in admin.token of the data folder.")


class NerveOnly(Forbidden):
    """What a nerve that stands apart asks, asked for with another token."""

    code = "nerve_only"
    title = "The nerve's own token is needed"

    def __init__(self) -> None:
        super().__init__(
            "Only `readyroom broker` asks this, with the token in the file that READYROOM_NERVE_TOKEN_FILE "
            "names for it and for the record."
        )


class BoxOnly(Forbidden):
    """An act of a box, asked for with a person's token."""

    code = "box_only"
    title = "A box's token is needed"

    def __init__(self) -> None:
        super().__init__("Only a box has sessions. Use the token of the box that this runs on.")


class WrongOrigin(Forbidden):
    """A page of another site calls."""

    code = "wrong_origin"
    title = "A page of another site"

    def __init__(self, origin: str) -> None:
        super().__init__(
            f"No page of {origin} may call MCP here. The operator allows its host with READYROOM_MCP_HOSTS."
        )


class WrongHost(Misdirected):
    """A request for another name."""

    code = "wrong_host"
    title = "Not a name of this record"

    def __init__(self, host: str) -> None:
        super().__init__(
            f"This record does not know itself as {host!r}. Call MCP by its address or by a name that the "
            "operator has given it: READYROOM_PUBLIC_URL, or READYROOM_MCP_HOSTS."
        )


class RoomNotFound(NotFound):
    """No room of this name in the caller's realm."""

    code = "room_not_found"
    title = "No such room"

    def __init__(self, room: str) -> None:
        super().__init__(
            f"There is no room {room}. Start it (POST /v1/rooms, tool start_conv), or look which there are "
            "(GET /v1/rooms?scope=all, tool list_all_convs).",
            room=room,
        )


class MessageNotFound(NotFound):
    """No message with this id that the caller may read."""

    code = "message_not_found"
    title = "No such message"

    def __init__(self, message_id: int) -> None:
        super().__init__(f"There is no message {message_id} that you may read.", id=message_id)


class NoSuchInvite(NotFound):
    """One answer for a code that is unknown, used, revoked or expired."""

    code = "no_such_invite"
    title = "The code is not valid"

    def __init__(self) -> None:
        super().__init__(
            "This code is wrong, used or too old. Ask the operator for a new one: "
            "`readyroom admin invite BOX`."
        )


class NoSuchThing(NotFound):
    """Anything else that is not there."""

    code = "not_found"
    title = "Not found"


class NameTaken(Conflict):
    """The name is in use, or lies in another name's namespace."""

    code = "name_taken"
    title = "The name is taken"


class TooManyTokens(Conflict):
    """Two tokens may be valid at a time."""

    code = "too_many_tokens"
    title = "Two tokens are valid already"

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} has two valid tokens. Revoke one of them first.", name=name)


class TooManyWebhooks(Conflict):
    """An agent has as many webhooks as it may have."""

    code = "too_many_webhooks"
    title = "No more webhooks"

    def __init__(self, most: int) -> None:
        super().__init__(
            f"You have {most} webhooks, as many as are allowed. Remove one with DELETE /v1/webhooks/…",
            most=most,
        )


class ClientIdReused(Conflict):
    """A client_id or Idempotency-Key that came before with other content; facts name what came of it then."""

    code = "client_id_reused"
    title = "It was used before, with other content"

    def __init__(self, name: str, *, what: str, **facts: Any) -> None:
        super().__init__(
            f"This {name} belongs to an earlier {what} with other content. Use a fresh {name} for a new one.",
            **facts,
        )


class LimitReached(Conflict):
    """There are as many of something as the operator allows; facts: `limit`, the setting, and `most`."""

    code = "limit_reached"
    title = "There are as many as there may be"

    def __init__(self, *, limit: str, what: str, most: int) -> None:
        super().__init__(
            f"There may be at most {most} {what}. Use one that exists, or ask the operator to raise "
            f"READYROOM_{limit.upper()}.",
            limit=limit,
            most=most,
        )


class BadField(Invalid):
    """One field's value will not do; `field` names it."""

    code = "invalid"
    title = "A field will not do"

    LONGEST = 120

    def __init__(self, field: str, why: str, **facts: Any) -> None:
        name = field if len(field) <= self.LONGEST else f"{field[: self.LONGEST]}…"
        super().__init__(f"{name}: {why}", field=name, **facts)


class NoSuchAgent(Invalid):
    """A selector that nobody has ever matched."""

    code = "no_such_agent"
    title = "Nobody answers to that"


class HopsUsedUp(Invalid):
    """A message has been passed on too often; facts: `thread_id`, and `origin`, who began the thread."""

    code = "hop_limit_reached"
    title = "The hop limit is used up"

    def __init__(self, *, thread_id: str | None, origin: str) -> None:
        super().__init__(
            "This thread's hop limit is used up, so that the message was not passed on. Answer it instead "
            f"(in_reply_to). {origin}, who began the thread, is told.",
            thread_id=thread_id,
            origin=origin,
        )


class SearchTooBroad(Invalid):
    """A search looked through so much that it was ended."""

    code = "search_too_broad"
    title = "The search takes too long"

    def __init__(self) -> None:
        super().__init__(
            "So much may hold these words that the search was ended. Narrow it: choose rarer words, or name "
            "room, sender, type or since."
        )


class RateLimited(TooMany):
    """A caller's own limit; facts: `limit`, its name, `quota` in `window_seconds`, and `retry_after`."""

    code = "rate_limited"
    title = "Too many requests"


class RecordDown(Unavailable):
    """PostgreSQL does not answer."""

    code = "record_down"
    title = "The record is not available"

    def __init__(self) -> None:
        super().__init__(
            "The database does not answer, and whether this took effect is not known. Call again in a few "
            "seconds: say with the same client_id, poll with the same poll_key, and nothing comes twice."
        )


class SchemaBehind(RecordDown):
    """The database answers, but it was never migrated, or not since this program is newer."""

    code = "schema_behind"
    title = "The record's database is not up to date"

    def __init__(self) -> None:
        Unavailable.__init__(
            self,
            "The record's database lacks what this version of the record wants. Its operator runs `readyroom "
            "migrate` with the same READYROOM_DATABASE_URL; then call again. Nothing took effect.",
        )


class ChecksBusy(Unavailable):
    """A schema's turn to be checked did not come in time."""

    code = "checks_busy"
    title = "Too many schemas are being checked"

    def __init__(self) -> None:
        super().__init__(
            "Too many results and schemas wait to be checked, and nothing was stored. Of one box with all "
            "its sessions one is checked at a time. Say it again in a few seconds."
        )


class SearchesBusy(Unavailable):
    """A search's turn did not come in time."""

    code = "searches_busy"
    title = "Too many searches run"

    def __init__(self) -> None:
        super().__init__(
            "Too many searches wait. One of each session's, and one of each box's, runs at a time. Search "
            "again in a few seconds."
        )


class RoomHeldUp(Unavailable):
    """Somebody holds the room's lock and does not let go; nobody can speak there."""

    code = "room_held_up"
    title = "The room is held up"

    def __init__(self) -> None:
        super().__init__(
            "Another process of the record stalls while it writes in this room, and nothing was stored. "
            "Other rooms are not affected. Say it again in a few seconds."
        )
