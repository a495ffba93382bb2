"""Says that wait together are stored together, and one that cannot be stored fails alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import asyncpg
import pytest

from api.db import Database, Refused
from api.errors import BadField, RecordDown, RoomNotFound, ServiceError
from api.models import Caller, Details
from api.services import realms, sessions
from api.services.drafts import refusal
from api.services.identity import Identity
from api.services.metrics import Metrics
from api.services.rooms import Rooms
from api.services.saying import Draft, Sayings, Stored
from api.services.tokens import hash_of
from api.store.messages import COLUMNS
from tests.conftest import run_sql

TOGETHER = 32
DEADLINE = 20.0


@dataclass(frozen=True)
class Talk:
    """A room with one who speaks in it, and one who never joined."""

    db: Database
    sayings: Sayings
    speaker: Caller
    stranger: Caller
    conv_id: int

    def draft(self, body: str | None, **changes: Any) -> Draft:
        """What `speaker` says in the room; `changes` are values of COLUMNS."""
        plain = {
            "realm_id": self.speaker.realm_id,
            "conv_id": self.conv_id,
            "sender_id": self.speaker.agent_id,
            "sender_kind": self.speaker.kind,
            "box_id": self.speaker.box_id,
            "type": "note",
            "body": body,
            "size": len(body or ""),
            "urgent": False,
            "hop_limit": 5,
            "late": False,
            "in_room": True,
        }
        values = plain | changes
        return Draft(values["conv_id"], tuple(values.get(name) for name, _ in COLUMNS))

    async def together(self, *drafts: Draft) -> list[Stored | BaseException | None]:
        """Say all of them in one turn of the event loop."""
        return await asyncio.gather(*map(self.sayings.store, drafts), return_exceptions=True)

    async def bodies(self) -> list[str]:
        """What is stored, in the order of ids."""
        rows = await self.db.fetch("SELECT body FROM conv_messages WHERE sender_id IS NOT NULL ORDER BY id")
        return [row["body"] for row in rows]


@pytest.fixture
async def talk(database_url: str) -> AsyncIterator[Talk]:
    """A talk in a fresh database."""
    db = Database(database_url)
    identity = Identity(db, Metrics(), handles_per_box=100)
    made = await realms.add_holder(db, realm="main", name="work3", kind="box")
    token = hash_of(made.token.encode())

    async def calling(handle: str | None) -> Caller:
        return await identity.caller(token, handle, lambda _: None)

    box = await calling(None)
    speaker, stranger = [await calling((await _check_in(db, box)).agent) for _ in range(2)]
    rooms = Rooms(db, stale_seconds=180, rooms_per_realm=100, members_per_room=100)
    await rooms.start(speaker, "api", title=None, backfill=0)
    sayings = Sayings(db, stale_seconds=180, refusal=refusal)
    yield Talk(db, sayings, speaker, stranger, await rooms.conv_id(speaker, "api"))
    await db.close()


async def _check_in(db: Database, box: Caller) -> sessions.CheckedIn:
    return await sessions.check_in(db, caller=box, role=None, details=Details(), key=None)


def numbered(count: int) -> list[str]:
    return [f"m{number:02}" for number in range(count)]


REFUSED: list[tuple[str, dict[str, Any], type[ServiceError]]] = [
    ("an empty body", {"body": ""}, BadField),
    ("a kind that there is not", {"sender_kind": "robot"}, BadField),
    ("a payload that is no object", {"payload": "[1]"}, BadField),
    ("a NUL inside the payload", {"payload": '{"summary": "\\u0000"}'}, BadField),
    ("a payload that is no JSON", {"payload": "{"}, BadField),
    ("a number too large for its column", {"in_reply_to": 2**63}, BadField),
    ("half of a surrogate pair", {"thread_id": "\ud800"}, BadField),
    ("a room that is gone", {"conv_id": 10**9, "in_room": False}, RoomNotFound),
]


@pytest.mark.parametrize(("what", "changes", "kind"), REFUSED, ids=[what for what, _, _ in REFUSED])
async def test_of_32_at_once_the_one_that_the_database_refuses_fails_alone(
    talk: Talk, what: str, changes: dict[str, Any], kind: type[ServiceError]
) -> None:
    bodies = numbered(TOGETHER)
    drafts = [talk.draft(body) for body in bodies]
    drafts[17] = talk.draft(**{"body": "refused", **changes})
    answers = await talk.together(*drafts)
    assert type(answers.pop(17)) is kind, what
    del bodies[17]
    assert [isinstance(answer, Stored) for answer in answers] == [True] * (TOGETHER - 1)
    assert await talk.bodies() == bodies


async def test_all_of_32_at_once_can_be_refused(talk: Talk) -> None:
    answers = await talk.together(*(talk.draft("") for _ in range(TOGETHER)))
    assert [type(answer) for answer in answers] == [BadField] * TOGETHER
    assert await talk.bodies() == []


async def test_a_refusal_that_nobody_foresaw_reaches_its_sender_and_the_others_go_on(
    talk: Talk, database_url: str
) -> None:
    await run_sql(
        database_url,
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$",
        "CREATE TRIGGER refuse BEFORE INSERT ON conv_messages FOR EACH ROW WHEN (NEW.body = 'm03') "
        "EXECUTE FUNCTION refuse()",
    )
    async with asyncio.timeout(DEADLINE):
        answers = await talk.together(*map(talk.draft, numbered(TOGETHER)))
        later = await talk.together(*map(talk.draft, ("later 1", "later 2")))
    assert isinstance(answers.pop(3), Refused)
    assert all(isinstance(answer, Stored) for answer in answers + later)
    assert len(await talk.bodies()) == TOGETHER + 1


async def test_who_is_no_member_fails_alone(talk: Talk) -> None:
    drafts = [talk.draft(body) for body in numbered(TOGETHER)]
    drafts[5] = talk.draft("let me in", sender_id=talk.stranger.agent_id)
    answers = await talk.together(*drafts)
    assert answers.pop(5) is None
    assert all(isinstance(answer, Stored) for answer in answers)
    assert "let me in" not in await talk.bodies()


async def test_within_a_batch_ids_follow_the_order_of_the_calls(talk: Talk) -> None:
    answers = await talk.together(*map(talk.draft, numbered(TOGETHER)))
    ids = [answer.id for answer in answers if isinstance(answer, Stored)]
    assert ids == sorted(set(ids))
    assert len(ids) == TOGETHER


async def test_twins_of_one_client_id_in_one_batch_are_one_message(talk: Talk) -> None:
    answers = await talk.together(*(talk.draft("once", client_id="c1") for _ in range(TOGETHER)))
    assert sorted(answer is None for answer in answers) == [False] + [True] * (TOGETHER - 1)
    assert await talk.bodies() == ["once"]


async def test_twins_through_two_replicas_are_one_message(talk: Talk, database_url: str) -> None:
    other = Database(database_url)
    replica = replace(talk, sayings=Sayings(other, stale_seconds=180, refusal=refusal))
    twins = [talk.draft(body, client_id=body) for body in numbered(TOGETHER)]
    both = await asyncio.gather(talk.together(*twins), replica.together(*reversed(twins)))
    await other.close()
    answers = [answer for answers in both for answer in answers]
    assert sum(isinstance(answer, Stored) for answer in answers) == TOGETHER
    assert answers.count(None) == TOGETHER
    assert sorted(await talk.bodies()) == numbered(TOGETHER)


async def test_when_postgresql_goes_away_all_of_a_batch_hear_it_and_nothing_is_stored(
    talk: Talk, database_url: str
) -> None:
    blocker = await asyncpg.connect(database_url)
    await blocker.execute("SELECT pg_advisory_lock($1::bigint)", talk.conv_id)
    saying = asyncio.create_task(talk.together(*map(talk.draft, numbered(TOGETHER))))
    async with asyncio.timeout(DEADLINE):
        while not (cut := await blocker.fetch(CUT_WHO_WAITS)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        answers = await saying
    assert [row["done"] for row in cut] == [True]
    assert [type(answer) for answer in answers] == [RecordDown] * TOGETHER
    await blocker.close()
    again = await talk.together(*map(talk.draft, numbered(TOGETHER)))
    assert all(isinstance(answer, Stored) for answer in again)
    assert await talk.bodies() == numbered(TOGETHER)


CUT_WHO_WAITS = """
    SELECT pg_terminate_backend(pid) AS done FROM pg_locks
     WHERE locktype = 'advisory' AND NOT granted
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


async def test_who_hangs_up_while_waiting_harms_nobody(talk: Talk) -> None:
    tasks = [asyncio.create_task(talk.sayings.store(talk.draft(body))) for body in numbered(TOGETHER)]
    await asyncio.sleep(0)
    tasks[4].cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(answers.pop(4), asyncio.CancelledError)
    assert all(isinstance(answer, Stored) for answer in answers)
