"""A tmux pane, reached by plain `tmux` commands on its server's own socket."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass

from notifier.sessions import Process, TmuxPane
from notifier.terminals.base import QUIET_SECONDS, Draft, Hold, Look
from notifier.terminals.composer import Screen, composed, same_text
from notifier.terminals.process import hold_of

_COMMAND_SECONDS = 3.0
_FACTS = (
    "#{pid} #{pane_tty} #{?pane_dead,1,0}#{?pane_in_mode,1,0}#{?pane_input_off,1,0}#{?pane_synchronized,1,0}"
)
_VIEW = "#{?alternate_on,1,0} #{cursor_x} #{cursor_y}"
_CLIENT = "client #{pane_id} #{client_activity}"
_CLOSED = "closed"
_SCREEN = "screen"
"""The line before what the pane shows, which may look like anything."""
_FLAGS: tuple[Hold, ...] = ("pane gone", "copy mode", "input off", "synchronised panes")
_FULL_SCREEN = frozenset({"claude-code", "codex", "gemini", "opencode"})
"""Programs whose own screen is the alternate one."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """One answer of tmux: the pane, who looks at it, what it shows."""

    server_pid: int
    tty: str
    flags: str
    alternate: bool
    last_key: int | None
    screen: Screen
    text: str


class TmuxTerminal:
    """One pane of one tmux server, as a `Terminal`.

    The pane is the right one only while its server's process is the one that was recorded, and the process
    that checked in is in front on the pane's terminal: pane ids start again when a server restarts. tmux
    itself judges the pane's gates once more in the moment of pasting and of pressing Enter.
    """

    def __init__(self, pane: TmuxPane, *, process: Process, program: str) -> None:
        self._pane = pane
        self._process = process
        self._program = program
        self._tty = ""
        self._shown = ""
        self._changed_at = 0.0
        self._looked_at = 0.0
        self._before_paste: str | None = None

    async def look(self) -> Look:
        """See what the pane shows. A first look takes 0.3 s: whether it moves can only be seen twice."""
        seen = await self._see()
        if time.monotonic() - self._looked_at > QUIET_SECONDS and isinstance(seen, _Seen):
            self._shown, self._changed_at = seen.text, time.monotonic()
            await asyncio.sleep(QUIET_SECONDS)
            seen = await self._see()
        if not isinstance(seen, _Seen):
            return Look(hold=seen)
        age = self._note(seen)
        # tmux counts whole seconds: the key may have been pressed at the end of its second.
        key_age = None if seen.last_key is None else max(0.0, time.time() - seen.last_key - 1)
        return Look(
            hold=self._hold(seen),
            draft=self._draft(seen),
            key_age=key_age,
            output_age=age,
            alternate=seen.alternate,
        )

    async def paste(self, line: str) -> Hold | None:
        """Paste `line`, bracketed if the program asked for it. The text travels in no argument."""
        buffer = f"readyroom-{os.getpid()}-{self._pane.pane[1:]}"
        if await self._tmux("load-buffer", "-b", buffer, "-", given=line) is None:
            return "pane gone"
        pasted = await self._guarded(f"paste-buffer -p -r -d -b {buffer} -t {self._pane.pane}")
        if not pasted:
            await self._tmux("delete-buffer", "-b", buffer)
            return await self._why()
        self._before_paste = self._shown
        return None

    async def shows(self, line: str) -> bool:
        """Whether exactly `line` stands in the composer."""
        seen = await self._see()
        return isinstance(seen, _Seen) and same_text(composed(seen.screen, self._program), line)

    async def enter(self, line: str) -> Hold | None:
        """Press Enter, if `line` stands in the composer."""
        seen = await self._see()
        if not isinstance(seen, _Seen):
            return seen
        if hold := self._hold(seen):
            return hold
        if not same_text(composed(seen.screen, self._program), line):
            return "echo not seen"
        pressed = await self._guarded(f"send-keys -t {self._pane.pane} Enter")
        if not pressed:
            return await self._why()
        self._before_paste = None
        return None

    async def _why(self) -> Hold:
        return (await self.look()).hold or "no answer"

    def _hold(self, seen: _Seen) -> Hold | None:
        if seen.server_pid != self._pane.server_pid:
            return "pane gone"
        for flag, hold in zip(seen.flags, _FLAGS, strict=True):
            if flag == "1":
                return hold
        if standing := hold_of(self._process, tty=seen.tty):
            return standing
        return "another screen" if seen.alternate and self._program not in _FULL_SCREEN else None

    def _note(self, seen: _Seen) -> float:
        """Keep what is shown; return for how long it has not changed."""
        self._looked_at = time.monotonic()
        self._tty = seen.tty
        if seen.text != self._shown:
            self._shown, self._changed_at = seen.text, self._looked_at
        return self._looked_at - self._changed_at

    def _draft(self, seen: _Seen) -> Draft:
        if seen.text == self._before_paste:
            return "draft"  # pasted, and no trace of it on the screen: it may well be there
        self._before_paste = None
        text = composed(seen.screen, self._program)
        return "unknown" if text is None else "draft" if text else "empty"

    async def _see(self) -> _Seen | Hold:
        pane = self._pane.pane
        answer = await self._tmux(
            *("display-message", "-p", "-t", pane, f"{_FACTS} {_VIEW}", ";"),
            *("list-clients", "-F", _CLIENT, ";"),
            *("display-message", "-p", "-t", pane, _SCREEN, ";"),
            *("capture-pane", "-p", "-e", "-t", pane),
        )
        if answer is None:
            return "pane gone"
        head, _, rest = answer.partition(f"\n{_SCREEN}\n")
        facts, *clients = head.split("\n")
        keys = [client.split()[-1] for client in clients if client.split()[1:-1] == [pane]]
        last_key = max(map(int, keys), default=None)
        server_pid, tty, flags, alternate, column, row = facts.split()
        screen = Screen.read(rest, column=int(column), row=int(row))
        return _Seen(int(server_pid), tty, flags, alternate == "1", last_key, screen, rest)

    async def _guarded(self, command: str) -> bool:
        """Have tmux run `command` if the pane is still the one that was looked at, and open."""
        expected = f"{self._pane.server_pid} {self._tty} 0000"
        answer = await self._tmux(
            *("if-shell", "-F", "-t", self._pane.pane, f"#{{==:{_FACTS},{expected}}}"),
            *(command, f"display-message -p {_CLOSED}"),
        )
        return answer is not None and answer.strip() != _CLOSED

    async def _tmux(self, *arguments: str, given: str = "") -> str | None:
        """The answer of one tmux call; None where it failed or came too late."""
        process = await asyncio.create_subprocess_exec(
            *("tmux", "-S", self._pane.socket, *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
        try:
            async with asyncio.timeout(_COMMAND_SECONDS):
                answer, _ = await process.communicate(given.encode())
        except TimeoutError:
            process.kill()
            await process.wait()
            return None
        return answer.decode(errors="replace") if process.returncode == 0 else None
