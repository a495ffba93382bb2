"""What can be seen on this box without changing anything."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

from notifier.paths import control_socket
from notifier.programs import claude_setup, find, gemini_setup
from notifier.programs.claude_setup import CATCHUP_FILE
from notifier.settings import Access
from readyroom import __version__
from readyroom.doctor.findings import Finding, failed, ok, skipped
from readyroom.run import PROGRAMS

CLOCK_SECONDS = 30.0
TMUX_SECONDS = 10.0
GUIDE = "docs/howto/claude-code.md"
GEMINI_GUIDE = "docs/howto/gemini.md"

_START = "Start one: `readyroom notifier install` for good, `readyroom notifier` for now, or `readyroom up`."


def clock(answered_at: str | None) -> Finding:
    """Whether this machine's clock goes with the record's, as its HTTP date says."""
    try:
        ahead = time.time() - parsedate_to_datetime(answered_at or "").timestamp()
    except ValueError:
        return skipped("clock", "the record, or a proxy before it, does not tell the time")
    if abs(ahead) > CLOCK_SECONDS:
        which = "ahead of" if ahead > 0 else "behind"
        return failed(
            "clock",
            f"{abs(ahead):.0f} s {which} the record's",
            "Have both machines keep time (`timedatectl set-ntp true`): the record judges what expires.",
        )
    return ok("clock", "it goes with the record's")


def folder(runtime: str) -> Finding:
    """Whether the notifier's folder, and its socket's, are this user's alone."""
    folders = dict.fromkeys((runtime, os.path.dirname(control_socket(runtime))))
    for path in folders:
        try:
            seen = os.lstat(path)
        except FileNotFoundError:
            continue
        if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.getuid() or seen.st_mode & 0o077:
            return failed(
                "folder",
                f"{path} is not this user's alone (mode {stat.S_IMODE(seen.st_mode):o})",
                f"Stop the notifier, then `chmod 700 {path}` if it is yours; otherwise remove it, or name "
                "another in READYROOM_RUNTIME_DIR.",
            )
    there = os.path.isdir(runtime)
    return ok("folder", f"{runtime}, {'closed to others' if there else 'not there yet'}")


def daemon(standing: Mapping[str, Any] | None, access: Access | None, box: str | None) -> Finding:
    """Whether the notifier runs, is of this version, and serves this record and the token's `box`."""
    if standing is None:
        return failed("notifier", "none answers", _START)
    who, version = f"process {standing['pid']}", standing.get("version") or "unknown"
    if version != __version__:
        return failed(
            "notifier",
            f"{who} is of version {version}, this is {__version__}",
            "Start it anew: `readyroom notifier install`, or stop it and start it again.",
        )
    record = standing["record"]
    if access is not None and record["url"] != access.url:
        return failed(
            "notifier",
            f"{who} serves another record, {record['url']}",
            "Set READYROOM_URL for this shell to that, or start the notifier anew with the settings of this "
            "one; READYROOM_RUNTIME_DIR keeps two apart.",
        )
    if record["trouble"]:
        return failed("notifier", f"{who} does not reach the record", str(record["trouble"]))
    if None not in (box, record.get("box")) and record["box"] != box:
        return failed(
            "notifier",
            f"{who} serves another box, {record['box']}",
            f"Name that box's token in READYROOM_TOKEN_FILE for this shell, or start a notifier for {box}; "
            "READYROOM_RUNTIME_DIR keeps two apart.",
        )
    return ok("notifier", f"{who}, version {version}")


def without_keys(standing: Mapping[str, Any] | None) -> Finding | None:
    """That no wake can be tried, where the notifier is told to type nothing; None where it types."""
    rungs = (standing or {}).get("rungs", ["pty"])
    if "pty" in rungs:
        return None
    return skipped(
        "wake",
        f"not tried: it takes keys, and this notifier wakes by {', '.join(rungs)} alone",
        "READYROOM_WAKE, or `wake` in config.toml, says so.",
    )


