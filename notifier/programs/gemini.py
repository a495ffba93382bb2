"""Gemini CLI: its hooks' words, its answers, and what it notes in its transcript."""

from __future__ import annotations

import json
import os
import re
import stat
from datetime import datetime, timedelta
from functools import lru_cache

from notifier.programs.base import HANDED, Told
from notifier.programs.processes import nearest_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from notifier.programs.base import Mode, Program
    from notifier.programs.processes import Seen
    from notifier.sessions import Event, State

NATIVE: dict[str, Event] = {
    "SessionStart": "session-start",
    "BeforeAgent": "prompt",
    "BeforeTool": "tool",
    "AfterTool": "tool",
    "Notification": "dialog-open",
    "AfterAgent": "stop",
    "SessionEnd": "session-end",
}
"""Gemini CLI's event -> ours. `PreCompress` comes before every request, whether it compresses or not."""

_HANDING: dict[Event, str] = {"session-start": "SessionStart", "tool": "AfterTool"}
"""Our events at which a text is handed over beside the turn -> Gemini CLI's."""

_POLL = "_poll_convs"
"""How the name of our MCP tool ends, whatever the server is called there."""

_NO_WORD = "[no response text]"
"""What it gives as the model's answer where the model has said nothing: a request that was cancelled."""

_CANCELLED = b'"type":"info","content":"Request cancelled."'
_SAID = re.compile(rb'"timestamp":"(\d{4}-[0-9:.T-]+)Z","type":"(?:user|gemini)"')
_TAIL = 1 << 22
_RETOLD_WITHIN = timedelta(seconds=1)
"""When it has cancelled a request it writes down the conversation anew, at that moment's time."""


class Gemini:
    """Gemini CLI, as of the versions named in docs/explanation/waking.md."""

    name = "gemini"
    catchup = "Read your unread Readyroom messages: run `readyroom poll`, and act on what it prints."
    reads_stdin = True
    default_mode: Mode = "engage"
    wake = catchup

    def understand(self, event: str, given: Mapping[str, Any]) -> Told | None:
        """Read Gemini CLI's JSON; without it, the event of our own name as it stands."""
        native = given.get("hook_event_name")
        ours = self._ours(native, given) if isinstance(native, str) else _own_name(event)
        if ours is None:
            return None
        return Told(
            ours,
            session_id=_text(given.get("session_id")),
            cwd=_text(given.get("cwd")),
            mode="off" if given.get("prompt_response") == _NO_WORD else None,
            read=native == "AfterTool" and str(given.get("tool_name")).endswith(_POLL),
            boundary=native == "AfterTool",
            lone=native == "AfterTool",
            registry=_text(given.get("transcript_path")),
        )

    def _ours(self, native: str, given: Mapping[str, Any]) -> Event | None:
        match native:
            case "BeforeAgent" if str(given.get("prompt")).startswith(HANDED):
                return None  # the turn goes on with what its end was handed
            case "SessionEnd" if given.get("reason") == "clear":
                return None  # a SessionStart of the same process follows
            case "Notification" if given.get("notification_type") != "ToolPermission":
                return None
            case _:
                return NATIVE.get(native)

    def owner(self, environ: Mapping[str, str], ancestors: Sequence[Seen]) -> tuple[Seen, bool] | None:
        """The Node that calls the hook, or the one that has started it anew and waits for its end."""
        found = nearest_program(ancestors)
        if found is None:
            return None
        above = next((seen for seen in ancestors if seen.pid == found.parent), None)
        if above is not None and (above.name, above.tty) == (found.name, found.tty):
            found = above
        return found, found.tty is not None

    def registry(self, environ: Mapping[str, str], pid: int) -> str | None:
        """None: where its transcript is comes with each hook."""
        return None

    def watches(self, environ: Mapping[str, str]) -> bool:
        """No version does."""
        return False

    def sign(self, registry: str, *, started: int) -> State | None:
        """Idle where a request was cancelled, and nothing was said since; no hook tells of a refused tool."""
        try:
            seen = os.stat(registry)
            regular = stat.S_ISREG(seen.st_mode)
            return _sign(registry, seen.st_mtime_ns, seen.st_size) if regular else None
        except (OSError, ValueError):
            return None

    def context(self, event: Event | None, text: str | None, *, watch: str | None = None) -> str:
        """Additional context at the start and after a tool; at the end a reason to go on, its next prompt."""
        native = _HANDING.get(event) if event is not None else None
        if native is not None:
            return json.dumps({"hookSpecificOutput": {"hookEventName": native, "additionalContext": text}})
        return json.dumps({"decision": "block", "reason": text})

    def notice(self, text: str) -> str:
        """One line on the screen that the model does not see."""
        return json.dumps({"systemMessage": text})


@lru_cache(maxsize=64)
def _sign(transcript: str, changed: int, size: int) -> State | None:
    """Read once for each of its states; it grows with every word that is said."""
    with open(transcript, "rb") as file:
        file.seek(max(0, size - _TAIL))
        tail = file.read()
    before, found, after = tail.rpartition(_CANCELLED)
    at = re.search(rb'"timestamp":"([0-9:.T-]+)Z",$', before)
    if not found or at is None:
        return None
    cancelled = _time(at[1])
    lines = (line for line in after.split(b"\n") if not line.startswith(b'{"$set"'))
    said = (_time(each[1]) for line in lines for each in _SAID.finditer(line))
    return None if any(time - cancelled > _RETOLD_WITHIN for time in said) else "idle"


def _time(text: bytes) -> datetime:
    return datetime.fromisoformat(text.decode("ascii"))


def _own_name(event: str) -> Event | None:
    return next((ours for ours in NATIVE.values() if ours == event), None)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


PROGRAM: Program = Gemini()
