"""Sessions come, are taken up again, and go."""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from api.db import Database, Transaction
from api.errors import BadField, BadHandle, ClientIdReused, NameTaken, NoSuchThing
from api.models import Caller, Details, Key, Session
from api.services import handles
from api.services.fields import RESERVED, name
from api.services.handles import FIRST_USE_MOST, HANDLE_CHARACTERS, Handle, own_box
from api.services.hearing import hear
from api.services.hints import DOUBLED
from api.services.limits import check_ceiling
from api.services.names import claim
from api.store import sessions as store
from api.store.identity import tell

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class CheckedIn:
    """A session after check-in; `again` when it had been there before."""

    agent: str
    box: str
    role: str | None
    realm: str
    again: bool


async def check_in(
    db: Database, *, caller: Caller, role: str | None, details: Details, key: Key | None
) -> CheckedIn:
    """Mint a handle for a session of the caller's box, and let it hear its addresses.

    With a `key` that came before, the answer is that check-in's session again.

    Raises:
        BoxOnly: the token is no box's.
        BadField: the role is no name, or too long for a handle.
        NameTaken: a box or person has the role's name.
        ClientIdReused: the key came before with other content.
    """
    box, _ = own_box(caller)
    if role is not None:
        name("role", role)
    async with db.transaction() as tx:
        await _lock(tx, caller)
        known = await _of_key(tx, caller, key)
        session = known or await _mint(tx, caller, box=box, role=role, details=details, key=key)
    return CheckedIn(session.handle, box, session.role, caller.realm, again=known is not None)


async def resume(
    db: Database, *, caller: Caller, handle: str, details: Details, key: Key | None, stale_seconds: int
) -> CheckedIn:
    """Take an earlier handle of the caller's box up again, cursors and all; a retired one comes back to life.

    One whose notifier says that it lives now is taken up, too, and both are shown as doubled.

    Raises:
        BoxOnly: the token is no box's.
        BadField: this is no handle.
        NoSuchThing: the box never had such a session.
        ClientIdReused: the key came before with other content.
    """
    box, box_id = own_box(caller)
    if not handles.is_handle(handle):
        raise BadField("resume", "a handle such as work3-agent#1; leave it out to get a new one")
    doubled = False
    async with db.transaction() as tx:
        await _lock(tx, caller)
        session = await _of_key(tx, caller, key)
        if session is None:
            found = await store.by_handle(tx, realm_id=caller.realm_id, handle=handle)
            if found is None or found[0] != "session" or found[1].box_id != box_id:
                raise NoSuchThing(
                    f"{box} has no session {handle}. Check in without resume to get a new handle.",
                    resume=handle,
                )
            session = found[1]
            who = {"realm_id": caller.realm_id, "agent_id": session.agent_id}
            doubled = await store.double(tx, **who, stale_seconds=stale_seconds)
            await store.take_up(tx, **who, details=details, state="starting", key=key)
    if doubled:
        log.warning("handle_doubled", realm=caller.realm, agent=session.handle, noticed_by="resume")
    return CheckedIn(session.handle, box, session.role, caller.realm, again=True)


async def hint(db: Database, *, caller: Caller, stale_seconds: int) -> str | None:
    """What is amiss with who calls: it is the bare box, or two live processes share the handle; the cure."""
    if caller.kind == "session" and await store.is_doubled(
        db, realm_id=caller.realm_id, agent_id=caller.agent_id, stale_seconds=stale_seconds
    ):
        return DOUBLED.format(agent=caller.handle)
    return caller.hint


async def take(db: Database, *, box: Caller, handle: Handle, most: int) -> Session:
    """Register a handle of the box's own namespace at its first use, or bring a retired one back to life.

    Args:
        db: the record's connections.
        box: whose handle it is.
        handle: its parts.
        most: with so many sessions the box can register no other one in this way.

    Raises:
        LimitReached: it has so many.
        BadHandle: its number is greater than a caller may choose.
        BadField: the role in it is reserved.
        NameTaken: the role in it, or the handle itself, belongs to somebody else.
    """
    name_, box_id = own_box(box)
    async with db.transaction() as tx:
        await _lock(tx, box)
        found = await store.by_handle(tx, realm_id=box.realm_id, handle=handle.text)
        if found is not None and (found[0] != "session" or found[1].box_id != box_id):
            raise NameTaken(
                f"{handle.text} belonged to an earlier {name_}, and what waits for it is not yours. Check in "
                "for a handle of your own (`readyroom run`).",
                name=handle.text,
            )
        if found is None or found[1].retired:
            there = await store.count_of_box(tx, realm_id=box.realm_id, box_id=box_id)
            check_ceiling(there + 1, most, limit="handles_per_box", what="handles of one box")
        if found is None:
            return await _register(tx, box, handle)
        session = found[1]
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


async def _mint(
    tx: Transaction, caller: Caller, *, box: str, role: str | None, details: Details, key: Key | None
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
        if handle.number > FIRST_USE_MOST:
            raise BadHandle(
                f"No session was ever given {handle.text}, and one that you choose yourself has a number of "
                f"at most {FIRST_USE_MOST}. Check in for a handle (`readyroom run`), or use one such as "
                f"{handle.label}#1."
            )
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
    key: Key | None,
) -> Session:
    box, box_id = own_box(caller)
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
        key=key,
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
    box, box_id = own_box(caller)
    if not await store.lock_box(tx, realm_id=caller.realm_id, box_id=box_id):
        raise NoSuchThing(f"The box {box} has been removed.")


async def _of_key(tx: Transaction, caller: Caller, key: Key | None) -> Session | None:
    """The session of an earlier check-in with this key; None: the key is new, or there is none."""
    if key is None:
        return None
    _, box_id = own_box(caller)
    found = await store.by_key(tx, realm_id=caller.realm_id, box_id=box_id, key=key.text)
    if found is None:
        return None
    session, content_hash = found
    if content_hash is not None and content_hash != key.content_hash:
        raise ClientIdReused("Idempotency-Key", what="check-in", agent=session.handle)
    return session
