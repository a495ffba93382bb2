"""Sessions come, are taken up again, report and go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from api.db import Database, Transaction
from api.errors import BadField, BoxOnly, NameTaken, NoSuchThing
from api.models import Caller, Details, Report, RosterRow, Session
from api.services import handles
from api.services.fields import RESERVED, name
from api.services.handles import HANDLE_CHARACTERS, Handle
from api.services.names import claim
from api.store import agents as store
from api.store import rooms
from api.store.identity import tell

BRIEFED = 20
"""How many messages of before its start a session still hears, of its label, its role and everyone."""


@dataclass(frozen=True, slots=True)
class CheckedIn:
    """A session after check-in; `again` when it had been there before."""

    agent: str
    box: str
    role: str | None
    realm: str
    again: bool


async def check_in(
    db: Database, *, caller: Caller, role: str | None, details: Details, key: str | None
) -> CheckedIn:
    """Mint a handle for a session of the caller's box, and let it hear its addresses.

    With a `key` that came before, the answer is that check-in's session again.

    Raises:
        BoxOnly: the token is no box's.
        BadField: the role is no name, or too long for a handle.
        NameTaken: a box or person has the role's name.
    """
    box, box_id = _box(caller)
    if role is not None:
        name("role", role)
    async with db.transaction() as tx:
        await _lock(tx, caller)
        known = (
            await store.by_checkin_key(tx, realm_id=caller.realm_id, box_id=box_id, key=key) if key else None
        )
        session = known or await _mint(tx, caller, box=box, role=role, details=details, key=key)
    return CheckedIn(session.handle, box, session.role, caller.realm, again=known is not None)


async def resume(db: Database, *, caller: Caller, handle: str, details: Details) -> CheckedIn:
    """Take an earlier handle of the caller's box up again, cursors and all; a retired one comes back to life.

    Raises:
        BoxOnly: the token is no box's.
        BadHandle: this is no handle.
        NoSuchThing: the box never had such a session.
    """
    box, box_id = _box(caller)
    handles.parse(handle)
    async with db.transaction() as tx:
        await _lock(tx, caller)
        found = await store.by_handle(tx, realm_id=caller.realm_id, handle=handle)
        if found is None or found[0] != "session" or found[1].box_id != box_id:
            raise NoSuchThing(
                f"{box} has no session {handle}. Check in without resume to get a new handle.", resume=handle
            )
        session = found[1]
        await store.take_up(
            tx, realm_id=caller.realm_id, agent_id=session.agent_id, details=details, state="starting"
        )
    return CheckedIn(session.handle, box, session.role, caller.realm, again=True)


async def take(db: Database, *, box: Caller, handle: Handle) -> Session:
    """Register a handle of the box's own namespace at its first use, or bring a retired one back to life.

    Raises:
        BadField: the role in it is reserved.
        NameTaken: the role in it, or the handle itself, belongs to somebody else.
    """
    _, box_id = _box(box)
    async with db.transaction() as tx:
        await _lock(tx, box)
        found = await store.by_handle(tx, realm_id=box.realm_id, handle=handle.text)
        if found is None:
            return await _register(tx, box, handle)
        kind, session = found
        if kind != "session" or session.box_id != box_id:
            raise NameTaken(
                f"{handle.text} belonged to another {kind}. Use another handle.", name=handle.text
            )
        await store.take_up(
            tx, realm_id=box.realm_id, agent_id=session.agent_id, details=Details(), state="unknown"
        )
    return session


async def check_out(db: Database, *, caller: Caller) -> str:
    """Retire the session that the caller is; returns what `Identity.forget` must be told.

    Raises:
        BadField: the caller is no session.
    """
    if caller.kind != "session":
        raise BadField("X-Tyode-Agent", "only a session checks out; name its handle in this header")
    async with db.transaction() as tx:
        await store.retire(tx, realm_id=caller.realm_id, agent_id=caller.agent_id)
        await tell(tx, word := f"agent {caller.realm} {caller.handle}")
    return word


async def report(db: Database, *, caller: Caller, reports: Sequence[Report]) -> None:
    """Keep what a notifier knows of its own box's sessions: all of it, or nothing.

    Raises:
        BoxOnly: the token is no box's.
        BadField: one of them is not a session of this box, or comes twice.
    """
    box, box_id = _box(caller)
    handles_ = [each.agent for each in reports]
    async with db.transaction() as tx:
        named = [handle for handle in handles_ if handles.is_handle(handle)]
        strangers = set(handles_) - await store.own(
            tx, realm_id=caller.realm_id, box_id=box_id, handles=named
        )
        for place, handle in enumerate(handles_):
            if handle in strangers:
                raise BadField(f"sessions[{place}].agent", f"{handle} is no session of {box}", agent=handle)
            if handle in handles_[:place]:
                raise BadField(f"sessions[{place}].agent", f"{handle} comes twice", agent=handle)
        await store.report(tx, realm_id=caller.realm_id, reports=reports)


async def roster(
    db: Database, *, caller: Caller, after: str, limit: int, stale_seconds: int, retired: bool
) -> list[RosterRow]:
    """Who is in the caller's realm, by handle, beginning after `after`."""
    return await store.roster(
        db,
        realm_id=caller.realm_id,
        you=caller.agent_id,
        after=after,
        limit=limit,
        stale_seconds=stale_seconds,
        retired=retired,
    )


