"""What was said is in the record alone: not on the nerve's wire, in no log, metric or process's arguments."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import psutil
import pytest
import socketio

from readyroom.demo.children import READYROOM
from readyroom.demo.play import agent_program, launched
from readyroom.demo.stage import Box, Stage, build, clean_environment
from readyroom.demo.windows import PtyWindow
from tests.http.models import model
from tests.http.running import Party, running, settings_for, until

SECRET = "zebra-quark"
"""In everything that is said here. Rooms and handles, which a nudge may name, do not have it."""

ROOM = "api"
SECONDS = 60.0

Say = Callable[[Party, Party], Awaitable[Any]]


def secrets(path: str) -> dict[str, Any]:
    """Every field in which somebody can say something."""
    return {
        "body": f"{SECRET} body {path}",
        "payload": {
            "summary": f"{SECRET} summary",
            "content": {SECRET: [f"{SECRET} content"]},
            "output_schema": {"title": f"{SECRET} schema"},
        },
        "client_id": f"{SECRET}-{path}",
        "thread_id": f"{SECRET}-thread-{path}",
    }


async def in_a_room(writer: Party, _: Party) -> None:
    said = await writer.post(f"/v1/rooms/{ROOM}/messages", secrets("room"))
    assert said.status == 201, said


async def again(writer: Party, _: Party) -> None:
    repeated = await writer.post(f"/v1/rooms/{ROOM}/messages", secrets("room"))
    assert repeated.status == 200, repeated
    other = await writer.post(f"/v1/rooms/{ROOM}/messages", secrets("room") | {"body": f"{SECRET} other"})
    assert other.status == 409, other


async def to_an_address(writer: Party, reader: Party) -> None:
    assert (await writer.post("/v1/messages", {"to": reader.agent, **secrets("address")})).status == 201


async def what_is_refused(writer: Party, _: Party) -> None:
    for wrong in (
        {"type": f"No {SECRET}"},
        {"to": f"{SECRET}-nobody"},
        {"in_reply_to": 1 << 40},
        {SECRET: 1},
    ):
        refused = await writer.post(f"/v1/rooms/{ROOM}/messages", secrets("refused") | wrong)
        assert 400 <= refused.status < 500, refused
    raw = f'{{"body": "{SECRET}", "payload": '.encode()
    assert (await writer.call("POST", f"/v1/rooms/{ROOM}/messages", raw=raw)).status == 400


async def a_result_that_does_not_fit(writer: Party, reader: Party) -> None:
    asked = {"to": reader.agent, "type": "task.request", "body": f"{SECRET} ask"}
    schema = {"type": "object", "required": [SECRET]}
    sent = await writer.post("/v1/messages", asked | {"payload": {"output_schema": schema}})
    result = {"to": writer.agent, "type": "task.result", "in_reply_to": sent.body["message"]["id"]}
    refused = await reader.post(
        "/v1/messages", result | {"body": SECRET, "payload": {"content": {f"{SECRET}-wrong": 1}}}
    )
    assert refused.status == 422, refused


async def relayed_once_too_often(writer: Party, reader: Party) -> None:
    first = {"to": reader.agent, "body": f"{SECRET} hop", "hop_limit": 1, "type": "task.request"}
    sent = await writer.post("/v1/messages", first)
    relay = {"to": writer.agent, "body": f"{SECRET} on", "relay_of": sent.body["message"]["id"]}
    refused = await reader.post("/v1/messages", relay)
    assert refused.status >= 400, refused


async def expired_unread(writer: Party, reader: Party) -> None:
    sent = await writer.post("/v1/messages", {"to": reader.agent, "ttl_seconds": 0.05, **secrets("expired")})
    assert sent.status == 201, sent

    async def reported() -> bool:
        return bool((await writer.get("/v1/undelivered")).body["messages"])

    await until(reported, "the report")


async def read_and_searched(writer: Party, reader: Party) -> None:
    await reader.get(f"/v1/rooms/{ROOM}/messages?thread_id={SECRET}-thread-room")
    await reader.get(f"/v1/search?q={SECRET}")
    await reader.get(f"/v1/threads/{SECRET}-thread-room")
    await writer.get("/v1/messages")


async def with_tools(writer: Party, reader: Party) -> None:
    told = secrets("tools")
    body, payload = told["body"], told["payload"]
    async with model(writer) as ada, model(reader) as bob:
        said = await ada("say", room=ROOM, body=body, payload=payload, client_id=told["client_id"])
        assert said.code is None, said
        assert (await ada("send_message", to=reader.agent, body=body, payload=payload)).code is None
        for wrong in ({SECRET: SECRET}, {"type": f"No {SECRET}"}, {"to": f"{SECRET}-nobody"}):
            assert (await ada("say", room=ROOM, body=body, **wrong)).code is not None
        assert any(SECRET in text for text in (await bob("poll_convs")).texts)
        await bob("read_conv", room=ROOM)
        await bob("read_conv", thread_id=f"{SECRET}-thread-room")
        await bob("search_convs", q=SECRET)
        await bob("message_status", id=said.data["message"]["id"])


PATHS: tuple[Say, ...] = (
    in_a_room,
    again,
    to_an_address,
    what_is_refused,
    a_result_that_does_not_fit,
    relayed_once_too_often,
    with_tools,
    expired_unread,
    read_and_searched,
)


@dataclass
class Tap:
    """A line to the nerve that keeps every byte which comes from there."""

    url: str
    heard: bytearray = field(default_factory=bytearray)


@asynccontextmanager
async def tapped(url: str) -> AsyncIterator[Tap]:
    there = urlsplit(url)
    lines: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_nerve, to_nerve = await asyncio.open_connection(there.hostname, there.port)
        lines.update((writer, to_nerve))
        await asyncio.gather(pump(reader, to_nerve, bytearray()), pump(from_nerve, writer, tap.heard))

    server = await asyncio.start_server(serve, "127.0.0.1")
    tap = Tap(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    try:
        yield tap
    finally:
        server.close()
        for line in lines:
            line.close()
            with contextlib.suppress(OSError):
                await line.wait_closed()


async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter, kept: bytearray) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(65536):
            kept += data
            sink.write(data)
            await sink.drain()
    sink.close()


@asynccontextmanager
async def listening(tap: Tap, token: str, transport: str) -> AsyncIterator[None]:
    """A box's link through the tap, uncompressed, that asks to hear all that it can."""
    client = socketio.AsyncClient(reconnection=False)
    known = asyncio.Event()
    client.on("AUTH_OK", lambda _: known.set())
    await client.connect(tap.url, transports=[transport], headers={"Accept-Encoding": "identity"})
    await client.emit("AUTHENTICATION", {"token": token})
    async with asyncio.timeout(SECONDS):
        await known.wait()
    ear = {"name": transport, "id": transport, "consumer_id": transport}
    await client.emit("CONSUMER", ear)
    for wanted in (
        {"producer": "agent-comms", "event": "msg"},
        {"producer": "TYO-MQ-ALL", "event": "#", "mode": "topic"},
    ):
        await client.emit("SUBSCRIBE", {"consumer": transport, "consumer_id": transport, **wanted})
    await client.call("PING", {})
    try:
        yield
    finally:
        await client.disconnect()


