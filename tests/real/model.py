"""A loopback stand-in for the models behind the agent programs. What it is told decides what it answers.

- `TOOL <command>`: it asks to run the command, which opens a permission dialog unless a setting allows it.
- `CALL <tool> [<arguments as JSON>]`: it calls the tool.
- A text that names `readyroom poll` in backquotes, as /catchup or a native wake: it asks to run just that.
- The result of a command, or any other text: `ACK` and the beginning of it.

Like a model, it is told the whole conversation each time; only what came after its own last word counts.
"""

from __future__ import annotations

import html
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any, cast

from notifier.programs.base import HANDED

_REMINDERS = (
    "<system-reminder>",
    "<hook_prompt",
    "<environment_context>",
    "<session_context>",
    "<hook_context>",
)
_TOOL = re.compile(r"^TOOL (.+)$", re.MULTILINE)
_CALL = re.compile(r"^CALL (\S+)(?: (.+))?$", re.MULTILINE)
_POLL = re.compile(r"`(readyroom poll[^`]*)`")
_WOKEN = re.compile(r'from command "FileChanged": .*?`(readyroom poll[^`]*)`', re.DOTALL)
_numbers = count(1)


@dataclass
class Heard:
    """What one request brought since the model's last word.

    Attributes:
        told: the newest text from the human's side; empty when a command's result came after it.
        result: what the commands printed.
        reminders: what the program or its hooks added by themselves.
    """

    told: str = ""
    result: str = ""
    reminders: str = ""

    @classmethod
    def in_request(cls, request: dict[str, Any]) -> Heard:
        """Read a request of the messages API."""
        messages = request.get("messages", [])
        spoken = [n for n, message in enumerate(messages) if message["role"] == "assistant"]
        heard = cls()
        for message in messages[spoken[-1] + 1 if spoken else 0 :]:
            for block in _blocks(message["content"]):
                heard._take(block)
        return heard

    @classmethod
    def in_responses_request(cls, request: dict[str, Any]) -> Heard:
        """Read a request of the responses API."""
        items = request.get("input", [])
        spoken = [n for n, item in enumerate(items) if _is_its_own(item)]
        heard = cls()
        for item in items[spoken[-1] + 1 if spoken else 0 :]:
            if item["type"] == "function_call_output":
                heard._take({"type": "tool_result", "content": str(item["output"])})
            elif item.get("role") == "user":
                for block in item["content"]:
                    heard._take({"type": "text", "text": block.get("text", "")})
            elif item.get("role") == "developer":
                heard.reminders += "".join(block.get("text", "") for block in item["content"])
        return heard

    @classmethod
    def in_contents_request(cls, request: dict[str, Any]) -> Heard:
        """Read a request of the contents API."""
        contents = request.get("contents", [])
        spoken = [n for n, content in enumerate(contents) if content["role"] == "model"]
        heard = cls()
        for content in contents[spoken[-1] + 1 if spoken else 0 :]:
            for part in content["parts"]:
                if "functionResponse" in part:
                    result, tag, added = str(part["functionResponse"]["response"]).partition("<hook_context>")
                    heard._take({"type": "tool_result", "content": result})
                    heard.reminders += html.unescape(tag + added)
                elif part.get("text", "").startswith(HANDED):
                    heard.reminders += part["text"]
                else:
                    if not part.get("text", "").lstrip().startswith(_REMINDERS):
                        heard.told = ""  # a prompt that was cancelled stays before the next one, unanswered
                    heard._take({"type": "text", "text": part.get("text", "")})
        return heard

    def _take(self, block: dict[str, Any]) -> None:
        if block["type"] == "tool_result":
            self.result += _text(block.get("content", ""))
            self.told = ""
        elif block["type"] == "text" and block["text"].lstrip().startswith(_REMINDERS):
            self.reminders += html.unescape(block["text"])
        elif block["type"] == "text":
            self.told += block["text"] + "\n"


