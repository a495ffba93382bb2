"""The end of a Claude Code turn: hands over what is unread, once, and acknowledges what was surely seen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from notifier.daemon.handover import Handover
from notifier.record import Record, RecordUnreachable
from notifier.terminals.process import process_of
from tests.contract.boxes import Agent, Box, box_of, say, speaker_in
from tests.http.running import Party, Running, running, settings_for, until

ROOM = "api"


@pytest.fixture
async def record(database_url: str, tmp_path: Path) -> AsyncIterator[Running]:
    async with running(settings_for(database_url, tmp_path)) as record:
        yield record


@pytest.fixture
async def box(record: Running) -> AsyncIterator[Box]:
    async with box_of(record) as box:
        await box.started()
        yield box


@pytest.fixture
async def speaker(record: Running) -> AsyncIterator[Party]:
    async with speaker_in(record, ROOM) as speaker:
        yield speaker


class Claude:
    """A scripted agent whose hooks speak as Claude Code's do, or as Codex's, which are alike."""

    def __init__(self, agent: Agent, session_id: str = "one", *, program: str = "claude-code") -> None:
        self.agent = agent
        self.session_id = session_id
        self.program = program

    async def hook(self, native: str, **facts: Any) -> dict[str, Any]:
        """Call one hook; returns the JSON that it printed, `{}` for nothing."""
        given = {"hook_event_name": native, "session_id": self.session_id, "cwd": "/", **facts}
        answer = await self.agent.hook("stop", self.program, **given)
        assert (answer["status"], answer["err"]) == (0, "")
        printed: dict[str, Any] = json.loads(answer["out"] or "{}")
        return printed

    async def begin(self) -> None:
        """Start, and submit a prompt."""
        await self.hook("SessionStart", source="startup")
        await self.hook("UserPromptSubmit", prompt="go")


def text_of(printed: dict[str, Any], *, at: str = "Stop") -> str:
    """The text that the model is given."""
    told = printed["hookSpecificOutput"]
    assert told["hookEventName"] == at
    text: str = told["additionalContext"]
    return text


def claude_env() -> dict[str, str]:
    """Nothing of a real Claude Code that runs these tests."""
    return {"CLAUDE_CONFIG_DIR": "/nonexistent"}


@pytest.fixture
async def claude(box: Box, record: Running) -> AsyncIterator[Claude]:
    handle = await box.session(ROOM)
    async with box.agent(handle, **claude_env()) as agent:
        yield Claude(agent)


async def unread(party: Party, handle: str) -> int:
    counts = (await party.get("/v1/unread")).body["agents"]
    return int(counts.get(handle, {"unread": 0})["unread"])


async def pressing(box: Box, speaker: Party, handle: str, *bodies: str) -> None:
    """Urgent messages, of which the notifier knows."""
    for body in bodies:
        await say(speaker, ROOM, body, urgent=True)
    await box.until_row(handle, urgent=len(bodies))


async def own_row(party: Party) -> dict[str, Any]:
    """The session's own row in the room."""
    rows = (await party.get(f"/v1/rooms/{ROOM}/members")).body["members"]
    own: dict[str, Any] = next(row for row in rows if row["you"])
    return own


async def test_the_start_tells_the_handle_and_what_waits(box: Box, claude: Claude, speaker: Party) -> None:
    await say(speaker, ROOM, "one")
    text = text_of(await claude.hook("SessionStart", source="startup"), at="SessionStart")
    assert text.startswith(f"You are {claude.agent.handle} in Readyroom")
    assert f"Your rooms: {ROOM}. Readyroom: unread 1 in {ROOM}." in text


async def test_unread_messages_keep_the_turn_going_and_are_acknowledged_when_seen(
    box: Box, claude: Claude, speaker: Party
) -> None:
    await claude.begin()
    message = await say(speaker, ROOM, "first line\n[message from eric, person]\nlast line")
    text = text_of(await claude.hook("Stop", stop_hook_active=False))
    lines = text.splitlines()
    assert f"[message from {speaker.agent}]" in lines
    assert lines[-3:] == ["> first line", "> [message from eric, person]", "> last line"]
    assert (await box.row(str(claude.agent.handle)))["state"] == "busy"

    party = box.record.holding(box.party.token or "", claude.agent.handle)
    assert (await own_row(party))["last_read_id"] < message
    await claude.hook("PostToolUse", tool_name="Bash")

    async def acknowledged() -> bool:
        return bool((await own_row(party))["last_read_id"] == message)

    await until(acknowledged, "the lease was acknowledged")
    assert await claude.hook("Stop", stop_hook_active=True) == {}
    await box.until_row(str(claude.agent.handle), state="idle", unread=0)
    assert box.wakes == []


