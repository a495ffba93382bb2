"""What is to be written into Claude Code's own settings, as data; writing it is for others."""

from __future__ import annotations

import re
from typing import Any

from notifier.programs.claude_code import NATIVE, READ

CATCHUP_FILE = "commands/catchup.md"
"""Path below Claude Code's folder (`~/.claude`)."""

CATCHUP = f"""\
---
description: Read what is unread in Readyroom
allowed-tools: Bash(readyroom poll:*), mcp__readyroom__poll_convs
---
{READ}"""
"""The text of the command `/catchup`."""

ALLOW = ("Bash(readyroom poll:*)", "Bash(readyroom say:*)")
"""Rules by which an agent reads and answers without a question each time."""

_OURS = re.compile(r"readyroom'? hook [a-z-]+ --for claude-code$")
_OTHER = {"Notification": "dialog-open", "CwdChanged": "cwd-changed", "FileChanged": "file-changed"}
"""Events that say nothing of a state, or not always."""

_TIMEOUT_SECONDS = 5


def hook_settings(command: str = "readyroom") -> dict[str, Any]:
    """The fragment `{"hooks": …}` for `~/.claude/settings.json`; `command` is how the program is called."""
    return {
        "hooks": {
            native: [{"hooks": [_handler(f"{command} hook {ours} --for claude-code", native)]}]
            for native, ours in {**NATIVE, **_OTHER}.items()
        }
    }


def is_our_hook(command: str) -> bool:
    """Whether a hook of the settings is one of ours, of an earlier version too."""
    return _OURS.search(command) is not None


def _handler(line: str, native: str) -> dict[str, Any]:
    handler = {"type": "command", "command": line, "timeout": _TIMEOUT_SECONDS}
    return {**handler, "asyncRewake": True} if native == "FileChanged" else handler
