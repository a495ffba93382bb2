"""A database of every release comes up to date, and is the same record afterwards.

A release's folder holds a small dump (`dump.sql`, plain SQL of pg_dump), the commit that made it (`commit`),
and what its record answered (`answers.json`).
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from deploy.postgres import Postgres
from deploy.schema import upgrade
from tests.http.running import Running, running, settings_for

RELEASES = Path(__file__).parent / "releases"
AGED = Path(__file__).with_name("aged.sql")


def restored(postgres: Postgres, database_url: str, dump: Path) -> None:
    """Put a dump into an empty database, as if it had just been made."""
    name = urlsplit(database_url).path.lstrip("/")
    place = ["-q", "-h", str(postgres.places.run), "-U", "readyroom", "-d", name, "-v", "ON_ERROR_STOP=1"]
    for script in (dump, AGED):
        postgres.programs.run(["psql", *place], text=script.read_text(encoding="utf-8"))


COUNTS = ("unread", "addressed", "urgent", "rooms")


async def answers(record: Running) -> dict[str, Any]:
    """What a record says of the boxes, rooms and messages in it; moves nothing."""
    made = await record.operator.post("/v1/admin/boxes/devmac/tokens")
    assert made.status == 201, made
    box = record.holding(made.body["token"])
    agents = (await box.get("/v1/agents?retired=true")).body["agents"]
    reader = box.speaking_as("devmac-agent#1")
    rooms = (await reader.get("/v1/rooms")).body["rooms"]
    unread = (await box.get("/v1/unread")).body["agents"]
    history = (await reader.get(f"/v1/rooms/{rooms[0]['room']}/messages?limit=5")).body["messages"]
    return {
        "agents": [agent["agent"] for agent in agents],
        "unread": {agent: {field: row[field] for field in COUNTS} for agent, row in unread.items()},
        "rooms": [[room["room"], room["members"], room["unread"]] for room in rooms],
        "history": [[message["id"], message["sender"], message["body"]] for message in history],
    }


@pytest.mark.parametrize("release", sorted(path.name for path in RELEASES.iterdir()))
async def test_a_release_comes_up_to_date(
    release: str, postgres: Postgres, empty_database_url: str, tmp_path: Path
) -> None:
    folder = RELEASES / release
    assert len((folder / "commit").read_text().strip()) == 40
    restored(postgres, empty_database_url, folder / "dump.sql")
    await asyncio.to_thread(upgrade, empty_database_url)
    expected = json.loads((folder / "answers.json").read_text(encoding="utf-8"))
    async with running(settings_for(empty_database_url, tmp_path)) as record:
        assert await answers(record) == expected["answers"]
        minted = await record.holding(await token(record)).post("/v1/checkin", {})
        assert minted.body["agent"] == expected["next"]


async def token(record: Running) -> str:
    """Another valid token of the box, after an earlier one was revoked."""
    box = (await record.operator.get("/v1/admin/boxes")).body["boxes"]
    held = next(each for each in box if each["name"] == "devmac")["tokens"]
    await record.operator.delete(f"/v1/admin/tokens/{held[0]['token_id']}")
    made = await record.operator.post("/v1/admin/boxes/devmac/tokens")
    value: str = made.body["token"]
    return value