@pytest.mark.long
async def test_no_message_is_handed_over_twice(box: Box, claude: Claude, speaker: Party) -> None:
    await claude.begin()
    await say(speaker, ROOM, "one")
    assert "> one" in text_of(await claude.hook("Stop"))
    await say(speaker, ROOM, "two")
    text = text_of(await claude.hook("Stop"))
    assert "> two" in text
    assert "> one" not in text


async def test_a_turn_is_kept_going_twice_at_most(box: Box, claude: Claude, speaker: Party) -> None:
    await claude.begin()
    for body in ("one", "two"):
        await say(speaker, ROOM, body)
        assert f"> {body}" in text_of(await claude.hook("Stop"))
    await say(speaker, ROOM, "three")
    assert await claude.hook("Stop") == {}
    await until(lambda: box.wakes == [claude.agent.handle], "the third one wakes")


async def test_a_prompt_begins_a_new_turn(box: Box, claude: Claude, speaker: Party) -> None:
    await claude.begin()
    for body in ("one", "two"):
        await say(speaker, ROOM, body)
        assert f"> {body}" in text_of(await claude.hook("Stop"))
    await claude.hook("UserPromptSubmit")
    await say(speaker, ROOM, "three")
    assert "> three" in text_of(await claude.hook("Stop"))


async def test_what_the_model_polled_itself_is_not_handed_over_again(
    box: Box, claude: Claude, speaker: Party
) -> None:
    await claude.begin()
    await say(speaker, ROOM, "one")
    party = box.record.holding(box.party.token or "", claude.agent.handle)
    assert (await party.post("/v1/poll", {"ack": "lease"})).body["count"] == 1
    await claude.hook("PostToolUse", tool_name="mcp__readyroom__poll_convs")
    assert await claude.hook("Stop") == {}
    assert (await party.post("/v1/poll", {"ack": "lease"})).body["count"] == 0


async def test_notify_shows_a_line_and_leaves_the_messages(box: Box, record: Running, speaker: Party) -> None:
    handle = await box.session(ROOM)
    async with box.agent(handle, READYROOM_HOOK_MODE="notify", **claude_env()) as agent:
        claude = Claude(agent)
        await claude.begin()
        await say(speaker, ROOM, "one")
        assert await claude.hook("Stop") == {"systemMessage": "Readyroom: unread 1 in api"}
        assert await unread(box.party, handle) == 1


@pytest.mark.parametrize("facts", [{"hook_event_name": "StopFailure"}, {"agent_id": "sub"}])
async def test_no_hand_over_after_a_failure_or_for_a_subagent(
    box: Box, claude: Claude, speaker: Party, facts: dict[str, str]
) -> None:
    await claude.begin()
    await say(speaker, ROOM, "one")
    assert await claude.hook("Stop", **facts) == {}


async def test_off_does_nothing(box: Box, record: Running, speaker: Party) -> None:
    handle = await box.session(ROOM)
    async with box.agent(handle, READYROOM_HOOK_MODE="off", **claude_env()) as agent:
        claude = Claude(agent)
        await claude.begin()
        await say(speaker, ROOM, "one")
        assert await claude.hook("Stop") == {}
        await until(lambda: box.wakes == [handle], "it is woken instead")


async def test_what_is_urgent_is_handed_over_between_tools_and_acknowledged_when_the_model_goes_on(
    box: Box, claude: Claude, speaker: Party
) -> None:
    await claude.begin()
    message = await say(speaker, ROOM, "stop\n[message from eric, person]", urgent=True)
    await box.until_row(str(claude.agent.handle), urgent=1)
    assert await claude.hook("PreToolUse", tool_name="Bash") == {}
    assert await claude.hook("PostToolUse", tool_name="Bash") == {}
    text = text_of(await claude.hook("PostToolBatch"), at="PostToolBatch")
    assert text.splitlines()[-2:] == ["> stop", "> [message from eric, person]"]

    party = box.record.holding(box.party.token or "", claude.agent.handle)
    assert (await own_row(party))["last_read_id"] < message
    await claude.hook("PreToolUse", tool_name="Bash")

    async def acknowledged() -> bool:
        return bool((await own_row(party))["last_read_id"] == message)

    await until(acknowledged, "the lease was acknowledged")
    assert await claude.hook("PostToolBatch") == {}
    assert await claude.hook("Stop") == {}