@dataclass
class Model:
    """The stand-in while it is served.

    Attributes:
        url: where it listens.
        heard: what each request of the conversation brought, oldest first.
        strangers: requests that are none of a model's, such as a proxy's CONNECT to somewhere outside.
    """

    url: str
    heard: list[Heard] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    _held: dict[str, threading.Event] = field(default_factory=dict)

    def hold(self, what: str = "") -> None:
        """Think about the next request, or each one that brings this text, until told to go on."""
        self._held[what] = threading.Event()

    def go_on(self, what: str = "") -> None:
        """Answer what was held for this text; without one, everything."""
        for each in [what] if what else list(self._held):
            self._held.pop(each).set()

    def was_told(self, text: str) -> bool:
        """Whether a human's prompt held `text`."""
        return any(text in heard.told for heard in self.heard)

    def native_wakes(self) -> int:
        """How often it was told that the session's flag has changed."""
        return sum(bool(_WOKEN.search(heard.reminders)) for heard in self.heard)

    def was_shown(self, text: str) -> bool:
        """Whether a command's result held `text`."""
        return any(text in heard.result for heard in self.heard)

    def was_handed(self, text: str) -> bool:
        """Whether a hook added `text`."""
        return any(text in heard.reminders for heard in self.heard)

    def times_told(self, text: str) -> int:
        """How often `text` has come, by whatever way."""
        return sum("\n".join((heard.told, heard.result, heard.reminders)).count(text) for heard in self.heard)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The content block that answers a request of the messages API."""
        return self._answer(request, Heard.in_request(request))

    def answer_with_item(self, request: dict[str, Any]) -> dict[str, Any]:
        """The output item that answers a request of the responses API."""
        block = self._answer(request, Heard.in_responses_request(request))
        if block["type"] == "text":
            said = {"type": "output_text", "text": block["text"], "annotations": []}
            return {"type": "message", "id": f"msg_{next(_numbers)}", "role": "assistant", "content": [said]}
        number = next(_numbers)
        wanted = {
            "cmd": block["input"]["command"],
            "sandbox_permissions": "require_escalated",
            "justification": "as told",
        }
        return {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": f"call_{number}",
            "name": "exec_command",
            "arguments": json.dumps(wanted),
        }

    def answer_with_part(self, request: dict[str, Any]) -> dict[str, Any]:
        """The part that answers a request of the contents API."""
        block = self._answer(request, Heard.in_contents_request(request))
        if block["type"] == "text":
            return {"text": block["text"]}
        name = "run_shell_command" if block["name"] == "Bash" else block["name"]
        return {"functionCall": {"name": name, "args": block["input"]}}

    def _answer(self, request: dict[str, Any], heard: Heard) -> dict[str, Any]:
        if not request.get("tools"):  # an errand beside the conversation, such as finding a title
            return _say("ACK")
        self.heard.append(heard)
        for what, going in list(self._held.items()):
            if what in f"{heard.told}{heard.result}":
                going.wait(60)
        if called := _CALL.search(heard.told):
            return _call(called[1], json.loads(called[2] or "{}"))
        asked = _TOOL.search(heard.told) or _POLL.search(heard.told) or _WOKEN.search(heard.reminders)
        if asked:
            return _run(asked[1].strip())
        return _say(f"ACK {' '.join((heard.told or heard.result).split())[:60]}")


@contextmanager
def served() -> Iterator[Model]:
    """Serve a stand-in on a free loopback port."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.model = Model(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server.model
    finally:
        server.model.go_on()
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    model: Model

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is none of our concern."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    @property
    def _model(self) -> Model:
        return cast(_Server, self.server).model

    def do_HEAD(self) -> None:
        self._send(b"", "application/json")

    def do_GET(self) -> None:
        self._strange()

    def do_CONNECT(self) -> None:
        self._strange()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        match self.path.partition("?")[0]:
            case "/v1/messages":
                self._converse(json.loads(body))
            case "/v1/responses":
                item = self._model.answer_with_item(json.loads(body))
                self._send("".join(map(_event, _stream_item(item))).encode(), "text/event-stream")
            case "/v1/messages/count_tokens":
                self._send(b'{"input_tokens": 10}', "application/json")
            case path if path.endswith(("GenerateContent", ":generateContent")):
                self._answer_contents(json.loads(body))
            case _:
                self._strange()

    def _answer_contents(self, request: dict[str, Any]) -> None:
        content = {"role": "model", "parts": [self._model.answer_with_part(request)]}
        answer = {
            "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        }
        if ":stream" in self.path:
            self._send(f"data: {json.dumps(answer)}\n\n".encode(), "text/event-stream")
        else:
            self._send(json.dumps(answer).encode(), "application/json")

    def _converse(self, request: dict[str, Any]) -> None:
        block = self._model.answer(request)
        message = _message(request.get("model", "stand-in"), block)
        if request.get("stream"):
            self._send("".join(map(_event, _stream(message, block))).encode(), "text/event-stream")
        else:
            self._send(json.dumps({**message, "content": [block]}).encode(), "application/json")

    def _strange(self) -> None:
        self._model.strangers.append(f"{self.command} {self.path}")
        self._send(b"{}", "application/json", status=404)

    def _send(self, body: bytes, kind: str, *, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _blocks(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _text(content: str | list[dict[str, Any]]) -> str:
    return "".join(block["text"] for block in _blocks(content) if block["type"] == "text")


def _say(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _run(command: str) -> dict[str, Any]:
    return _call("Bash", {"command": command, "description": "as told"})


def _call(tool: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{next(_numbers)}", "name": tool, "input": given}


def _message(model: str, block: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": f"msg_{next(_numbers)}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": "tool_use" if block["type"] == "tool_use" else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }


def _stream(message: dict[str, Any], block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"type": "message_start", "message": {**message, "stop_reason": None}}
    if block["type"] == "text":
        start = {**block, "text": ""}
        delta = {"type": "text_delta", "text": block["text"]}
    else:
        start = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    yield {"type": "content_block_start", "index": 0, "content_block": start}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ending, "usage": {"output_tokens": 5}}
    yield {"type": "message_stop"}


def _is_its_own(item: dict[str, Any]) -> bool:
    return item["type"] in ("function_call", "reasoning") or item.get("role") == "assistant"


def _stream_item(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    response = {"id": f"resp_{next(_numbers)}"}
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    yield {"type": "response.created", "response": response}
    yield {"type": "response.output_item.added", "output_index": 0, "item": item}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": {**response, "usage": usage}}


def _event(data: dict[str, Any]) -> str:
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n"
