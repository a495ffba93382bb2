"""Codex: its hooks' words and its answers. It keeps no file that says what it does."""

from __future__ import annotations

import json

from notifier.programs.base import Told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from notifier.programs.base import Mode, Program
    from notifier.programs.processes import Seen
    from notifier.sessions import Event, State

NATIVE: dict[str, Event] = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "prompt",
    "PreToolUse": "tool",
    "PermissionRequest": "dialog-open",
    "PostToolUse": "tool",
    "PreCompact": "tool",
    "Stop": "stop",
    "Interrupt": "stop",
    "SessionEnd": "session-end",
}
"""Codex's event -> ours."""

_HANDING: dict[Event, str] = {"session-start": "SessionStart", "tool": "PostToolUse"}
"""Our events at which a text is handed over beside the turn -> Codex's."""

_POLL = "__poll_convs"
"""How the name of our MCP tool ends, whatever the server is called there."""


class Codex:
    """Codex, as of the versions named in docs/explanation/waking.md."""

    name = "codex"
    catchup = "Read your unread Readyroom messages: run `readyroom poll`, and act on what it prints."
    reads_stdin = True
    default_mode: Mode = "engage"
    wake = catchup

    def understand(self, event: str, given: Mapping[str, Any]) -> Told | None:
        """Read Codex's JSON; without it, the event of our own name as it stands."""
        if given.get("agent_id"):
            return None
        native = given.get("hook_event_name")
        ours = NATIVE.get(native) if isinstance(native, str) else _own_name(event)
        if ours is None:
            return None
        return Told(
            ours,
            session_id=_text(given.get("session_id")),
            cwd=_text(given.get("cwd")),
            mode="off" if native == "Interrupt" else None,
            # Codex opens a session with its first prompt, not before.
            resting=False,
            read=native == "PostToolUse" and str(given.get("tool_name")).endswith(_POLL),
            boundary=native == "PostToolUse",
            lone=native == "PostToolUse",
        )

    def owner(self, environ: Mapping[str, str], ancestors: Sequence[Seen]) -> tuple[Seen, bool] | None:
        """The nearest ancestor called `codex`, where it has a terminal.

        Without one it is the server that Codex shares among sessions. It has the surroundings of whoever
        started it, so nothing there tells which session a hook speaks for.
        """
        found = next((seen for seen in ancestors if seen.name == "codex"), None)
        return (found, True) if found is not None and found.tty is not None else None

    def registry(self, environ: Mapping[str, str], pid: int) -> str | None:
        """None: there is no second sign but the terminal's look."""
        return None

    def watches(self, environ: Mapping[str, str]) -> bool:
        """No version does."""
        return False

    def sign(self, registry: str, *, started: int) -> State | None:
        """None, for want of a registry."""
        return None

    def context(self, event: Event | None, text: str | None, *, watch: str | None = None) -> str:
        """Additional context at the start; at the end a reason to go on, which the model is told."""
        native = _HANDING.get(event) if event is not None else None
        if native is not None:
            return json.dumps({"hookSpecificOutput": {"hookEventName": native, "additionalContext": text}})
        return json.dumps({"decision": "block", "reason": text})

    def notice(self, text: str) -> str:
        """One line on the screen that the model does not see."""
        return json.dumps({"systemMessage": text})


def _own_name(event: str) -> Event | None:
    return next((ours for ours in NATIVE.values() if ours == event), None)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


PROGRAM: Program = Codex()