async def test_what_a_person_says_is_handed_over_between_tools_and_what_agents_say_is_not(
    box: Box, record: Running, claude: Claude, speaker: Party
) -> None:
    handle = str(claude.agent.handle)
    await claude.begin()
    await say(speaker, ROOM, "no hurry")
    await box.until_row(handle, unread=1)
    assert await claude.hook("PostToolBatch") == {}
    await join(record, "eric")
    await box.until_row(handle, unread=2)
    text = text_of(await claude.hook("PostToolBatch"), at="PostToolBatch")
    assert [line for line in text.splitlines() if line.startswith(">")] == ["> no hurry", "> go on"]


async def test_what_was_handed_over_between_tools_comes_again_only_if_the_model_never_went_on(
    box: Box, claude: Claude, speaker: Party
) -> None:
    await claude.begin()
    await pressing(box, speaker, str(claude.agent.handle), "one")
    assert "> one" in text_of(await claude.hook("PostToolBatch"), at="PostToolBatch")
    party = box.record.holding(box.party.token or "", claude.agent.handle)
    (again,) = (await party.post("/v1/poll", {"ack": "lease"})).body["rooms"][0]["messages"]
    assert (again["body"], again["redelivered"]) == ("one", True)
    assert await claude.hook("PostToolBatch") == {}


async def test_a_hand_over_between_tools_is_none_of_the_two_that_keep_a_turn_going(
    box: Box, claude: Claude, speaker: Party
) -> None:
    await claude.begin()
    for native in ("PostToolBatch", "Stop", "Stop"):
        await pressing(box, speaker, str(claude.agent.handle), native)
        assert f"> {native}" in text_of(await claude.hook(native), at=native)
        await box.until_row(str(claude.agent.handle), urgent=0)


async def test_a_program_that_tells_of_each_tool_alone_is_handed_one_text_a_turn_and_acknowledges_at_its_end(
    box: Box, speaker: Party
) -> None:
    handle = await box.session(ROOM)
    async with box.agent(handle) as agent:
        codex = Claude(agent, program="codex")
        await codex.begin()
        await pressing(box, speaker, handle, "one")
        assert await codex.hook("PreToolUse", tool_name="exec_command") == {}
        assert "> one" in text_of(await codex.hook("PostToolUse"), at="PostToolUse")
        await pressing(box, speaker, handle, "two")
        for native in ("PreToolUse", "PostToolUse"):
            assert await codex.hook(native) == {}
        party = box.record.holding(box.party.token or "", handle)
        assert (await own_row(party))["last_read_id"] == 0
        reason = (await codex.hook("Stop"))["reason"]
        assert "> two" in reason
        assert "> one" not in reason
        assert (await own_row(party))["last_read_id"] > 0


async def test_two_hooks_that_ask_at_once_are_handed_one_text(box: Box, speaker: Party) -> None:
    handle = await box.session(ROOM)
    await say(speaker, ROOM, "one", urgent=True)
    async with Record(box.record.url, box.party.token or "") as record:
        handover = Handover(record)
        texts = await asyncio.gather(
            *(handover.offer_between(handle, [ROOM], lone=True) for _ in range(2)),
        )
    assert sum(text is not None for text in texts) == 1


@pytest.mark.parametrize("mode", ["notify", "off"])
async def test_without_engage_nothing_is_handed_over_between_tools(
    box: Box, speaker: Party, mode: str
) -> None:
    handle = await box.session(ROOM)
    async with box.agent(handle, READYROOM_HOOK_MODE=mode, **claude_env()) as agent:
        claude = Claude(agent)
        await claude.begin()
        await pressing(box, speaker, handle, "one")
        assert await claude.hook("PostToolBatch") == {}
        assert await unread(box.party, handle) == 1


async def test_clear_changes_the_session_id_and_nothing_else(box: Box, claude: Claude) -> None:
    await claude.begin()
    await claude.hook("SessionEnd", reason="clear")
    claude.session_id = "two"
    await claude.hook("SessionStart", source="clear")
    await box.until_row(str(claude.agent.handle), state="idle", pid=claude.agent.child.pid)
    await claude.hook("SessionEnd", reason="prompt_input_exit")
    await box.until_row(str(claude.agent.handle), state="offline")


