"""Changes to files of a person's own: what stands there stays, and nothing is half written."""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import msgspec

from notifier.settings import in_words
from readyroom.entrance import CommandFailed

Json = dict[str, Any]


class Handler(TypedDict, total=False):
    """What one hook runs."""

    command: str


class Group(TypedDict):
    """Hooks of one event."""

    hooks: list[Handler]


class Permissions(TypedDict, total=False):
    """Of a person's rules, those that allow."""

    allow: list[str]


class Shape(TypedDict, total=False):
    """Of a person's settings, what must be as expected before anything is added."""

    hooks: dict[str, list[Group]]
    permissions: Permissions


@dataclass(frozen=True, slots=True)
class Change:
    """One file as it is, and as it is to be; None: it is not there."""

    path: Path
    before: str | None
    after: str | None

    def make(self) -> None:
        """Write or remove the file, whole or not at all. A link stays one, a mode stays what it is.

        Raises:
            CommandFailed: it has changed since it was read, or cannot be written.
        """
        if _read(self.path) != self.before:
            raise CommandFailed(f"{self.path} has changed meanwhile. Run this again.")
        file = self.path.resolve()
        new = file.with_name(f"{file.name}.readyroom-new")
        try:
            if self.after is None:
                file.unlink(missing_ok=True)
                with contextlib.suppress(OSError):  # others have something there, too
                    file.parent.rmdir()
                return
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            mode = stat.S_IMODE(file.stat().st_mode) if file.exists() else 0o600
            new.touch(mode=0o600)
            new.write_text(self.after, encoding="utf-8")
            new.chmod(mode)
            os.replace(new, file)
        except OSError as error:
            new.unlink(missing_ok=True)
            raise CommandFailed(
                f"{self.path} cannot be written ({in_words(error)}). Nothing of it has changed."
            ) from None


def own_file(path: Path, text: str, *, remove: bool) -> Change:
    """A file that is ours alone. One that somebody has changed is not removed."""
    before = _read(path)
    if remove:
        return Change(path, before, None if before == text else before)
    return Change(path, before, text)


def settings_file(
    path: Path,
    *,
    hooks: Mapping[str, Sequence[Json]],
    is_ours: Callable[[str], bool],
    allow: Sequence[str],
    remove: bool,
) -> Change:
    """JSON settings with `hooks` (event -> groups of handlers) and `permissions.allow`.

    `is_ours` tells whether a handler's command is one of ours, of an earlier version too.

    Raises:
        CommandFailed: the file holds no such settings; it is left alone.
    """
    before = _read(path)
    settings = _parsed(path, before)
    _without_ours(settings, is_ours, {} if remove else hooks)
    _leave(settings, allow, remove=remove)
    if not remove:
        _with_ours(settings, hooks)
    if settings == _parsed(path, before):
        return Change(path, before, before)
    if not settings and remove:
        return Change(path, before, None)
    return Change(path, before, _written(settings, before or ""))


def _without_ours(
    settings: Json, is_ours: Callable[[str], bool], wanted: Mapping[str, Sequence[Json]]
) -> None:
    """Take out our handlers, but for groups that are wanted as they are."""
    events = settings.get("hooks", {})
    for event, groups in list(events.items()):
        kept = []
        for group in groups:
            handlers = [each for each in group["hooks"] if not is_ours(each.get("command", ""))]
            if len(handlers) == len(group["hooks"]) or group in wanted.get(event, ()):
                kept.append(group)
            elif handlers:
                kept.append({**group, "hooks": handlers})
        if len(kept) == len(groups) or kept:
            events[event] = kept
        else:
            del events[event]
    if not events:
        settings.pop("hooks", None)


def _with_ours(settings: Json, hooks: Mapping[str, Sequence[Json]]) -> None:
    events = settings.setdefault("hooks", {})
    for event, groups in hooks.items():
        there = events.setdefault(event, [])
        there.extend(group for group in groups if group not in there)


def _leave(settings: Json, allow: Sequence[str], *, remove: bool) -> None:
    """Add our rules to `permissions.allow`, or take them out with what is empty then."""
    if not remove:
        rules = settings.setdefault("permissions", {}).setdefault("allow", [])
        rules.extend(rule for rule in allow if rule not in rules)
        return
    permissions = settings.get("permissions", {})
    rules = permissions.get("allow", [])
    kept = [rule for rule in rules if rule not in allow]
    if len(kept) == len(rules):
        return
    permissions["allow"] = kept
    if not kept:
        del permissions["allow"]
    if not permissions:
        del settings["permissions"]


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailed(f"{path} cannot be read ({in_words(error)}). It is left alone.") from None


def _parsed(path: Path, text: str | None) -> Json:
    if text is None or not text.strip():
        return {}
    try:
        settings = json.loads(text, object_pairs_hook=_once)
        msgspec.convert(settings, Shape)
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        raise CommandFailed(
            f"{path} cannot be added to ({error}). Mend it; docs/howto shows what to add by hand."
        ) from None
    return dict(settings)


def _once(pairs: list[tuple[str, Any]]) -> Json:
    """An object; a name that stands there twice would be lost."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands there twice")
    return found


def _written(settings: Json, before: str) -> str:
    """As it was indented."""
    found = re.search(r"^([ \t]+)\S", before, re.MULTILINE)
    text = json.dumps(settings, indent=found[1] if found else 2, ensure_ascii=False)
    return text if before and not before.endswith("\n") else f"{text}\n"