def nerve(standing: Mapping[str, Any] | None) -> Finding:
    """Whether the notifier hears nudges."""
    if standing is None:
        return skipped("nerve", "not known: the notifier listens to it")
    told = standing["nerve"]
    if told["trouble"]:
        return failed(
            "nerve",
            f"{told['url'] or 'it is not known where'}: {told['trouble']}",
            "Messages arrive all the same, within READYROOM_SWEEP_SECONDS (60). See that `readyroom broker`, "
            "where it runs apart, is up, and that proxies on the way let websockets through.",
        )
    return ok("nerve", f"{told['url']} is heard")


def tmux() -> Finding:
    """Whether sessions in tmux can be reached."""
    if shutil.which("tmux") is None:
        return skipped("tmux", "not here; `readyroom run` needs none")
    try:
        done = subprocess.run(
            ["tmux", "-V"], capture_output=True, text=True, timeout=TMUX_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        return failed("tmux", f"it does not run ({error})", "Install it anew, or take it off PATH.")
    return ok("tmux", done.stdout.strip())


def programs() -> Iterator[Finding]:
    """One finding for each agent program that is here."""
    for command, name in PROGRAMS.items():
        if shutil.which(command) is None:
            continue
        if name == "claude-code":
            yield _claude_code()
        elif name == "gemini":
            yield _gemini()
        elif find(name) is None:
            yield skipped(name, "found; Readyroom has no hooks for it, so its sessions are not woken")
        else:
            yield ok(name, f"found; `readyroom run -- {command}` sets it up, session by session")


def _claude_code() -> Finding:
    home = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
    settings = home / "settings.json"
    fix = f"Add what {GUIDE} shows to {settings}."
    try:
        there = _commands(json.loads(settings.read_text(encoding="utf-8")))
    except FileNotFoundError:
        there = {}
    except (OSError, ValueError, TypeError, AttributeError, KeyError):
        return failed("claude-code", f"{settings} cannot be read", f"Mend it. {fix}")
    if not any("--for claude-code" in line for lines in there.values() for line in lines):
        return skipped("claude-code", "found, and not set up: its sessions are not woken", fix)
    if missing := _missing(claude_setup.hook_settings(""), there):
        return failed("claude-code", f"hooks are missing: {', '.join(missing)}", fix)
    if not (home / CATCHUP_FILE).exists():
        return failed(
            "claude-code", "its command /catchup is missing", f"Save it as {home / CATCHUP_FILE}: {GUIDE}."
        )
    if shutil.which("readyroom") is None:
        return failed(
            "claude-code",
            "its hooks call `readyroom`, which is not on PATH",
            "Link it to a folder on the PATH of the shell that starts Claude Code.",
        )
    return ok("claude-code", "found, with its hooks and its command /catchup")


def _gemini() -> Finding:
    home = Path(os.environ.get("GEMINI_CLI_HOME") or Path.home()) / ".gemini"
    extension = home / gemini_setup.EXTENSION_FOLDER / gemini_setup.HOOKS_FILE
    fix = f"Install the extension: {GEMINI_GUIDE}."
    try:
        there = _commands(json.loads(extension.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return skipped("gemini", "found, and not set up: its sessions are not woken", fix)
    except (OSError, ValueError, TypeError, AttributeError, KeyError):
        return failed("gemini", f"{extension} cannot be read", fix)
    if missing := _missing(gemini_setup.hook_settings(""), there):
        return failed("gemini", f"hooks are missing: {', '.join(missing)}", fix)
    if shutil.which("readyroom") is None:
        return failed(
            "gemini",
            "its hooks call `readyroom`, which is not on PATH",
            "Link it to a folder on the PATH of the shell that starts Gemini CLI.",
        )
    rules = home / gemini_setup.RULES_FILE
    if not rules.exists():
        return ok("gemini", f"found, with its hooks; it asks before each read, since there is no {rules}")
    return ok("gemini", "found, with its hooks and its rules")


def _missing(wanted: Mapping[str, Any], there: Mapping[str, list[str]]) -> list[str]:
    """Events of which no hook runs our line."""
    return [
        event
        for event, (line,) in _commands(wanted).items()
        if not any(line.strip() in had for had in there.get(event, ()))
    ]


def _commands(settings: Mapping[str, Any]) -> dict[str, list[str]]:
    """Event -> the command lines that its hooks run."""
    return {
        event: [str(hook.get("command", "")) for matcher in matchers for hook in matcher["hooks"]]
        for event, matchers in settings.get("hooks", {}).items()
    }