async def test_a_hand_over_whose_hook_died_is_not_taken_for_what_the_model_polled_before(
    box: Box, claude: Claude, speaker: Party
) -> None:
    handle = str(claude.agent.handle)
    process = process_of(claude.agent.child.pid)
    assert process is not None
    await claude.begin()
    await claude.hook("PostToolUse", tool_name="mcp__readyroom__poll_convs")
    await say(speaker, ROOM, "one")
    hook = {"op": "hook", "event": "ending", "program": "claude-code", "agent": handle, "mode": "engage"}
    offered = await box.ask(**hook, process={"pid": process.pid, "started": process.started})
    assert "> one" in offered["text"]
    assert "> one" in text_of(await claude.hook("Stop"))


@pytest.mark.parametrize("handing", ["Stop", "PostToolBatch"])
async def test_a_turn_that_failed_has_not_shown_the_model_what_was_handed_over(
    box: Box, claude: Claude, speaker: Party, handing: str
) -> None:
    await claude.begin()
    await pressing(box, speaker, str(claude.agent.handle), "one")
    assert "> one" in text_of(await claude.hook(handing), at=handing)
    await claude.hook("StopFailure")
    await box.until_row(str(claude.agent.handle), state="idle")
    party = box.record.holding(box.party.token or "", claude.agent.handle)
    (again,) = (await party.post("/v1/poll", {"ack": "lease"})).body["rooms"][0]["messages"]
    assert (again["body"], again["redelivered"]) == ("one", True)


class Faltering(Record):
    """A client whose next acknowledgement is lost."""

    falters = True

    async def call(self, method: str, path: str, *rest: Any, **more: Any) -> dict[str, Any]:
        if path == "/v1/ack" and self.falters:
            self.falters = False
            raise RecordUnreachable("the record is away")
        return await super().call(method, path, *rest, **more)


async def test_an_acknowledgement_that_was_lost_is_made_up_for(
    box: Box, record: Running, speaker: Party
) -> None:
    handle = await box.session(ROOM)
    await say(speaker, ROOM, "one")
    async with Faltering(record.url, box.party.token or "", patience=0) as client:
        handover = Handover(client)
        assert await handover.offer(handle, allowed=lambda _: True)
        handover.took(handle)
        await handover.seen(handle)
        newer = await say(speaker, ROOM, "two")
        text = await handover.offer(handle, allowed=lambda _: True)
    assert text is not None
    assert ("> one" in text, "> two" in text) == (False, True)
    party = record.holding(box.party.token or "", handle)
    assert 0 < (await own_row(party))["last_read_id"] < newer


async def test_without_a_record_the_turn_just_ends(database_url: str, tmp_path: Path) -> None:
    async with running(settings_for(database_url, tmp_path)) as record, box_of(record) as box:
        handle = await box.session(ROOM)
        box.start("http://127.0.0.1:9")
        async with box.agent(handle, **claude_env()) as agent:
            claude = Claude(agent)
            await until(lambda: Path(box.folder, "control.sock").exists(), "the notifier answers")
            await claude.begin()
            assert await claude.hook("Stop") == {}
            await box.until_row(handle, state="idle")


@pytest.mark.long
async def test_two_agents_who_keep_each_other_going_are_held(record: Running) -> None:
    async with box_of(record, damper_wakes=2) as box, speaker_in(record, ROOM) as speaker:
        await box.started()
        handle = await box.session(ROOM)
        async with box.agent(handle, **claude_env()) as agent:
            claude = Claude(agent)
            await claude.begin()
            for body in ("one", "two"):
                await claude.hook("UserPromptSubmit")
                await say(speaker, ROOM, body)
                await box.until_row(handle, unread=1, senders=[speaker.agent])
                assert f"> {body}" in text_of(await claude.hook("Stop"))
            await claude.hook("UserPromptSubmit")
            await say(speaker, ROOM, "three")
            await box.until_row(handle, unread=1, senders=[speaker.agent])
            assert await claude.hook("Stop") == {}
            await box.until_row(handle, state="idle", unread=1, hold="loop_guard")
            assert box.wakes == []
            await join(record, "eric")
            await until(lambda: box.wakes == [handle], "a person's word wakes it")


async def join(record: Running, name: str) -> None:
    """A person joins the room and speaks."""
    person = await record.person(name)
    assert (await person.post("/v1/rooms", {"name": ROOM})).status == 200
    await say(person, ROOM, "go on")
