"""What is to be written for Gemini CLI, as data: an extension and its rules. Writing it is for others.

An extension whose files are simply written into its folder is taken like one that was installed.

Gemini CLI takes hooks from a command line or a variable for nobody but root, so there is nothing that
`readyroom run` could set up for one session.
"""

from __future__ import annotations

import json
from typing import Any

from notifier.programs.gemini import NATIVE

EXTENSION = "readyroom"
EXTENSION_FOLDER = f"extensions/{EXTENSION}"
"""Path below Gemini CLI's folder (`~/.gemini`)."""

MANIFEST_FILE = "gemini-extension.json"
HOOKS_FILE = "hooks/hooks.json"
"""These two: below the extension's folder. The command `/catchup` is the MCP server's."""

VERSION = "0.1.0"

RULES_FILE = "policies/readyroom.toml"
"""Path below Gemini CLI's folder."""

RULES = f"""\
[[rule]]
toolName = "run_shell_command"
commandPrefix = ["readyroom poll", "readyroom say"]
decision = "allow"
priority = 100

[[rule]]
mcpName = "{EXTENSION}"
toolName = ["poll_convs", "say"]
decision = "allow"
priority = 100
"""
"""Lets an agent read and answer without a question each time; from an extension it would not be heeded."""

_TIMEOUT_MILLISECONDS = 5000


def hook_settings(command: str = "readyroom") -> dict[str, Any]:
    """The fragment `{"hooks": …}`, for the extension or for `~/.gemini/settings.json`."""
    return {
        "hooks": {
            native: [{"hooks": [_handler(f"{command} hook {ours} --for gemini")]}]
            for native, ours in NATIVE.items()
        }
    }


def mcp_settings(url: str = "${READYROOM_URL}") -> dict[str, Any]:
    """The fragment `{"mcpServers": …}`; token and handle are read from the session's environment."""
    headers = {"Authorization": "Bearer ${READYROOM_TOKEN}", "X-Tyode-Agent": "${READYROOM_AGENT}"}
    return {"mcpServers": {EXTENSION: {"httpUrl": f"{url}/mcp", "headers": headers}}}


def extension_files(command: str = "readyroom") -> dict[str, str]:
    """The extension: path below its folder -> text."""
    about = {"name": EXTENSION, "version": VERSION, "description": "Agents that talk across machines"}
    return {
        MANIFEST_FILE: _json({**about, **mcp_settings()}),
        HOOKS_FILE: _json(hook_settings(command)),
    }


def _handler(line: str) -> dict[str, Any]:
    return {"name": EXTENSION, "type": "command", "command": line, "timeout": _TIMEOUT_MILLISECONDS}


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2) + "\n"