async def hear(
    tx: Transaction, *, realm_id: int, agent_id: int, addresses: Sequence[str], briefed: frozenset[str]
) -> None:
    """Make an agent hear its addresses; those that are `briefed` with the newest messages of before."""
    for address in sorted(addresses):
        conv_id, _ = await rooms.create(tx, realm_id=realm_id, name=f"@{address}")
        await rooms.join(
            tx,
            realm_id=realm_id,
            agent_id=agent_id,
            conv_id=conv_id,
            backfill=BRIEFED if address in briefed else 0,
        )


async def _mint(
    tx: Transaction, caller: Caller, *, box: str, role: str | None, details: Details, key: str | None
) -> Session:
    if role is not None:
        await claim(tx, realm_id=caller.realm_id, name=role, kind="role")
    label = f"{box}-agent" if role is None else f"{box}-agent-{role}"
    number = await store.next_number(tx, realm_id=caller.realm_id, label=label)
    if len(f"{label}#{number}") > HANDLE_CHARACTERS:
        raise BadField("role", f"a handle has at most {HANDLE_CHARACTERS} characters; choose a shorter role")
    handle = Handle(f"{label}#{number}", label, number)
    return await _add(tx, caller, handle, role=role, details=details, state="starting", key=key)


async def _register(tx: Transaction, caller: Caller, handle: Handle) -> Session:
    assert caller.box is not None
    role = handle.role(caller.box)
    if role is not None:
        if role in RESERVED:
            raise BadField("X-Tyode-Agent", f"the role {role} is reserved; use another handle")
        await claim(tx, realm_id=caller.realm_id, name=role, kind="role")
    if handle.number is not None:
        await store.move_past(tx, realm_id=caller.realm_id, label=handle.label, number=handle.number)
    return await _add(tx, caller, handle, role=role, details=Details(), state="unknown", key=None)


async def _add(
    tx: Transaction,
    caller: Caller,
    handle: Handle,
    *,
    role: str | None,
    details: Details,
    state: str,
    key: str | None,
) -> Session:
    box, box_id = _box(caller)
    session = await store.add_session(
        tx,
        realm_id=caller.realm_id,
        box_id=box_id,
        handle=handle.text,
        label=handle.label,
        role=role,
        addresses=handles.addresses(handle, box=box, role=role),
        details=details,
        state=state,
        checkin_key=key,
    )
    briefed = frozenset({handle.label, "everyone"} | ({role} if role else set()))
    await hear(
        tx,
        realm_id=caller.realm_id,
        agent_id=session.agent_id,
        addresses=session.addresses,
        briefed=briefed,
    )
    return session


async def _lock(tx: Transaction, caller: Caller) -> None:
    box, box_id = _box(caller)
    if not await store.lock_box(tx, realm_id=caller.realm_id, box_id=box_id):
        raise NoSuchThing(f"The box {box} has been removed.")


def _box(caller: Caller) -> tuple[str, int]:
    if caller.box is None or caller.box_id is None:
        raise BoxOnly
    return caller.box, caller.box_id
