"""Which sessions there are, told by launcher and hooks, and kept on disk for the next start."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, replace

import msgspec
import structlog

from notifier.control.messages import Hook, Launched, Place
from notifier.inbox.wake_on import read_rules
from notifier.programs.processes import look
from notifier.sessions import Process, Session, State

log = structlog.get_logger()


@dataclass(slots=True)
class Entry:
    """One session.

    Attributes:
        hooked: its hooks have spoken; from then on they know better than its launcher.
        sure: its process is the program's own, not a guess.
        registry: the file in which the program itself says what it does.
        told: what its hooks said last.
        rival: another process that went by the same handle; see `Registry.rival`.
    """

    session: Session
    hooked: bool = False
    sure: bool = False
    registry: str | None = None
    told: State = "starting"
    rival: Process | None = None


class Kept(msgspec.Struct):
    """The file: process numbers mean something only until the machine starts again."""

    boot: str
    entries: list[Entry]


class Registry:
    """Sessions by handle. Nothing is guessed: a session that nobody told of does not exist."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._saved = b""
        self.entries: dict[str, Entry] = {}

    def load(self) -> list[str]:
        """Take up the sessions of an earlier run whose processes still live; returns the others' handles."""
        try:
            with open(self._path, "rb") as file:
                kept = msgspec.json.decode(file.read(), type=Kept)
        except (OSError, msgspec.MsgspecError, ValueError):
            return []
        known = {entry.session.agent: entry for entry in kept.entries}
        if kept.boot == boot_id():
            self.entries = {name: entry for name, entry in known.items() if lives(entry.session.process)}
        return [name for name in known if name not in self.entries]

    def save(self) -> None:
        """Write what has changed; a reader sees the old file or the new one.

        A disk that takes nothing costs what the next start would know, and no wake: it is tried again at the
        next change.
        """
        data = msgspec.json.encode(Kept(boot_id(), list(self.entries.values())))
        if data == self._saved:
            return
        temporary = f"{self._path}.new"
        try:
            with open(temporary, "wb") as file:
                file.write(data)
            os.replace(temporary, self._path)
        except OSError as error:
            log.warning("sessions_not_saved", error=error.strerror)
            return
        self._saved = data

    def launched(self, told: Launched) -> Entry:
        """Take in what a launcher says."""
        entry = self.entries.get(told.agent)
        if entry is None or not lives(entry.session.process):
            entry = Entry(_placed(Session(told.agent, told.program), told))
        elif entry.hooked:
            entry.session = replace(entry.session, pty_socket=told.pty_socket)
        else:
            entry.session = _placed(Session(told.agent, told.program), told)
        self.entries[told.agent] = entry
        return entry

    def hooked(self, agent: str, told: Hook) -> Entry | None:
        """Take in where a hook was called; None when another process than the session's own called it."""
        entry = self.entries.get(agent)
        if entry is None or not lives(entry.session.process):
            entry = Entry(Session(agent, told.program))
            process = told.process
        elif _stranger(entry, told):
            entry.rival = told.process
            return None
        else:
            known = entry.session.process
            process = told.process if told.sure or known is None else known
        session_id = told.session_id or entry.session.session_id
        session = replace(
            entry.session, program=told.program, session_id=session_id, wake_on=_readable(told.wake_on)
        )
        entry.session = replace(_placed(session, told), process=process)
        entry.hooked, entry.sure = True, entry.sure or told.sure
        entry.registry = told.registry or entry.registry
        self.entries[agent] = entry
        return entry

    def rival(self, agent: str) -> Process | None:
        """The second live process that goes by a handle, as long as it lives."""
        entry = self.entries.get(agent)
        return entry.rival if entry is not None and lives(entry.rival) else None

    def agent_of(self, *processes: Process | None) -> str | None:
        """The handle of a session that is one of these processes."""
        for agent, entry in self.entries.items():
            process = entry.session.process
            if process is not None and process in processes and lives(process):
                return agent
        return None


def lives(process: Process | None) -> bool:
    """Whether exactly this process still runs."""
    seen = look(process.pid) if process else None
    return seen is not None and process is not None and seen.started == process.started


def _stranger(entry: Entry, told: Hook) -> bool:
    """Whether a hook belongs to another program that inherited the handle, such as a child of the session."""
    known = entry.session.process
    if known is None:
        return False
    if entry.hooked and told.program != entry.session.program:
        return True
    if known not in (told.process, *told.above):
        return True
    return entry.sure and told.sure and told.process != known


def _readable(wake_on: str | None) -> str | None:
    try:
        read_rules(wake_on or "")
    except ValueError:
        return None
    return wake_on


def _placed(session: Session, place: Place) -> Session:
    """The session with every fact that the place knows."""
    return replace(
        session,
        process=place.process or session.process,
        cwd=place.cwd or session.cwd,
        tty=place.tty or session.tty,
        tmux=place.tmux or session.tmux,
        pty_socket=place.pty_socket or session.pty_socket,
        watches=place.watches or session.watches,
    )


def boot_id() -> str:
    """Names the machine's current run; empty where the system does not tell."""
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()
    return ""
