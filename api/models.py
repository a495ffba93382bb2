"""What the record's layers hand to one another about who is who."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Literal

Kind = Literal["session", "box", "person"]
State = Literal["starting", "idle", "busy", "waiting", "suspended", "offline", "unknown"]
Outcome = Literal["held", "sent", "started", "read"]
NerveRole = Literal["consumer", "producer", "both"]


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever makes a call, after its token and its handle were looked at.

    Attributes:
        realm_id: the realm's key in every table.
        realm: the realm's name.
        agent_id: the effective identity's row of `agents`.
        handle: the effective identity.
        kind: what it is.
        box_id: the box's own row of `agents`; None for a person.
        box: the box's name; None for a person.
        name: whose token it was: the box's or the person's name.
        token_id: names the token, never reveals it.
        addresses: every selector that matches the effective identity.
        hint: why the caller is the bare box, and how to change that; None when all is well.
    """

    realm_id: int
    realm: str
    agent_id: int
    handle: str
    kind: Kind
    box_id: int | None
    box: str | None
    name: str
    token_id: str
    addresses: tuple[str, ...]
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Holder:
    """The box or person that a valid token belongs to.

    Attributes:
        bare: the holder as a caller without a session.
        valid_seconds: how long the token stays valid unless it is revoked; None: for ever.
    """

    bare: Caller
    valid_seconds: float | None


@dataclass(frozen=True, slots=True)
class Session:
    """A session that has been minted or taken, as identity needs it."""

    agent_id: int
    handle: str
    box_id: int
    role: str | None
    addresses: tuple[str, ...]
    retired: bool


@dataclass(frozen=True, slots=True)
class NewInvite:
    """An invite just made; the code is shown this once."""

    code: str
    invite_id: str
    expires_at: dt.datetime


@dataclass(frozen=True, slots=True)
class Invite:
    """An invite that nobody has redeemed yet."""

    invite_id: str
    box: str
    realm: str
    created_at: dt.datetime
    expires_at: dt.datetime


@dataclass(frozen=True, slots=True)
class Redeemed:
    """A box with a token of its own, which is shown this once."""

    name: str
    realm: str
    token: str
    token_id: str


@dataclass(frozen=True, slots=True)
class Act:
    """Something that an operator did, or an invite did for them."""

    audit_id: int
    at: dt.datetime
    act: str
    target: str
    realm: str | None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message of another program that its consumer never acknowledged. What it says is not shown.

    Attributes:
        holder: the name whose token the consumer subscribed with.
        size: characters of it.
        attempts: how often it was sent.
    """

    id: int
    realm: str
    holder: str
    consumer: str
    producer: str
    event: str
    size: int
    attempts: int
    created_at: dt.datetime
    dead_at: dt.datetime


@dataclass(frozen=True, slots=True)
class Details:
    """What a session tells of itself at check-in."""

    harness: str | None = None
    cwd: str | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """An Idempotency-Key, and what tells a repeat of its check-in from another one under it."""

    text: str
    content_hash: bytes


@dataclass(frozen=True, slots=True)
class Wake:
    """What became of one attempt to wake a session; `reason` says why it was held."""

    rung: str
    outcome: Outcome
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What a notifier knows of one session; `doubled`: a second live process goes by its handle."""

    agent: str
    state: State
    wake: Wake | None = None
    doubled: bool = False


@dataclass(frozen=True, slots=True)
class RosterRow:
    """One agent as the realm sees it."""

    agent: str
    kind: Kind
    box: str | None
    role: str | None
    harness: str | None
    cwd: str | None
    title: str | None
    state: State
    doubled: bool
    last_seen: dt.datetime
    offline_since: dt.datetime | None
    retired: bool
    you: bool


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token, the only time it is ever seen."""

    token: str
    token_id: str


@dataclass(frozen=True, slots=True)
class ValidToken:
    """A token as the operator may list it."""

    token_id: str
    created_at: dt.datetime


@dataclass(frozen=True, slots=True)
class Realm:
    """A realm. None: it never expires; its messages are kept as the service's setting says."""

    name: str
    created_at: dt.datetime
    expires_at: dt.datetime | None
    keep_days: int | None
    anonymous_listeners: bool


@dataclass(frozen=True, slots=True)
class NerveClient:
    """A program that is no agent, and what it may do on the nerve."""

    name: str
    realm: str
    role: NerveRole
    created_at: dt.datetime
    tokens: tuple[ValidToken, ...]


@dataclass(frozen=True, slots=True)
class Admitted:
    """Somebody who may be on the nerve; see `broker_bridge.nerve.Admission`, whose fields these are."""

    realm: str
    name: str
    role: NerveRole
    token_id: str
    kind: Literal["holder", "client", "anonymous"]


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a browser logs in to the nerve with, once, within `expires_in` seconds."""

    ticket: str
    expires_in: int


@dataclass(frozen=True, slots=True)
class Named:
    """A box or a person with its valid tokens."""

    name: str
    realm: str
    created_at: dt.datetime
    tokens: tuple[ValidToken, ...]
