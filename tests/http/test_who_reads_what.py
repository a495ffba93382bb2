"""Every surface that shows messages, for everybody, about everything: one predicate foretells all answers."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

import pytest

from tests.http.models import Model, model
from tests.http.running import OPERATOR, Party, Running, until

pytestmark = pytest.mark.long

ROOM = "api"
NOBODYS = "nobodys"
THREAD = "the-thread"
EXPIRING = ("sender", "left", "retired")
"""Who says something that expires, and is told so."""


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
    briefed: frozenset[str] | None = None
    """Of whoever came when all had been said: the rooms and addresses of which it hears what was before."""


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


def is_fed(who: Who, what: What) -> bool:
    """In the feed, which begins with the oldest."""
    return is_for(who, what) and not what.expired


def is_delivered(who: Who, what: What) -> bool:
    """Handed over and counted."""
    return is_fed(who, what) and (who.briefed is None or what.room in who.briefed)


def reaches(scene: Scene, by: Who, to: str) -> bool:
    """Somebody but the sender, who may hear them, answers to the selector."""
    what = What(0, by, to, in_room=False)
    return to == "everyone" or any(is_for(who, what) for who in scene.who.values() if matches(who, what))


async def arrive(record: Running) -> dict[str, Who]:
    """Two boxes, people, and a realm beside; all of them are there before anything is said."""
    made = await record.operator.post("/v1/admin/realms", {"name": "elsewhere"})
    assert made.status == 201
    work3, devmac = await record.box("work3"), await record.box("devmac")
    eric, dana = await record.person("eric"), await record.person("dana")
    far_box = await record.box("work3", realm="elsewhere")
    far = await record.session(far_box, "reach")
    far_eric = await record.person("eric", realm="elsewhere")

    def elsewhere(party: Party, handle: str, kind: str, box: str | None) -> Who:
        return Who(party, handle, kind, box, frozenset(), False, realm="elsewhere")

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
        "elsewhere, session": elsewhere(far, str(far.agent), "session", "work3"),
        "elsewhere, bare box": elsewhere(far_box, "work3", "box", "work3"),
        "elsewhere, person": elsewhere(far_eric, "eric", "person", None),
    }


async def arrive_late(record: Running, devmac: Who, *, backfill: str) -> Who:
    """A session that comes when all has been said, and joins the room with what was before, or without."""
    party = await record.session(devmac.party, "reach")
    joined = await party.post(f"/v1/rooms/{ROOM}/join", {"backfill": backfill})
    assert joined.status == 200
    addresses = {"devmac-agent-reach", "reach", "everyone"}
    briefed = frozenset({f"@{each}" for each in addresses} | ({ROOM} if backfill == "all" else set()))
    handle = str(party.agent)
    every = frozenset(addresses | {handle, "devmac"})
    return Who(party, handle, "session", "devmac", every, member=True, briefed=briefed)


async def speak(scene: Scene) -> None:
    """From each kind of sender to each kind of address, in the room and beside it."""
    who = scene.who
    here = {name: each for name, each in who.items() if each.realm == "main"}
    addresses = {
        "the room": None,
        "session": who["other member"].handle,
        "label": "devmac-agent-reach",
        "role": "reach",
        "box": "devmac",
        "own box": "work3",
        "person": "dana",
        "everyone": "everyone",
        "leaver": who["left"].handle,
    }
    for by in EXPIRING:
        await say(scene, f"expired, by {by}", by, None, in_room=True, ttl_seconds=0.05)
    for (by, each), (name, to), in_room in itertools.product(here.items(), addresses.items(), (True, False)):
        is_inside = each.member or by == "left"
        if (is_inside if in_room else to is not None) and (to is None or reaches(scene, each, to)):
            await say(scene, f"{'room, ' if in_room else ''}to {name}, by {by}", by, to, in_room=in_room)
    for by in EXPIRING:
        report = await reported(who[by])
        scene.what[f"report to {by}"] = What(report, None, who[by].handle, in_room=False)


async def say(scene: Scene, name: str, by: str, to: str | None, *, in_room: bool, **more: Any) -> None:
    path = f"/v1/rooms/{ROOM}/messages" if in_room else "/v1/messages"
    new = {"body": f"needle {name}", "to": to, "thread_id": THREAD, **more}
    reply = await scene.who[by].party.post(path, new)
    assert reply.status == 201, reply
    what = What(reply.body["message"]["id"], scene.who[by], to, in_room, expired="ttl_seconds" in more)
    scene.what[name] = what


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
    scene = Scene(await arrive(record))
    who = scene.who
    for each in who.values():
        if each.member or each is who["left"]:
            assert (await each.party.post("/v1/rooms", {"name": ROOM})).status in (200, 201)
    assert (await who["left"].party.post("/v1/rooms", {"name": NOBODYS})).status == 201
    assert (await who["elsewhere, person"].party.post("/v1/rooms", {"name": NOBODYS})).status == 201
    await speak(scene)
    for room in (ROOM, NOBODYS):
        assert (await who["left"].party.post(f"/v1/rooms/{room}/leave")).status == 200
    assert (await who["elsewhere, person"].party.post(f"/v1/rooms/{NOBODYS}/leave")).status == 200
    assert (await who["retired"].party.post("/v1/checkout")).status == 200
    who["late"] = await arrive_late(record, who["other bare box"], backfill="none")
    who["late, with what was before"] = await arrive_late(record, who["other bare box"], backfill="all")
    return scene


Shown = dict[str, Any]


async def asked(scene: Scene, who: Who) -> Shown:
    """All that the surfaces show to one of them; polling comes last, since it moves a cursor."""
    get = who.party.get
    shown: Shown = {}
    unread = await get("/v1/unread")
    shown["unread"] = {name: agent["rooms"] for name, agent in unread.body["agents"].items()}
    shown["feed"] = scene.named((await get("/v1/messages?limit=1000")).body["messages"])
    for surface, path in {
        "history": f"/v1/rooms/{ROOM}/messages?limit=1000",
        "history of the thread": f"/v1/rooms/{ROOM}/messages?limit=1000&thread_id={THREAD}",
        "thread": f"/v1/threads/{THREAD}?limit=1000",
        "search": "/v1/search?q=needle&limit=200",
        "search in the room": f"/v1/search?q=needle&limit=200&room={ROOM}",
        "search by sender": f"/v1/search?q=needle&limit=200&sender={quote(scene.who['sender'].handle)}",
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
        answer = {"body": "never stored", "in_reply_to": what.id}
        reply = await who.party.post(f"/v1/rooms/{NOBODYS}/messages", answer)
        shown[f"answering {name}"] = reply.code
    for surface, how in {"poll": {"ack": "lease"}, "poll again": {}}.items():
        polled = (await who.party.post("/v1/poll", {"limit": 1000, **how})).body
        shown[surface] = scene.named(message for room in polled["rooms"] for message in room["messages"])
    return shown


def _receipt(body: dict[str, Any]) -> tuple[set[str], set[str]]:
    receipt = body["receipt"]
    waits = {each["agent"] for each in (*receipt["unread_by"], *receipt["read_by"])}
    return {each["agent"] for each in receipt["accepted"]}, waits


async def asked_by_tools(scene: Scene, who: Who) -> Shown:
    """What a model at its tools is shown: the same surfaces, under the same names."""
    shown: Shown = {}
    async with model(who.party) as tool:
        for surface, (name, wanted) in {
            "history": ("read_conv", {"room": ROOM}),
            "history of the thread": ("read_conv", {"room": ROOM, "thread_id": THREAD}),
            "thread": ("read_conv", {"thread_id": THREAD}),
            "search": ("search_convs", {"q": "needle"}),
            "search in the room": ("search_convs", {"q": "needle", "room": ROOM}),
            "search by sender": ("search_convs", {"q": "needle", "sender": scene.who["sender"].handle}),
        }.items():
            found = await every_page(tool, name, "messages", wanted | {"limit": 200})
            shown[surface] = found if isinstance(found, str) else scene.named(found)
        members = await every_page(tool, "who", "members", {"room": ROOM})
        shown["members"] = members if isinstance(members, str) else {each["agent"] for each in members}
        for surface, name in {"rooms mine": "list_convs", "rooms all": "list_all_convs"}.items():
            rooms = await every_page(tool, name, "rooms", {})
            assert not isinstance(rooms, str)
            shown[surface] = [(room["room"], room["member"], room["unread"]) for room in rooms]
        for name, what in scene.what.items():
            status = await tool("message_status", id=what.id)
            shown[f"message {name}"] = status.code or _receipt(status.data)
        for surface in ("poll", "poll again"):
            shown[surface] = scene.named(await polled_whole(tool))
    return shown


async def every_page(tool: Model, name: str, key: str, wanted: dict[str, Any]) -> list[dict[str, Any]] | str:
    """The rows of all pages, or the code of the refusal."""
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        page = await tool(name, **wanted, **cursor)
        if page.code is not None:
            return page.code
        found += page.data[key]
        if page.data["next_cursor"] is None:
            return found
        cursor = {"cursor": page.data["next_cursor"]}


async def polled_whole(tool: Model) -> list[dict[str, Any]]:
    """What one poll hands over; it has all that waits."""
    page = await tool("poll_convs", limit=1000)
    assert page.data["more"] is False
    return page.messages


def foretold(scene: Scene, who: Who) -> Shown:
    """The same, as the predicate has it."""
    delivered = scene.those(lambda what: is_delivered(who, what))
    fed = scene.those(lambda what: is_fed(who, what))
    readable = scene.those(lambda what: may_read(who, what))
    here = who.realm == "main"
    outside = "not_a_member" if here else "room_not_found"
    in_room = scene.those(lambda what: what.in_room)
    inside = {each.handle for name, each in scene.who.items() if each.member and name != "retired"}
    by_sender = scene.those(lambda what: what.sender is scene.who["sender"])
    counted = {each.handle: waiting(scene, each) for each in counted_for(scene, who)}
    unread = waiting(scene, who)
    standing = (ROOM, who.member, unread.get(ROOM, 0))
    nobodys = (NOBODYS, False, 0)
    shown: Shown = {
        "unread": {handle: rooms for handle, rooms in counted.items() if rooms},
        "feed": fed,
        "poll": delivered,
        "poll again": delivered,
        "history": in_room if who.member else outside,
        "history of the thread": in_room if who.member else outside,
        "members": inside if who.member else outside,
        "thread": readable or "not_found",
        "search": readable,
        "search in the room": readable & in_room,
        "search by sender": readable & by_sender,
        "undelivered": scene.those(lambda what: what.expired and may_see_undelivered(scene, who, what)),
        "rooms mine": [standing] if who.member else [],
        "rooms all": [standing, nobodys] if here else [nobodys],
    }
    for name, what in scene.what.items():
        may = may_read(who, what)
        shown[f"message {name}"] = audience(scene, what) if may else "message_not_found"
        shown[f"answering {name}"] = "not_a_member" if may else "invalid"
    return shown


def counted_for(scene: Scene, who: Who) -> list[Who]:
    """Whose unread a caller is told: their own; the bare box that of every session, too."""
    box = [each for name, each in scene.who.items() if name != "retired" and each.realm == who.realm]
    return [each for each in box if each is who or (who.kind == "box" and each.box == who.box)] or [who]


def waiting(scene: Scene, who: Who) -> dict[str, int]:
    """How much waits for somebody, by room."""
    rooms = sorted(what.room for what in scene.what.values() if is_delivered(who, what))
    return {room: len(list(group)) for room, group in itertools.groupby(rooms)}


def may_see_undelivered(scene: Scene, who: Who, what: What) -> bool:
    """Who said it, their bare box; of those who are gone, every person of the realm."""
    by = what.sender
    if by is None or who.realm != by.realm:
        return False
    gone = who.kind == "person" and by is scene.who["retired"]
    return who is by or gone or (who.kind == "box" and who.box == by.box)


def audience(scene: Scene, what: What) -> tuple[set[str], set[str]]:
    """For whom it was when it was said, and those with whoever was given it since: who left stays named."""
    left = scene.who["left"]
    lost = {left} if what.in_room and matches(left, what) and hears(left, what) else set()
    then = {each for each in scene.who.values() if each.briefed is None and is_for(each, what)} | lost
    since = {each for each in scene.who.values() if each.briefed is not None and is_delivered(each, what)}
    return {each.handle for each in then}, {each.handle for each in then | since}


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
    assert len(every) * len(every[0]) > 3000


async def test_a_model_is_shown_the_same(scene: Scene) -> None:
    asking = {name: who for name, who in scene.who.items() if name != "retired"}
    every = await asyncio.gather(*(asked_by_tools(scene, who) for who in asking.values()))
    wrong = {
        f"{name} / {surface}": (answer, expected)
        for (name, who), shown in zip(asking.items(), every, strict=True)
        for surface, expected in foretold(scene, who).items()
        if (answer := shown.get(surface, expected)) != expected
    }
    assert wrong == {}
    assert len(every) * len(every[0]) > 1500


async def test_who_is_nobody_in_the_realm_is_shown_nothing(scene: Scene) -> None:
    some = scene.what["room, to the room, by sender"].id
    paths = (
        "/v1/unread",
        "/v1/rooms",
        "/v1/undelivered",
        "/v1/messages",
        f"/v1/messages/{some}",
        f"/v1/threads/{THREAD}",
        "/v1/search?q=needle",
        f"/v1/rooms/{ROOM}/messages",
        f"/v1/rooms/{ROOM}/members",
    )
    for token in (None, "wrong", OPERATOR):
        nobody = replace(scene.who["sender"].party, token=token)
        replies = [await nobody.get(path) for path in paths] + [await nobody.post("/v1/poll", {})]
        assert {reply.status for reply in replies} == {401}, token


async def test_who_comes_back_to_life_reads_what_its_memberships_let_it(scene: Scene) -> None:
    who = scene.who["retired"]
    shown, expected = await asked(scene, who), foretold(scene, who)
    assert shown == expected | {"members": expected["members"] | {who.handle}}