@contextmanager
def arguments_seen() -> Iterator[set[str]]:
    """What stands in the process list meanwhile."""
    seen: set[str] = set()
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.05):
            for process in psutil.process_iter():
                with contextlib.suppress(psutil.Error):
                    seen.add(" ".join(process.cmdline()))

    looker = threading.Thread(target=look)
    looker.start()
    try:
        yield seen
    finally:
        over.set()
        looker.join()


def party(stage: Stage, http: aiohttp.ClientSession, box: Box, agent: str | None = None) -> Party:
    return Party(http, stage.url, box.token(), agent)


async def on_a_command_line(box: Box, *arguments: str) -> None:
    done = await asyncio.create_subprocess_exec(
        *READYROOM,
        *arguments,
        env=clean_environment() | box.own,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    shown, _ = await done.communicate(f"{SECRET} on standard input".encode())
    assert done.returncode == 0, shown


@asynccontextmanager
async def woken_agent(box: Box) -> AsyncIterator[None]:
    """An agent program at rest, which is woken and reads."""
    program = agent_program(room=ROOM, log=box.folder / "agent.jsonl")
    command = launched(program, role="reader", room=ROOM)
    window = PtyWindow(command, env=clean_environment() | box.own, show=lambda _: None)
    try:
        yield
        await until(lambda: any(event["event"] == "read" for event in box.journal.events()), "the reading")
    finally:
        window.close()


def files_under(folder: Path) -> Iterator[Path]:
    """Every file that our programs wrote, but PostgreSQL's own, and the agent's own terminal."""
    for path in folder.rglob("*"):
        if path.is_file() and "postgres" not in path.parts and path.stat().st_size < 10_000_000:
            yield path


@pytest.mark.long
async def test_nothing_that_was_said_leaves_the_record_but_to_its_readers(tmp_path: Path) -> None:
    async with contextlib.AsyncExitStack() as stack:
        stage = await stack.enter_async_context(
            build(nerve=True, sweep_seconds=60, notifier_options=("--debug",), parent=tmp_path)
        )
        desk, lab = stage.boxes
        http = await stack.enter_async_context(aiohttp.ClientSession())
        writer, reader = [
            box.speaking_as((await box.post("/v1/checkin", {})).body["agent"])
            for box in (party(stage, http, desk), party(stage, http, lab))
        ]
        for one in (writer, reader):
            await one.post("/v1/rooms", {"name": ROOM})
        taps = []
        for transport in ("polling", "websocket"):
            for box in stage.boxes:
                taps.append(await stack.enter_async_context(tapped(stage.url)))
                await stack.enter_async_context(listening(taps[-1], box.token(), transport))
        seen = stack.enter_context(arguments_seen())
        async with woken_agent(lab):
            for say in PATHS:
                await say(writer, reader)
            await on_a_command_line(desk, "join", ROOM)
            await on_a_command_line(desk, "say", ROOM)
            await on_a_command_line(desk, "send", str(reader.agent))
        await writer.post(f"/v1/rooms/{ROOM}/messages", {"body": SECRET})
        await told_everywhere(taps)
        places = {f"the nerve's wire, tap {number}": bytes(tap.heard) for number, tap in enumerate(taps)}
        places["a process's arguments"] = "\n".join(seen).encode()
        places["metrics"] = (await metrics(stage, http)).encode()
        places |= {
            str(path.relative_to(stage.folder)): path.read_bytes() for path in files_under(stage.folder)
        }
        assert {place for place, content in places.items() if SECRET.encode() in content} == set()
        assert b"agent-comms" in places["the nerve's wire, tap 3"]
        assert any("demo.agent" in arguments for arguments in seen)
        assert any(place.endswith("notifier.log") and content for place, content in places.items())


async def told_everywhere(taps: list[Tap]) -> None:
    """Every tap has heard a nudge: what it holds was sent in a form in which a secret would be seen."""
    await until(lambda: all(b'"conv":"api"' in tap.heard for tap in taps), "a nudge on every line")


async def metrics(stage: Stage, http: aiohttp.ClientSession) -> str:
    async with http.get(f"{stage.url}/metrics") as answer:
        assert answer.status == 200
        return await answer.text()


@pytest.mark.long
async def test_not_even_the_records_most_talkative_log_tells_what_was_said(
    database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running(settings_for(database_url, tmp_path)) as record:
        writer, reader = [await record.session(await record.box(name)) for name in ("work3", "devmac")]
        for one in (writer, reader):
            await one.post("/v1/rooms", {"name": ROOM})
        for say in PATHS:
            await say(writer, reader)
    shown = json.dumps(capsys.readouterr())
    assert "request_answered" in shown
    assert SECRET not in shown
