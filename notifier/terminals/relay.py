"""Runs one program on a pseudo-terminal of ours and passes everything through, both ways, unchanged."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence

from notifier.sessions import Process
from notifier.terminals.base import Hold
from notifier.terminals.child import Child
from notifier.terminals.outer import Outer
from notifier.terminals.outlet import Outlet
from notifier.terminals.process import hold_of
from notifier.terminals.pty import OwnPty

_FORWARDED = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGTSTP,
)
_CHUNK = 65536
_INPUT_LIMIT = 65536
_LINE_FEED = 0x0A
_BELL = b"\a"
_END_OF_FILE = b"\x04"
_LAST_WORDS_SECONDS = 0.2
"""How long output may still come after the program's end, where a child of it keeps the terminal open."""
_SETTLE_SECONDS = 0.02
"""How long a program's last output before a suspension takes to come through."""


class Relay:
    """One program, its terminal, and the terminal of the human in front of it.

    Attributes:
        child: the program.
        terminal: what the program's terminal shows and takes; wakes are typed into it.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environ: Mapping[str, str],
        outer: Outer,
        program: str = "plain",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._command = list(command)
        self._environ = dict(environ)
        self._outer = outer
        self._keyboard_open = outer.has_keyboard
        self._silent = asyncio.Event()
        self._last_sent = _LINE_FEED
        self._master, self._slave = os.openpty()
        os.set_blocking(self._master, False)
        self._input = Outlet(self._master, on_change=self._input_waits, on_gone=lambda: None)
        self._screen = Outlet(outer.screen, on_change=self._screen_waits, on_gone=self._lose_screen)
        self.child = Child(on_started=self._begin, on_stopped=self._stopped)
        self.terminal = OwnPty(
            os.ttyname(self._slave),
            process=lambda: self.child.process,
            program=program,
            send=self.send,
            unread_keys=lambda: self._keyboard_open and outer.has_unread_keys(),
            clock=clock,
        )

    async def run(self) -> int:
        """Run the program to its end; return its exit status, or 128 and the signal that killed it.

        The human's terminal is raw meanwhile, and given back however this ends.

        Raises:
            CommandError: the program cannot be started.
        """
        self._prepare_terminal()
        try:
            self.child.start(self._command, environ=self._environ, terminal=self._slave)
            os.close(self._slave)
            self._listen()
            self._outer.raw()
            how = await self.child.ended
            self._close_keyboard()  # what the human types from now on is for the shell
            await self._last_words()
        finally:
            self._stop_listening()
            self._outer.restore()
            os.close(self._master)
            self.child.close()
        return how if how >= 0 else 128 - how

    def send(self, data: bytes) -> None:
        """Type `data` at the program, after whatever waits to be typed already."""
        self._last_sent = data[-1]
        self._input.write(data)

    def hold_of(self, process: Process) -> Hold | None:
        """Why `process` is not the one in front on the program's terminal, if so."""
        return hold_of(process, tty=self.terminal.tty)

    def ring(self) -> Hold | None:
        """Ring the bell of the human's terminal; returns why it was not rung, if so."""
        if not os.isatty(self._outer.screen):
            return "nobody could be told"
        if self._screen.waiting or not self.terminal.rests():
            return "output still moving"
        self._screen.write(_BELL)
        return "nobody could be told" if self._screen.gone else None

    def _prepare_terminal(self) -> None:
        if self._outer.modes is not None:
            termios.tcsetattr(self._slave, termios.TCSANOW, self._outer.modes)
        else:
            modes = termios.tcgetattr(self._slave)
            modes[3] &= ~termios.ECHO
            termios.tcsetattr(self._slave, termios.TCSANOW, modes)
        self._set_size(self._slave)

    def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_reader(self._master, self._on_output)
        for number in _FORWARDED:
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self.child.signal, number)
        loop.add_signal_handler(signal.SIGWINCH, self._resize)
        loop.add_signal_handler(signal.SIGCONT, self._on_continue)

    def _stop_listening(self) -> None:
        loop = asyncio.get_running_loop()
        self._close_keyboard()
        self._input.close()
        self._screen.close()
        loop.remove_reader(self._master)
        for number in (*_FORWARDED, signal.SIGWINCH, signal.SIGCONT):
            loop.remove_signal_handler(number)

    # From the program to the human

    def _on_output(self) -> None:
        try:
            data = os.read(self._master, _CHUNK)
        except BlockingIOError:
            return
        except OSError:  # EIO: nobody has the terminal open any more
            data = b""
        if data:
            self.terminal.printed(data)
            self._screen.write(data)
        else:
            asyncio.get_running_loop().remove_reader(self._master)
            self._silent.set()

    def _screen_waits(self, waiting: int) -> None:
        """Read no more output while the human's terminal takes none."""
        if waiting:
            asyncio.get_running_loop().remove_reader(self._master)
        elif not self._silent.is_set():
            asyncio.get_running_loop().add_reader(self._master, self._on_output)

    def _lose_screen(self) -> None:
        self.child.signal(signal.SIGHUP)

    async def _last_words(self) -> None:
        """Pass on what the program printed before its end."""
        seen = None
        while self._screen.waiting or not (self._silent.is_set() or seen == self.terminal.output.last):
            seen = self.terminal.output.last
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WORDS_SECONDS):
                    await (asyncio.Event() if self._screen.waiting else self._silent).wait()

    # From the human to the program

    def _begin(self) -> None:
        """Let the human type; not before, for the leader is no one to type at."""
        if self._keyboard_open:
            asyncio.get_running_loop().add_reader(self._outer.keyboard, self._on_keys)

    def _on_keys(self) -> None:
        try:
            data = os.read(self._outer.keyboard, _CHUNK)
        except OSError:  # EIO: the terminal is gone
            data = b""
        if data:
            self.terminal.typed(data, canonical=self._canonical())
            self.send(data)
            return
        self._close_keyboard()
        if self._outer.is_terminal:
            self.child.signal(signal.SIGHUP)
        elif self._canonical():
            self.send(_END_OF_FILE if self._last_sent == _LINE_FEED else 2 * _END_OF_FILE)

    def _close_keyboard(self) -> None:
        self._keyboard_open = False
        asyncio.get_running_loop().remove_reader(self._outer.keyboard)

    def _input_waits(self, waiting: int) -> None:
        """Read no more keys while the program takes none."""
        loop = asyncio.get_running_loop()
        if waiting > _INPUT_LIMIT:
            loop.remove_reader(self._outer.keyboard)
        elif self._keyboard_open:
            loop.add_reader(self._outer.keyboard, self._on_keys)

    def _canonical(self) -> bool:
        """Whether the kernel edits the program's lines."""
        try:
            return bool(termios.tcgetattr(self._master)[3] & termios.ICANON)
        except termios.error:
            return False

    # Suspension and size

    def _stopped(self, number: int) -> None:
        asyncio.get_running_loop().call_later(_SETTLE_SECONDS, self._suspend, number)

    def _suspend(self, number: int) -> None:
        """Follow the program into its suspension, so that the human is back in the shell."""
        process = self.child.process
        if process is None or hold_of(process, tty=None) != "suspended":
            return
        if self._outer.suspend() or number != signal.SIGSTOP:
            self.child.signal(signal.SIGCONT)
        self._resize()

    def _on_continue(self) -> None:
        self._outer.raw()
        self._resize()

    def _resize(self) -> None:
        with contextlib.suppress(OSError):
            self._set_size(self._master)

    def _set_size(self, terminal: int) -> None:
        size = self._outer.size()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
        rows, columns, _, _ = struct.unpack("HHHH", size)
        self.terminal.resized(rows, columns)
