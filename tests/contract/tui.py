"""A small agent program for tests: raw mode, a prompt, a composer; keeps every byte that reaches it.

    tui.py RECORD [--prompt TEXT] [--mute] [--alternate] [--ticking]

`--mute` shows nothing of what is typed. `--ticking` counts on, far below the prompt, while it waits.
Ctrl-Z suspends it, Ctrl-D ends it, Enter submits.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import sys
import termios
import tty
from typing import Any

PASTE, PASTE_END = b"\x1b[200~", b"\x1b[201~"


def show(text: str) -> None:
    os.write(1, text.encode())


def suspend(modes: list[Any]) -> None:
    termios.tcsetattr(0, termios.TCSADRAIN, modes)
    show("\x1b[?2004l")
    os.kill(0, signal.SIGTSTP)
    tty.setraw(0, termios.TCSADRAIN)
    show("\x1b[?2004h")


def tick() -> None:
    ticks = 0
    while not select.select([0], [], [], 0.01)[0]:
        ticks += 1
        show(f"\x1b7\x1b[20;1H{ticks}\x1b8")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("record")
    parser.add_argument("--prompt", default="> ")
    parser.add_argument("--mute", action="store_true")
    parser.add_argument("--alternate", action="store_true")
    parser.add_argument("--ticking", action="store_true")
    given = parser.parse_args()
    record = os.open(given.record, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    signal.signal(signal.SIGWINCH, lambda *_: None)
    modes = termios.tcgetattr(0)
    tty.setraw(0, termios.TCSADRAIN)
    if given.alternate:
        show("\x1b[?1049h\x1b[H")
    show(f"\x1b[?2004h{given.prompt}")
    composer = b""
    try:
        while True:
            if given.ticking:
                tick()
            data = os.read(0, 4096)
            os.write(record, data)
            if b"\x04" in data or not data:
                return
            if data == b"\x1a":
                suspend(modes)
                show(f"\r\x1b[K{given.prompt}{composer.decode()}")
                continue
            composer += data.replace(PASTE, b"").replace(PASTE_END, b"")
            if b"\x03" in data:
                composer = b""
            while b"\x7f" in composer:
                cut = composer.index(b"\x7f")
                composer = composer[: max(0, cut - 1)] + composer[cut + 1 :]
            if not given.mute:
                show(f"\r\x1b[K{given.prompt}{composer.split(chr(13).encode())[0].decode(errors='replace')}")
            while b"\r" in composer:
                line, _, composer = composer.partition(b"\r")
                show(f"\r\nsubmitted: {line.decode(errors='replace')}\r\n{given.prompt}{composer.decode()}")
    finally:
        show("\x1b[?2004l" + ("\x1b[?1049l" if given.alternate else ""))
        termios.tcsetattr(0, termios.TCSADRAIN, modes)


if __name__ == "__main__":
    main()
    sys.exit(0)
