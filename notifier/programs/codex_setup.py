"""Codex for one session: told by its command line alone, so that no file of the user's is touched."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

from notifier.programs.codex import NATIVE

RULES_FILE = "rules/readyroom.rules"
"""Path below Codex's folder (`~/.codex`)."""

RULES = """\
prefix_rule(pattern=["readyroom", "poll"], decision="allow")
prefix_rule(pattern=["readyroom", "say"], decision="allow")
"""
"""Lets an agent read and answer without a question each time; the user's to save, or not."""

_SOURCE = "/<session-flags>/config.toml"
"""Where Codex says that hooks of a command line stand."""
_TIMEOUT_SECONDS = 3
"""Codex allows no more at the end of a session."""


def for_session(command: Sequence[str]) -> list[str]:
    """The command with our hooks added, trusted by their hashes for this one run, and with no shared server.

    The server would call every session's hooks with the surroundings of the session that started it first.
    Hooks of other origin stay as the user has left them: trusted, refused, or to be reviewed.
    """
    return [command[0], "--no-daemon", "-c", f"hooks={_toml(hook_settings())}", *command[1:]]


def hook_settings() -> dict[str, Any]:
    """Codex's table `hooks`, with the hash by which it knows each hook that was reviewed."""
    handlers = {native: _handler(f"readyroom hook {ours} --for codex") for native, ours in NATIVE.items()}
    return {
        **{native: [{"hooks": [handler]}] for native, handler in handlers.items()},
        "state": {
            f"{_SOURCE}:{_label(native)}:0:0": {"trusted_hash": _hash(_label(native), handler)}
            for native, handler in handlers.items()
        },
    }


def _handler(line: str) -> dict[str, Any]:
    return {"type": "command", "command": line, "timeout": _TIMEOUT_SECONDS}


def _hash(label: str, handler: dict[str, Any]) -> str:
    identity = {"event_name": label, "hooks": [{**handler, "async": False}]}
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _label(native: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", native).lower()


def _toml(value: Any) -> str:
    """An inline value; a JSON string of plain characters is one of TOML, too."""
    match value:
        case dict():
            return f"{{{','.join(f'{json.dumps(key)}={_toml(item)}' for key, item in value.items())}}}"
        case list():
            return f"[{','.join(map(_toml, value))}]"
        case _:
            return json.dumps(value)
