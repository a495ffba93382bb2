"""Every surface that shows messages, for everybody, about everything: one predicate foretells all answers."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.http.running import Party, Running, until

ROOM = "api"
THREAD = "the-thread"


@dataclass(frozen=True, eq=False)
class Who:
    """Somebody, as the contract sees them."""

    party: Party
    handle: str
    kind: str
    box: str | None
    addresses: frozenset[str]
    member: bool
    realm: str = "main"


@dataclass(frozen=True, eq=False)
class What:
    """Something that was said."""

    id: int
    sender: Who | None
    to: str | None
    in_room: bool
    expired: bool = False

    @property
    def room(self) -> str:
        """Under which name it shows up."""
        return ROOM if self.in_room else f"@{self.to}"


@dataclass
class Scene:
    """Everybody and everything."""

    who: dict[str, Who] = field(default_factory=dict)
    what: dict[str, What] = field(default_factory=dict)

    def those(self, holds: Callable[[What], bool]) -> set[str]:
        """The names of what fulfils a condition."""
        return {name for name, what in self.what.items() if holds(what)}

    def named(self, messages: Iterable[dict[str, Any]]) -> set[str]:
        """The names of messages that came; an id that nobody knows stays a number."""
        names = {what.id: name for name, what in self.what.items()}
        return {names.get(message["id"], str(message["id"])) for message in messages}


def matches(who: Who, what: What) -> bool:
    """The selector picks them."""
    return what.to is None or what.to in who.addresses


def may_read(who: Who, what: What) -> bool:
    """Room messages: its current members. Address messages: their sender, and those that they match."""
    if who.realm != "main":
        return False
    return who.member if what.in_room else (who is what.sender or matches(who, what))


def hears(who: Who, what: What) -> bool:
    """Never its exact sender; no bare box its sessions, no session its own bare box."""
    sender = what.sender
    if sender is None:
        return True
    if who is sender:
        return False
    same_box = who.box is not None and who.box == sender.box
    return not (same_box and (who.kind == "box" or (who.kind == "session" and sender.kind == "box")))


def is_for(who: Who, what: What) -> bool:
    """Among those for whom it is."""
    return may_read(who, what) and matches(who, what) and hears(who, what)


def is_delivered(who: Who, what: What) -> bool:
    """Handed over, counted, fed."""
    return is_for(who, what) and not what.expired


async def arrive(record: Running) -> dict[str, Who]:
    """Two boxes, people, and a realm beside; all of them are there before anything is said."""
    made = await record.operator.post("/v1/admin/realms", {"name": "elsewhere"})
    assert made.status == 201
    work3, devmac = await record.box("work3"), await record.box("devmac")
    eric, dana = await record.person("eric"), await record.person("dana")
    far = await record.session(await record.box("work3", realm="elsewhere"), "reach")

    async def session(box: str, party: Party, role: str | None, *, member: bool) -> Who:
        made = await record.session(party, role)
        handle = str(made.agent)
        roles = {role} if role else set()
        addresses = {handle, handle.split("#")[0], box, "everyone"} | roles
        return Who(made, handle, "session", box, frozenset(addresses), member)

    def bare(name: str, kind: str, party: Party, *, member: bool) -> Who:
        box = name if kind == "box" else None
        return Who(party, name, kind, box, frozenset({name, "everyone"}), member)

    return {
        "sender": await session("work3", work3, "reach", member=True),
        "sibling": await session("work3", work3, None, member=True),
        "own bare box": bare("work3", "box", work3, member=True),
        "other member": await session("devmac", devmac, "reach", member=True),
        "other stranger": await session("devmac", devmac, None, member=False),
        "other bare box": bare("devmac", "box", devmac, member=False),
        "left": await session("devmac", devmac, "left", member=False),
        "retired": await session("devmac", devmac, "gone", member=True),
        "person inside": bare("eric", "person", eric, member=True),
        "person outside": bare("dana", "person", dana, member=False),
        "elsewhere": Who(far, str(far.agent), "session", "work3", frozenset(), False, realm="elsewhere"),
    }


async def speak(who: dict[str, Who]) -> dict[str, What]:
    """From each kind of sender to each kind of address, in the room and beside it."""
    sender, other = who["sender"], who["other member"]
    said: dict[str, What] = {}

    async def say(name: str, by: str, to: str | None = None, *, in_room: bool = True, **more: Any) -> None:
        path = f"/v1/rooms/{ROOM}/messages" if in_room else "/v1/messages"
        new = {"body": f"needle {name}", "to": to, "thread_id": THREAD, **more}
        reply = await who[by].party.post(path, new)
        assert reply.status == 201, reply
        said[name] = What(reply.body["message"]["id"], who[by], to, in_room, expired="ttl_seconds" in more)

    await say("expired", "sender", ttl_seconds=0.05)
    for by in ("sender", "own bare box", "other member", "person inside", "left"):
        await say(f"room, by {by}", by)
    addresses = {
        "session": other.handle,
        "label": "devmac-agent-reach",
        "role": "reach",
        "box": "devmac",
        "own box": "work3",
        "person": "dana",
        "everyone": "everyone",
        "leaver": who["left"].handle,
        "retired": who["retired"].handle,
    }
    for (name, to), in_room in itertools.product(addresses.items(), (True, False)):
        if name != "retired":  # what was for it alone is reported when it goes
            await say(f"{'room, ' if in_room else ''}to {name}", "sender", to, in_room=in_room)
    for by in ("own bare box", "other bare box", "person outside"):
        await say(f"to everyone, by {by}", by, "everyone", in_room=False)
    said["report"] = What(await reported(sender), None, sender.handle, in_room=False)
    return said


async def reported(sender: Who) -> int:
    """The id of the report that the expired message causes."""
    found: list[int] = []

    async def is_there() -> bool:
        page = (await sender.party.get("/v1/messages?limit=1000")).body["messages"]
        found.extend(message["id"] for message in page if message["sender"] == "system")
        return bool(found)

    await until(is_there, "the report comes")
    return found[0]


@pytest.fixture
async def scene(record: Running) -> Scene:
    """Said and done; nobody has read anything yet."""
    who = await arrive(record)
    for each in who.values():
        if each.member or each is who["left"]:
            assert (await each.party.post("/v1/rooms", {"name": ROOM})).status in (200, 201)
    what = await speak(who)
    assert (await who["left"].party.post(f"/v1/rooms/{ROOM}/leave")).status == 200
    assert (await who["retired"].party.post("/v1/checkout")).status == 200
    return Scene(who, what)


Shown = dict[str, Any]


async def asked(scene: Scene, who: Who) -> Shown:
    """All that the surfaces show to one of them; polling comes last, since it moves a cursor."""
    get = who.party.get
    shown: Shown = {}
    unread = await get("/v1/unread")
    shown["unread"] = unread.body["agents"].get(who.handle, {}).get("rooms", {})
    shown["feed"] = scene.named((await get("/v1/messages?limit=1000")).body["messages"])
    for surface, path in {
        "history": f"/v1/rooms/{ROOM}/messages?limit=1000",
        "thread": f"/v1/threads/{THREAD}?limit=1000",
        "search": "/v1/search?q=needle&limit=200",
        "undelivered": "/v1/undelivered",
    }.items():
        reply = await get(path)
        shown[surface] = scene.named(reply.body["messages"]) if reply.status == 200 else reply.code
    members = await get(f"/v1/rooms/{ROOM}/members")
    shown["members"] = (
        {each["agent"] for each in members.body["members"]} if members.status == 200 else members.code
    )
    for scope in ("mine", "all"):
        rooms = (await get(f"/v1/rooms?scope={scope}")).body["rooms"]
        shown[f"rooms {scope}"] = [(room["room"], room["member"], room["unread"]) for room in rooms]
    for name, what in scene.what.items():
        reply = await get(f"/v1/messages/{what.id}")
        shown[f"message {name}"] = _receipt(reply.body) if reply.status == 200 else reply.code
    polled = (await who.party.post("/v1/poll", {"limit": 1000})).body
    shown["poll"] = scene.named(message for room in polled["rooms"] for message in room["messages"])
    return shown


def _receipt(body: dict[str, Any]) -> tuple[set[str], set[str]]:
    receipt = body["receipt"]
    waits = {each["agent"] for each in (*receipt["unread_by"], *receipt["read_by"])}
    return {each["agent"] for each in receipt["accepted"]}, waits


def foretold(scene: Scene, who: Who) -> Shown:
    """The same, as the predicate has it."""
    delivered = scene.those(lambda what: is_delivered(who, what))
    readable = scene.those(lambda what: may_read(who, what))
    here = who.realm == "main"
    outside = "not_a_member" if here else "room_not_found"
    in_room = scene.those(lambda what: what.in_room)
    inside = {each.handle for name, each in scene.who.items() if each.member and name != "retired"}
    rooms = sorted(scene.what[name].room for name in delivered)
    unread = {room: len(list(group)) for room, group in itertools.groupby(rooms)}
    own = who is scene.who["sender"] or who is scene.who["own bare box"]
    standing = (ROOM, who.member, unread.get(ROOM, 0))
    return {
        "unread": unread,
        "feed": delivered,
        "poll": delivered,
        "history": in_room if who.member else outside,
        "members": inside if who.member else outside,
        "thread": readable or "not_found",
        "search": readable,
        "undelivered": {"expired"} if own else set(),
        "rooms mine": [standing] if who.member else [],
        "rooms all": [standing] if here else [],
    } | {
        f"message {name}": (audience(scene, what), audience(scene, what))
        if may_read(who, what)
        else "message_not_found"
        for name, what in scene.what.items()
    }


def audience(scene: Scene, what: What) -> set[str]:
    """For whom it is."""
    return {each.handle for each in scene.who.values() if is_for(each, what)}


async def test_every_surface_shows_everybody_what_the_one_predicate_says(scene: Scene) -> None:
    asking = {name: who for name, who in scene.who.items() if name != "retired"}
    every = await asyncio.gather(*(asked(scene, who) for who in asking.values()))
    wrong = {
        f"{name} / {surface}": (shown[surface], expected)
        for (name, who), shown in zip(asking.items(), every, strict=True)
        for surface, expected in foretold(scene, who).items()
        if shown[surface] != expected
    }
    assert wrong == {}
    assert len(every) * len(every[0]) > 300


async def test_who_comes_back_to_life_reads_what_its_memberships_let_it(scene: Scene) -> None:
    who = scene.who["retired"]
    shown, expected = await asked(scene, who), foretold(scene, who)
    assert shown == expected | {"members": expected["members"] | {who.handle}}
