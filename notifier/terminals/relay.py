"""Runs one program on a pseudo-terminal of ours and passes everything through, both ways, unchanged."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from notifier.terminals.outer import Outer
from notifier.terminals.process import process_of
from notifier.terminals.pty import OwnPty

_LEADER = Path(__file__).with_name("leader.py")
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
_SCREEN_CHUNK = 4096
"""A terminal or pipe that can be written to takes this much without making us wait."""
_INPUT_LIMIT = 65536
_LINE_FEED = 0x0A
_END_OF_FILE = b"\x04"
_LAST_WORDS_SECONDS = 0.2
"""How long output may still come after the program's end, where a child of it keeps the terminal open."""
_SETTLE_SECONDS = 0.02


class CommandError(Exception):
    """The program could not be started; the text says why."""


class Relay:
    """One program, its terminal, and the terminal of the human in front of it.

    Attributes:
        terminal: what the program's terminal shows and takes; wakes are typed into it.
        started: set once the program runs, or has failed to.
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
        self.started = asyncio.Event()
        self._command = list(command)
        self._environ = dict(environ)
        self._outer = outer
        self._ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._silent = asyncio.Event()
        self._to_program = bytearray()
        self._to_screen = bytearray()
        self._screen_gone = False
        self._screen_full = False
        self._keyboard_open = outer.has_keyboard
        self._last_sent = _LINE_FEED
        self._said = b""
        self._master, self._slave = os.openpty()
        os.set_blocking(self._master, False)
        self.terminal = OwnPty(
            os.ttyname(self._slave),
            program=program,
            send=self.send,
            unread_keys=self._unread_keys,
            clock=clock,
        )

    async def run(self) -> int:
        """Run the program to its end; return its exit status, or 128 and the signal that killed it.

        The human's terminal is raw meanwhile, and given back however this ends.

        Raises:
            CommandError: the program cannot be started.
        """
        leader, status = self._spawn()
        try:
            self._listen(status)
            self._outer.raw()
            how = await self._ended
            await self._last_words()
        finally:
            self._stop_listening(status)
            self._outer.restore()
            os.close(self._master)
            os.close(status)
            leader.wait()
        return how if how >= 0 else 128 - how

    def send(self, data: bytes) -> None:
        """Type `data` at the program, after whatever waits to be typed already."""
        self._to_program += data
        self._last_sent = data[-1]
        self._write_to_program()

    def signal_program(self, number: int) -> None:
        """Send a signal to the program's process group, if it still runs."""
        if self.terminal.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.terminal.process.pid, number)

    def _spawn(self) -> tuple[subprocess.Popen[bytes], int]:
        status, told = os.pipe()
        self._prepare_terminal()
        try:
            leader = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_LEADER), str(told), *self._command],
                stdin=self._slave,
                stdout=self._slave,
                stderr=self._slave,
                env=self._environ,
                start_new_session=True,
                pass_fds=[told],
            )
        finally:
            os.close(self._slave)
            os.close(told)
        return leader, status

    def _prepare_terminal(self) -> None:
        if self._outer.modes is not None:
            termios.tcsetattr(self._slave, termios.TCSANOW, self._outer.modes)
        else:
            modes = termios.tcgetattr(self._slave)
            modes[3] &= ~termios.ECHO
            termios.tcsetattr(self._slave, termios.TCSANOW, modes)
        self._set_size(self._slave)

    def _listen(self, status: int) -> None:
        loop = asyncio.get_running_loop()
        loop.add_reader(status, self._on_status, status)
        loop.add_reader(self._master, self._on_output)
        for number in _FORWARDED:
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self.signal_program, number)
        loop.add_signal_handler(signal.SIGWINCH, self._resize)
        loop.add_signal_handler(signal.SIGCONT, self._on_continue)

    def _stop_listening(self, status: int) -> None:
        loop = asyncio.get_running_loop()
        for fd in (status, self._master, self._outer.keyboard):
            loop.remove_reader(fd)
        for fd in (self._master, self._outer.screen):
            loop.remove_writer(fd)
        for number in (*_FORWARDED, signal.SIGWINCH, signal.SIGCONT):
            loop.remove_signal_handler(number)

    # What the program does

    def _on_status(self, status: int) -> None:
        said = os.read(status, 4096)
        *lines, self._said = (self._said + said).split(b"\n")
        for line in lines:
            word, number = line.split()
            self._on_word(word.decode(), int(number))
        if not said:
            asyncio.get_running_loop().remove_reader(status)
            self._end(-signal.SIGKILL)

    def _on_word(self, word: str, number: int) -> None:
        match word:
            case "started":
                self.terminal.process = process_of(number)
                self.started.set()
                if self._keyboard_open:  # not before: the leader is no one to type at
                    asyncio.get_running_loop().add_reader(self._outer.keyboard, self._on_keys)
            case "failed":
                self._fail(f"{self._command[0]} cannot be started: {os.strerror(number)}")
            case "stopped":
                asyncio.get_running_loop().call_later(_SETTLE_SECONDS, self._suspend, number)
            case "ended":
                self._end(number)

    def _end(self, how: int) -> None:
        self.terminal.process = None
        self.started.set()
        # What the human types from now on is for the shell.
        self._keyboard_open = False
        asyncio.get_running_loop().remove_reader(self._outer.keyboard)
        if not self._ended.done():
            self._ended.set_result(how)

    def _fail(self, why: str) -> None:
        if not self._ended.done():
            self._ended.set_exception(CommandError(why))

    def _suspend(self, number: int) -> None:
        """Follow the program into its suspension, so that the human is back in the shell."""
        if self._outer.suspend() or number != signal.SIGSTOP:
            self.signal_program(signal.SIGCONT)
        self._resize()

    def _on_output(self) -> None:
        try:
            data = os.read(self._master, _CHUNK)
        except BlockingIOError:
            return
        except OSError:  # EIO: nobody has the terminal open any more
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._master)
            self._silent.set()
            return
        self.terminal.printed(data)
        if not self._screen_gone:
            self._to_screen += data
            self._write_to_screen()

    def _write_to_screen(self) -> None:
        try:
            while self._to_screen and select.select([], [self._outer.screen], [], 0)[1]:
                written = os.write(self._outer.screen, self._to_screen[:_SCREEN_CHUNK])
                del self._to_screen[:written]
        except OSError:
            self._lose_screen()
        if self._screen_full != bool(self._to_screen):
            self._wait_for_screen(full=bool(self._to_screen))

    def _wait_for_screen(self, *, full: bool) -> None:
        """Read no more output while the human's terminal takes none."""
        loop = asyncio.get_running_loop()
        self._screen_full = full
        if full:
            loop.remove_reader(self._master)
            loop.add_writer(self._outer.screen, self._write_to_screen)
        else:
            loop.remove_writer(self._outer.screen)
            loop.add_reader(self._master, self._on_output)

    def _lose_screen(self) -> None:
        self._screen_gone = True
        self._to_screen.clear()
        self.signal_program(signal.SIGHUP)

    async def _last_words(self) -> None:
        """Pass on what the program printed before its end."""
        while self._to_screen or not self._silent.is_set():
            seen = self.terminal.output.last
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._silent.wait(), _LAST_WORDS_SECONDS)
            if self._silent.is_set() and self._to_screen:
                await asyncio.sleep(_SETTLE_SECONDS)
            elif not self._to_screen and seen == self.terminal.output.last:
                return

    # What the human does

    def _on_keys(self) -> None:
        try:
            data = os.read(self._outer.keyboard, _CHUNK)
        except OSError:  # EIO: the terminal is gone
            data = b""
        if data:
            self.terminal.typed(data, canonical=self._canonical())
            self.send(data)
        else:
            self._lose_keyboard()

    def _lose_keyboard(self) -> None:
        self._keyboard_open = False
        asyncio.get_running_loop().remove_reader(self._outer.keyboard)
        if self._outer.is_terminal:
            self.signal_program(signal.SIGHUP)
        elif self._canonical():
            self.send(_END_OF_FILE if self._last_sent == _LINE_FEED else 2 * _END_OF_FILE)

    def _unread_keys(self) -> bool:
        return self._keyboard_open and self._outer.has_unread_keys()

    def _write_to_program(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._to_program:
                del self._to_program[: os.write(self._master, self._to_program)]
        except BlockingIOError:
            pass
        except OSError:  # EIO: nobody has the terminal open any more
            self._to_program.clear()
        if self._to_program:
            loop.add_writer(self._master, self._write_to_program)
        else:
            loop.remove_writer(self._master)
        if len(self._to_program) > _INPUT_LIMIT:
            loop.remove_reader(self._outer.keyboard)
        elif self._keyboard_open:
            loop.add_reader(self._outer.keyboard, self._on_keys)

    def _canonical(self) -> bool:
        """Whether the kernel edits the program's lines."""
        try:
            return bool(termios.tcgetattr(self._master)[3] & termios.ICANON)
        except termios.error:
            return False

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
